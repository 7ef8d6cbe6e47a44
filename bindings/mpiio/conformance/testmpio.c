/* The suite Testmpio as the specification of source 004 describes it (section 4.1), written anew: its eleven
 * tests, then those that ViMPIOS could not run. Statement 87. Two ranks or more. */
#include "check.h"

static void sync_all(MPI_File file) {
    OK(MPI_File_sync(file));
    barrier();
    OK(MPI_File_sync(file));
}

static void manycomms(void) {
    /* Groups within groups, a file for each, all open at once, closed in another order. */
    enum { DEPTH = 5 };
    static const int order[DEPTH] = {2, 4, 0, 3, 1};
    MPI_Comm comms[DEPTH];
    MPI_File files[DEPTH];
    MPI_Status status;
    char what[32];
    int i, flag;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    for (i = 1; i < DEPTH; i++) {
        int r;
        MPI_Comm_rank(comms[i - 1], &r);
        MPI_Comm_split(comms[i - 1], r % 2, r, &comms[i]);
    }
    for (i = 0; i < DEPTH; i++) {
        int first = rank;
        MPI_Bcast(&first, 1, MPI_INT, 0, comms[i]);
        snprintf(what, sizeof what, "%d-of-%d", i, first);
        files[i] = open_as(comms[i], what, NEW_MODE);
        OK(MPI_File_set_atomicity(files[i], i % 2));
        OK(MPI_File_get_atomicity(files[i], &flag));
        EXPECT_EQ(flag, i % 2);
    }
    for (i = 0; i < DEPTH; i++) {
        MPI_File file = files[order[i]];
        MPI_Comm comm = comms[order[i]];
        int r, n, value, back = -1;
        MPI_Comm_rank(comm, &r);
        MPI_Comm_size(comm, &n);
        value = 1000 * order[i] + r;
        OK(MPI_File_write_at_all(file, 4 * r, &value, 1, MPI_INT, &status));
        OK(MPI_File_sync(file));
        MPI_Barrier(comm);
        OK(MPI_File_sync(file));
        OK(MPI_File_read_at_all(file, 4 * ((r + 1) % n), &back, 1, MPI_INT, &status));
        EXPECT_EQ(back, 1000 * order[i] + (r + 1) % n);
        OK(MPI_File_close(&files[order[i]]));
    }
    for (i = DEPTH - 1; i >= 0; i--)
        MPI_Comm_free(&comms[i]);
    barrier();
}

