/* The abstract file model of the source (4.5) against the calls: records, mapping functions, reading, writing, inserting, seeking. */
#define _GNU_SOURCE
#include "check.h"

#define MOST 400
#define RECORD 3

static uint64_t seed;

static int below(int n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)n);
}

/* A file of the model: records of one size, and a pointer in records. */
typedef struct {
    unsigned char records[MOST][RECORD];
    int flen, position;
} file_model;

static file_model model;

static void agree(int fid) {
    static unsigned char all[MOST * RECORD + 1];
    YES(ViPIOS_Read(fid, all, sizeof all, 0));
    CHECK(count_of(fid) == model.flen * RECORD);
    CHECK(!memcmp(all, model.records, (size_t)(model.flen * RECORD)));
    CHECK(position_of(fid) == model.position * RECORD);
}

/* READ of n records through the identity: min(n, what is left); the model calls nothing an error, the call a count of 0. */
static void reads(int fid, int n) {
    unsigned char got[20 * RECORD];
    int left = model.flen - model.position, i = n < left ? n : left;
    if (i < 0) i = 0;
    YES(ViPIOS_Read(fid, got, n * RECORD, -1));
    CHECK(count_of(fid) == i * RECORD);
    CHECK(!memcmp(got, model.records[model.position], (size_t)(i * RECORD)));
    CHECK(Vipios_IOState(fid)->is_end_of_file == (i < n));
    model.position += i;
}

static void fill(unsigned char *bytes, int n) {
    int i;
    for (i = 0; i < n; i++) bytes[i] = (unsigned char)below(256);
}

/* WRITE replaces, and the file grows only by what lies behind its end. */
static void writes(int fid, int n) {
    unsigned char new[20 * RECORD];
    int before = model.flen, end = model.position + n;
    if (end > MOST) return;
    fill(new, n * RECORD);
    YES(ViPIOS_Write(fid, new, n * RECORD, -1));
    memcpy(model.records[model.position], new, (size_t)(n * RECORD));
    model.flen = end > before ? end : before;
    model.position = end;
    CHECK(size_of(fid) == model.flen * RECORD);
}

/* INSERT moves what is behind it: the file grows by n, always. At the end it is WRITE. */
static void inserts(int fid, int n) {
    unsigned char new[20 * RECORD];
    if (model.flen + n > MOST) return;
    fill(new, n * RECORD);
    OK(ViPIOS_Insert(fid, new, n * RECORD, -1));
    CHECK(count_of(fid) == n * RECORD);
    memmove(model.records[model.position + n], model.records[model.position],
            (size_t)((model.flen - model.position) * RECORD));
    memcpy(model.records[model.position], new, (size_t)(n * RECORD));
    model.flen += n;
    model.position += n;
}

/* psi: the records of a tuple in its order; numbers may repeat. */
static void maps(int fid) {
    int64_t tuple[12], got_count;
    basic_block64 blocks[12];
    Access_Desc64 psi;
    unsigned char got[12 * RECORD], before[MOST][RECORD];
    int n = below(12), i, j, repeats = 0, answer;
    if (model.flen == 0) return;
    for (i = 0; i < n; i++) {
        tuple[i] = 1 + below(model.flen);
        for (j = 0; j < i; j++) repeats |= tuple[j] == tuple[i];
    }
    OK(ViPIOS_Describe_psi(RECORD, n, tuple, blocks, &psi));
    OK(ViPIOS_Read_struct64(fid, got, 0, &psi, 0, 0));
    OK(ViPIOS_File_get_count64(fid, &got_count));
    CHECK(got_count == n * RECORD);
    for (i = 0; i < n; i++) CHECK(!memcmp(got + i * RECORD, model.records[tuple[i] - 1], RECORD));
    /* A write goes through psi too; where psi repeats a record it has no meaning, is refused, and changes nothing. */
    fill(got, n * RECORD);
    memcpy(before, model.records, sizeof before);
    answer = ViPIOS_Write_struct64(fid, got, 0, &psi, 0, 0);
    if (repeats) {
        CHECK(answer == -VIPIOS_ERR_INVALID_ARGUMENT);
    } else {
        CHECK(answer == 0);
        for (i = 0; i < n; i++) memcpy(model.records[tuple[i] - 1], got + i * RECORD, RECORD);
    }
}

int main(int argc, char **argv) {
    int fid, step, to;
    int64_t wrong[1] = {0}, all[MOST], count;
    basic_block64 blocks[MOST];
    Access_Desc64 identity;
    static unsigned char got[MOST * RECORD];
    begin(argc, argv);
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    seed = seed * 2 + 1;
    YES(ViPIOS_Connect(0));
    fid = open_here("/model", READ_WRITE);
    CHECK(position_of(fid) == 0 && size_of(fid) == 0);
    for (step = 0; step < (argc > 3 ? atoi(argv[3]) : 150); step++) {
        switch (below(6)) {
        case 0: reads(fid, 1 + below(19)); break;
        case 1: writes(fid, 1 + below(19)); break;
        case 2: inserts(fid, 1 + below(5)); break;
        case 3: maps(fid); break;
        case 4: /* SEEK to flen succeeds */
            to = below(4) ? below(model.flen + 1) : model.flen;
            YES(ViPIOS_Seek(fid, to * RECORD, VIPIOS_SEEK_SET));
            model.position = to;
            break;
        default: /* an error changes nothing */
            REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Seek(fid, -1, VIPIOS_SEEK_SET));
            REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Write(fid, "x", -1, -1));
            FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Describe_psi(RECORD, 1, wrong, blocks, &identity));
        }
        agree(fid);
    }
    CHECK(model.flen > 10);
    /* The identity is a fixed point: psi* shows the file as it is. */
    for (to = 0; to < model.flen; to++) all[to] = to + 1;
    OK(ViPIOS_Describe_psi(RECORD, model.flen, all, blocks, &identity));
    OK(ViPIOS_Read_struct64(fid, got, 0, &identity, 0, 0));
    OK(ViPIOS_File_get_count64(fid, &count));
    CHECK(count == model.flen * RECORD && !memcmp(got, model.records, (size_t)count));
    /* psi of nothing is the empty file. */
    OK(ViPIOS_Describe_psi(RECORD, 0, NULL, blocks, &identity));
    OK(ViPIOS_Read_struct64(fid, got, 0, &identity, 0, 0));
    CHECK(count_of(fid) == 0);
    /* After CLOSE every read and write fails. */
    YES(ViPIOS_Close(fid));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid, got, 1, 0));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Write(fid, got, 1, 0));
    FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Insert(fid, got, 1, 0));
    YES(ViPIOS_Disconnect());
    return end();
}