static void openmodes(void) {
    MPI_File file;
    MPI_Status status;
    char byte = 5, back = 0;
    discard("x");
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_write_at(file, rank, &byte, 1, MPI_BYTE, &status));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, rank, &back, 1, MPI_BYTE, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY);
    OK(MPI_File_read_at(file, rank, &back, 1, MPI_BYTE, &status));
    EXPECT_EQ(back, 5);
    REFUSED(MPI_File_write_at(file, rank, &byte, 1, MPI_BYTE, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_close(&file));
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, file_name("x"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

static void manyopens(void) {
    enum { FILES = 40, BYTES = 200 };
    static MPI_File files[FILES];
    unsigned char values[BYTES], back[BYTES];
    MPI_Status status;
    char what[16];
    int i, k;
    for (i = 0; i < FILES; i++) {
        snprintf(what, sizeof what, "%d", i);
        files[i] = open_as(MPI_COMM_WORLD, what, MPI_MODE_CREATE | MPI_MODE_RDWR);
        fill(values, BYTES, 100 * i + rank);
        OK(MPI_File_write_at(files[i], BYTES * rank, values, BYTES, MPI_BYTE, &status));
    }
    for (i = 0; i < FILES; i++) {
        k = (i * 13 + 5) % FILES;
        fill(values, BYTES, 100 * k + rank);
        OK(MPI_File_read_at(files[k], BYTES * rank, back, BYTES, MPI_BYTE, &status));
        EXPECT(memcmp(values, back, BYTES) == 0);
        if (i % 2)
            OK(MPI_File_close(&files[k]));
    }
    /* More of them, of another mode, in the places that became free; then all go. */
    for (i = 1; i < FILES; i += 2) {
        k = (i * 13 + 5) % FILES;
        snprintf(what, sizeof what, "%d", k);
        files[k] = open_as(MPI_COMM_WORLD, what, MPI_MODE_RDONLY);
        fill(values, BYTES, 100 * k + rank);
        OK(MPI_File_read_at(files[k], BYTES * rank, back, BYTES, MPI_BYTE, &status));
        EXPECT(memcmp(values, back, BYTES) == 0);
    }
    for (i = 0; i < FILES; i++)
        OK(MPI_File_close(&files[i]));
    barrier();
    if (rank == 0)
        for (i = 0; i < FILES; i++) {
            snprintf(what, sizeof what, "%d", i);
            OK(MPI_File_delete(file_name(what), MPI_INFO_NULL));
        }
    barrier();
}

static void openclose(void) {
    MPI_File file, never = MPI_FILE_NULL;
    int i;
    for (i = 0; i < 10; i++) {
        file = new_file("x");
        OK(MPI_File_close(&file));
    }
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, file_name("x"), MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, file_name("x"), MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_FILE, MPI_File_close(&never));
}

static void readwrite(void) {
    enum { BYTES = 100003 };
    unsigned char *values = malloc(BYTES), *back = calloc(1, BYTES);
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Offset length = -1;
    fill(values, BYTES, rank);
    OK(MPI_File_write_at(file, (MPI_Offset)BYTES * rank, values, BYTES, MPI_BYTE, &status));
    EXPECT_EQ(count_of(&status, MPI_BYTE), BYTES);
    OK(MPI_File_seek(file, (MPI_Offset)BYTES * rank, MPI_SEEK_SET));
    OK(MPI_File_read(file, back, BYTES, MPI_BYTE, &status));
    EXPECT_EQ(count_of(&status, MPI_BYTE), BYTES);
    EXPECT(memcmp(values, back, BYTES) == 0);
    sync_all(file);
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, (long long)BYTES * size);
    free(values);
    free(back);
    OK(MPI_File_close(&file));
}

/* Collective access through derived file types, memory of a contiguous derived type; blocking or not. */
static void through_types(int blocking) {
    enum { BLOCKS = 50, LENGTH = 3 };
    MPI_File file = new_file("x");
    MPI_Datatype block, filetype, memory;
    MPI_Request request;
    MPI_Status status;
    int values[BLOCKS * LENGTH], back[BLOCKS * LENGTH], i;
    MPI_Type_vector(BLOCKS, LENGTH, LENGTH * size, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)sizeof(int) * BLOCKS * LENGTH * size, &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_contiguous(LENGTH, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    for (i = 0; i < BLOCKS * LENGTH; i++)
        values[i] = 10000 * rank + i;
    OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * LENGTH * rank, MPI_INT, filetype, "native", MPI_INFO_NULL));
    if (blocking)
        OK(MPI_File_write_all(file, values, BLOCKS, memory, &status));
    else {
        OK(MPI_File_iwrite_all(file, values, BLOCKS, memory, &request));
        OK(MPI_Wait(&request, &status));
    }
    EXPECT_EQ(count_of(&status, memory), BLOCKS);
    sync_all(file);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    memset(back, 0, sizeof back);
    if (blocking)
        OK(MPI_File_read_all(file, back, BLOCKS, memory, &status));
    else {
        OK(MPI_File_iread(file, back, BLOCKS, memory, &request));
        OK(MPI_Wait(&request, &status));
    }
    EXPECT(memcmp(values, back, sizeof values) == 0);
    /* Everybody's, plainly. */
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (i = 0; i < BLOCKS * size; i += 7) {
        int three[LENGTH];
        OK(MPI_File_read_at(file, (MPI_Offset)i * LENGTH, three, LENGTH, MPI_INT, &status));
        EXPECT_EQ(three[1], 10000 * (i % size) + i / size * LENGTH + 1);
    }
    MPI_Type_free(&block);
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory);
    OK(MPI_File_close(&file));
}
static void rdwr(void) { through_types(1); }
static void nb_rdwr(void) { through_types(0); }

static void filecontrol(void) {
    MPI_Comm half;
    MPI_File file;
    MPI_Datatype every;
    MPI_Status status;
    MPI_Offset value = -1;
    int r, n, number = 3;
    char what[8];
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &r);
    MPI_Comm_size(half, &n);
    snprintf(what, sizeof what, "%d", rank % 2);
    file = open_as(half, what, NEW_MODE);
    OK(MPI_File_set_size(file, 1000));
    OK(MPI_File_get_size(file, &value));
    EXPECT_EQ(value, 1000);
    MPI_Type_create_resized(MPI_INT, 0, 12, &every);
    MPI_Type_commit(&every);
    OK(MPI_File_set_view(file, 40, MPI_INT, every, "native", MPI_INFO_NULL));
    OK(MPI_File_seek(file, 5 + r, MPI_SEEK_SET));
    OK(MPI_File_get_position(file, &value));
    EXPECT_EQ(value, 5 + r);
    OK(MPI_File_get_byte_offset(file, 5 + r, &value));
    EXPECT_EQ(value, 40 + 12 * (5 + r));
    OK(MPI_File_write(file, &number, 1, MPI_INT, &status));
    OK(MPI_File_get_position(file, &value));
    EXPECT_EQ(value, 6 + r);
    OK(MPI_File_set_view(file, 4, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position(file, &value));
    EXPECT_EQ(value, 0);
    OK(MPI_File_get_byte_offset(file, 7, &value));
    EXPECT_EQ(value, 60);
    OK(MPI_File_get_size(file, &value));
    EXPECT_EQ(value, 1000);
    MPI_Type_free(&every);
    OK(MPI_File_close(&file));
    MPI_Comm_free(&half);
    barrier();
}

#define WRITE(buffer, count, type) \
    do { \
        if (nonblocking) { \
            OK(MPI_File_iwrite(file, buffer, count, type, &request)); \
            OK(MPI_Wait(&request, &status)); \
        } else \
            OK(MPI_File_write(file, buffer, count, type, &status)); \
    } while (0)
#define READ(buffer, count, type) \
    do { \
        if (nonblocking) { \
            OK(MPI_File_iread(file, buffer, count, type, &request)); \
            OK(MPI_Wait(&request, &status)); \
        } else \
            OK(MPI_File_read(file, buffer, count, type, &status)); \
    } while (0)

static void pointers(int nonblocking) {
    MPI_File file = new_file("x");
    MPI_Datatype rows, filetype;
    MPI_Request request;
    MPI_Status status;
    MPI_Offset position;
    int values[10], back[30], i, round, lengths[3] = {1, 2, 1}, places[3] = {0, 2, 7};
    for (i = 0; i < 10; i++)
        values[i] = 100 * rank + i + 1;
    for (round = 0; round < 3; round++) {
        /* Displacements of their own; then ten items, a hole of five, ten more. */
        OK(MPI_File_set_view(file, 4000 * rank + 40 * round, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_File_set_size(file, 0));
        barrier();
        WRITE(values, 10, MPI_INT);
        OK(MPI_File_seek(file, 5, MPI_SEEK_CUR));
        WRITE(values, 10, MPI_INT);
        OK(MPI_File_get_position(file, &position));
        EXPECT_EQ(position, 25);
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        memset(back, 7, sizeof back);
        READ(back, 25, MPI_INT);
        EXPECT_EQ(count_of(&status, MPI_INT), 25);
        for (i = 0; i < 25; i++)
            EXPECT_EQ(back[i], i < 10 ? values[i] : i < 15 ? 0 : values[i - 15]);
        sync_all(file);
    }
    /* The same through a view with holes, nested. */
    MPI_Type_indexed(3, lengths, places, MPI_INT, &rows);
    MPI_Type_vector(2, 1, 2, rows, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 8000 * rank, MPI_INT, filetype, "native", MPI_INFO_NULL));
    WRITE(values, 10, MPI_INT);
    OK(MPI_File_seek(file, 5, MPI_SEEK_CUR));
    WRITE(values, 10, MPI_INT);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    READ(back, 25, MPI_INT);
    EXPECT_EQ(count_of(&status, MPI_INT), 25);
    for (i = 0; i < 25; i++)
        EXPECT_EQ(back[i], i < 10 ? values[i] : i < 15 ? 0 : values[i - 15]);
    /* A view whose parts do not fit together. */
    REFUSED(MPI_File_set_view(file, 0, MPI_DOUBLE, rows, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Type_free(&rows);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&file));
}
static void localpointer(void) { pointers(0); }
static void nb_localpointer(void) { pointers(1); }

static void collective(void) {
    /* Interleaved by explicit offsets, of a size of its own each, in several rounds. */
    MPI_File file = new_file("x");
    MPI_Status status;
    int round, unit = 0, before = 0, i;
    unsigned char values[4000], back[4000];
    for (i = 0; i < size; i++) {
        if (i < rank)
            before += 100 * (i + 1);
        unit += 100 * (i + 1);
    }
    for (round = 0; round < 6; round++) {
        MPI_Offset at = (MPI_Offset)round * unit + before;
        fill(values, 100 * (rank + 1), 10 * round + rank);
        OK(MPI_File_write_at_all(file, at, values, 100 * (rank + 1), MPI_BYTE, &status));
        EXPECT_EQ(count_of(&status, MPI_BYTE), 100 * (rank + 1));
    }
    sync_all(file);
    for (round = 5; round >= 0; round--) {
        MPI_Offset at = (MPI_Offset)round * unit + before;
        fill(values, 100 * (rank + 1), 10 * round + rank);
        OK(MPI_File_read_at_all(file, at, back, 100 * (rank + 1), MPI_BYTE, &status));
        EXPECT(memcmp(values, back, (size_t)(100 * (rank + 1))) == 0);
    }
    OK(MPI_File_close(&file));
}

/* --- what ViMPIOS could not run --- */

static void sharedpointer(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Offset position = -1;
    int i, value, total = 10 * size, *seen = calloc((size_t)total, sizeof(int));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (i = 0; i < 10; i++) {
        value = 10 * rank + i;
        OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    }
    sync_all(file);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, total);
    barrier();
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (i = 0; i < 10; i++) {
        value = -1;
        OK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
        if (value >= 0 && value < total)
            seen[value]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < total; i++)
        EXPECT_EQ(seen[i], 1);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    value = rank;
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    sync_all(file);
    OK(MPI_File_read_at(file, rank, &value, 1, MPI_INT, &status));
    EXPECT_EQ(value, rank);
    free(seen);
    OK(MPI_File_close(&file));
}

static int handled, handled_class;
static void handler(MPI_File *file, int *code, ...) {
    (void)file;
    handled++;
    MPI_Error_class(*code, &handled_class);
}

static void errorhandling(void) {
    MPI_File file = new_file("x"), missing = MPI_FILE_NULL;
    MPI_Errhandler mine, got = MPI_ERRHANDLER_NULL;
    MPI_Status status;
    char byte = 0, text[MPI_MAX_ERROR_STRING];
    int length, code;
    /* The default returns; a handler of one's own is called with the handle and the code. */
    FAILS(MPI_ERR_COUNT, MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, &status));
    OK(MPI_File_get_errhandler(file, &got));
    EXPECT(got == MPI_ERRORS_RETURN);
    if (got != MPI_ERRORS_RETURN && got != MPI_ERRHANDLER_NULL)
        MPI_Errhandler_free(&got);
    OK(MPI_File_create_errhandler(handler, &mine));
    OK(MPI_File_set_errhandler(file, mine));
    handled = 0;
    code = MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, &status);
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(handled_class, MPI_ERR_COUNT);
    (void)code;
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    EXPECT_EQ(handled, 2);
    EXPECT_EQ(handled_class, MPI_ERR_IO);
    /* Opens and deletes have the handler of the null handle. */
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    handled = 0;
    MPI_File_open(MPI_COMM_WORLD, file_name("missing"), MPI_MODE_RDONLY, MPI_INFO_NULL, &missing);
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(handled_class, MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&mine);
    /* Texts name the operation and the file. */
    code = MPI_File_open(MPI_COMM_WORLD, file_name("missing"), MPI_MODE_RDONLY, MPI_INFO_NULL, &missing);
    MPI_Error_string(code, text, &length);
    EXPECT(strstr(text, "missing") != NULL);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPI_File_close(&file));
}

static void datareps(void) {
    static const char *const names[] = {"native", "internal", "external32"};
    MPI_File file = new_file("x");
    MPI_Status status;
    char told[MPI_MAX_DATAREP_STRING];
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    double values[6] = {1, -2, 0.5, 1e-300, 1e300, 3}, back[6];
    short shorts[5] = {1, -1, 256, 32767, -32768}, shorts_back[5];
    size_t i;
    for (i = 0; i < 3; i++) {
        OK(MPI_File_set_view(file, 1000 * rank, MPI_DOUBLE, MPI_DOUBLE, names[i], MPI_INFO_NULL));
        OK(MPI_File_get_view(file, &disp, &etype, &filetype, told));
        EXPECT(strcmp(told, names[i]) == 0);
        OK(MPI_File_write_at_all(file, 0, values, 6, MPI_DOUBLE, &status));
        OK(MPI_File_read_at_all(file, 0, back, 6, MPI_DOUBLE, &status));
        EXPECT(memcmp(values, back, sizeof values) == 0);
        OK(MPI_File_set_view(file, 1000 * rank + 100, MPI_SHORT, MPI_SHORT, names[i], MPI_INFO_NULL));
        OK(MPI_File_write_at(file, 0, shorts, 5, MPI_SHORT, &status));
        OK(MPI_File_read_at(file, 0, shorts_back, 5, MPI_SHORT, &status));
        EXPECT(memcmp(shorts, shorts_back, sizeof shorts) == 0);
    }
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external64", MPI_INFO_NULL));
    OK(MPI_File_close(&file));
}

static void sequential(void) {
    MPI_File file;
    MPI_Status status;
    int value = rank, back = -1;
    discard("x");
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_read_ordered(file, &back, 1, MPI_INT, &status));
    EXPECT_EQ(back, rank);
    OK(MPI_File_close(&file));
}

static void splitcollectives(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    int value = 40 + rank, back = -1;
    OK(MPI_File_write_at_all_begin(file, 4 * rank, &value, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &value, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 1);
    sync_all(file);
    OK(MPI_File_read_at_all_begin(file, 4 * rank, &back, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, &back, &status));
    EXPECT_EQ(back, value);
    OK(MPI_File_seek(file, 4 * rank, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, &back, 1, MPI_INT));
    OK(MPI_File_read_all_end(file, &back, &status));
    EXPECT_EQ(back, value);
    OK(MPI_File_write_ordered_begin(file, &value, 1, MPI_INT));
    OK(MPI_File_write_ordered_end(file, &value, &status));
    OK(MPI_File_close(&file));
}

static void hints(void) {
    MPI_Info info, used = MPI_INFO_NULL;
    MPI_File file = MPI_FILE_NULL;
    int count = 0, i, flag;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    MPI_Info_create(&info);
    MPI_Info_set(info, "striping_unit", "65536");
    MPI_Info_set(info, "cb_buffer_size", "1048576");
    OK(MPI_File_open(MPI_COMM_WORLD, file_name("x"), NEW_MODE, info, &file));
    OK(MPI_File_get_info(file, &used));
    MPI_Info_get_nkeys(used, &count);
    EXPECT(count > 0);
    for (i = 0; i < count; i++) {
        MPI_Info_get_nthkey(used, i, key);
        MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag);
        EXPECT(flag);
    }
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    OK(MPI_File_close(&file));
}

static const Case cases[] = {
    {"seed004_s87_manycomms", manycomms}, {"seed004_s87_openmodes", openmodes}, {"seed004_s87_manyopens", manyopens},
    {"seed004_s87_openclose", openclose}, {"seed004_s87_readwrite", readwrite}, {"seed004_s87_rdwr", rdwr},
    {"seed004_s87_filecontrol", filecontrol}, {"seed004_s87_localpointer", localpointer}, {"seed004_s87_collective", collective},
    {"seed004_s87_nb_rdwr", nb_rdwr}, {"seed004_s87_nb_localpointer", nb_localpointer},
    {"seed004_s87_sharedpointer", sharedpointer}, {"seed004_s87_errorhandling", errorhandling}, {"seed004_s87_datareps", datareps},
    {"seed004_s87_sequential", sequential}, {"seed004_s87_splitcollectives", splitcollectives}, {"seed004_s87_hints", hints},
};
PROGRAM(cases)
