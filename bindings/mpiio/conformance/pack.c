/* MPI_Pack and MPI_Unpack with PARIO_MPI_PACK=on beside the MPI's own: random datatypes, positions and counts, all bytes of
 * both sides compared, and what has to be refused.
 *
 *   pack [FILTER...]      PARIO_SEED=N repeats a run, PARIO_ROUNDS=N says how many types there are
 *   PACKED_BY=host        nothing may run on Pario's kernels: without the library, or without being asked
 *
 * The MPI's own functions are looked up in its library: the names here are taken over. The type map of typemap.h judges
 * both of them where it ascends.
 */
#define _GNU_SOURCE
#include "typemap.h"
#include <dlfcn.h>

enum { ARENA = 1 << 18, MIDDLE = ARENA / 2, ROOM = 1 << 17 };

typedef int (*Pack)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
typedef int (*Unpack)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
static Pack host_pack;
static Unpack host_unpack;

static long long done_by_pario(void) {
    long long (*count)(void);
    *(void **)&count = dlsym(RTLD_DEFAULT, "pario_pack_count");
    return count ? count() : 0;
}

static int by_pario(void) {
    const char *by = getenv("PACKED_BY");
    return !by || strcmp(by, "host");
}

/* The MPI's own functions. */
static void find_host(void) {
    Dl_info info;
    void *library;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (host_pack)
        return;
    if (!dladdr(dlsym(RTLD_DEFAULT, "MPI_Init"), &info) || !(library = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW))) {
        complain(__FILE__, __LINE__, "the library of the MPI is not found");
        return;
    }
    *(void **)&host_pack = dlsym(library, "PMPI_Pack");
    *(void **)&host_unpack = dlsym(library, "PMPI_Unpack");
    EXPECT(host_pack && host_unpack);
    if (by_pario())
        EXPECT((void *)host_pack != dlsym(RTLD_DEFAULT, "PMPI_Pack"));
}

static unsigned char *memory, *ours, *theirs, *back_ours, *back_theirs;

static void make_arenas(void) {
    if (!memory) {
        memory = malloc(ARENA), back_ours = malloc(ARENA), back_theirs = malloc(ARENA);
        ours = malloc(ROOM), theirs = malloc(ROOM);
    }
    fill(memory, ARENA, rank + 1);
}

static long long first_difference(const unsigned char *a, const unsigned char *b, long long length) {
    long long i;
    for (i = 0; i < length; i++)
        if (a[i] != b[i])
            return i;
    return -1;
}

/* Whether a byte of memory comes twice: then nothing may be unpacked there, and Open MPI does it differently each time. */
static int overlaps(const Type *map, int count) {
    static unsigned char taken[ARENA];
    int c, k, b;
    memset(taken, 0, sizeof taken);
    for (c = 0; c < count; c++)
        for (k = 0; k < map->count; k++)
            for (b = 0; b < map->items[k].bytes; b++)
                if (taken[MIDDLE + c * map->extent + map->items[k].at + b]++)
                    return 1;
    return 0;
}

/* Packs and unpacks on both ways, one after the other, into the same place. */
static void compare(MPI_Datatype type, const Type *map, int count, long long bytes, int at, const char *text) {
    int position_ours = at, position_theirs = at, size_ours = -1;
    long long differs;
    memset(ours, 0xa5, ROOM), memset(theirs, 0xa5, ROOM);
    OK(host_pack(memory + MIDDLE, count, type, theirs, ROOM, &position_theirs, MPI_COMM_WORLD));
    OK(MPI_Pack(memory + MIDDLE, count, type, ours, ROOM, &position_ours, MPI_COMM_WORLD));
    EXPECT_EQ(position_theirs, at + bytes);
    if (position_ours != position_theirs)
        complain(__FILE__, __LINE__, "%d of %s: packed up to %d, by the MPI up to %d", count, text, position_ours, position_theirs);
    if ((differs = first_difference(ours, theirs, ROOM)) >= 0)
        complain(__FILE__, __LINE__, "%d of %s at %d: packed byte %lld is %d, of the MPI %d", count, text, at, differs, ours[differs], theirs[differs]);
    OK(MPI_Pack_size(count, type, MPI_COMM_WORLD, &size_ours));
    EXPECT(size_ours >= bytes);
    if (map && overlaps(map, count))
        return;
    memset(back_ours, 0x5a, ARENA), memset(back_theirs, 0x5a, ARENA);
    position_ours = position_theirs = at;
    /* What one has packed the other unpacks. */
    OK(host_unpack(ours, ROOM, &position_theirs, back_theirs + MIDDLE, count, type, MPI_COMM_WORLD));
    OK(MPI_Unpack(theirs, ROOM, &position_ours, back_ours + MIDDLE, count, type, MPI_COMM_WORLD));
    EXPECT_EQ(position_ours, position_theirs);
    if ((differs = first_difference(back_ours, back_theirs, ARENA)) >= 0)
        complain(__FILE__, __LINE__, "%d of %s: unpacked byte %lld is %d, of the MPI %d", count, text, differs - MIDDLE, back_ours[differs], back_theirs[differs]);
}

/* Packed bytes are those of the type map, where it ascends: Open MPI takes neighbours in descending order for one block. */
static void judge(const Type *type, int count, int at) {
    long long done = at;
    int c, k;
    for (k = 1; k < type->count; k++)
        if (type->items[k].at < type->items[k - 1].at)
            return;
    for (c = 0; c < count && !case_failed; c++)
        for (k = 0; k < type->count; k++) {
            const Item *item = &type->items[k];
            if (memcmp(ours + done, memory + MIDDLE + c * type->extent + item->at, (size_t)item->bytes))
                complain(__FILE__, __LINE__, "%d of %s: element %d of copy %d is not what the type map says", count, type->text, k, c);
            done += item->bytes;
        }
}

static void random_types(void) {
    Random random = {getenv("PARIO_SEED") ? strtoull(getenv("PARIO_SEED"), NULL, 10) : 1};
    int rounds = getenv("PARIO_ROUNDS") ? atoi(getenv("PARIO_ROUNDS")) : 1500, round;
    long long before = done_by_pario();
    random.state += (uint64_t)rank << 32;
    find_host(), make_arenas();
    for (round = 0; round < rounds && !case_failed; round++) {
        Type *leaf = any_basic(&random);
        Type *type = random_type(&random, leaf, chance(&random, 40) ? IN_FILE : MEMORY, between(&random, 1, 4));
        int turn;
        for (turn = 0; turn < 3 && !case_failed; turn++) {
            int count = between(&random, 0, 4), at = below(&random, 50);
            /* MPICH divides by the size of empty types. */
            if (count * type->bytes == 0 || count * type->bytes + at > ROOM || WIDEST * (count + 1) > MIDDLE)
                continue;
            compare(type->handle, type, count, count * type->bytes, at, type->text);
            judge(type, count, at);
        }
        free_type(type);
        free_type(leaf);
    }
    if (by_pario())
        EXPECT(done_by_pario() - before > rounds / 4);
    else
        EXPECT_EQ(done_by_pario(), 0);
}

/* Every predefined type, alone and with a hole behind it. */
static void every_predefined_type(void) {
    MPI_Datatype all[] = {
        MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_WCHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED,
        MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_BOOL,
        MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T,
        MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_PACKED,
        MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT};
    size_t i;
    find_host(), make_arenas();
    for (i = 0; i < sizeof all / sizeof *all && !case_failed; i++) {
        MPI_Datatype types[3] = {all[i]};
        char name[MPI_MAX_OBJECT_NAME];
        int length, bytes, k;
        MPI_Type_get_name(all[i], name, &length);
        MPI_Type_size(all[i], &bytes);
        MPI_Type_vector(5, 2, 3, all[i], &types[1]);
        MPI_Type_contiguous(4, all[i], &types[2]);
        MPI_Type_commit(&types[1]), MPI_Type_commit(&types[2]);
        for (k = 0; k < 3; k++) {
            int each = k == 0 ? 1 : k == 1 ? 10 : 4, count;
            for (count = 1; count < 5; count++)
                compare(types[k], NULL, count, (long long)count * each * bytes, count, name);
        }
        MPI_Type_free(&types[1]), MPI_Type_free(&types[2]);
    }
}

/* Handles come again for other types: what was known of the old ones must not be used. */
static void handles_come_again(void) {
    int i;
    find_host(), make_arenas();
    for (i = 0; i < 200 && !case_failed; i++) {
        MPI_Datatype type;
        int turn;
        MPI_Type_vector(2 + i % 5, 1, 2 + i % 3, i % 2 ? MPI_INT : MPI_SHORT, &type);
        MPI_Type_commit(&type);
        for (turn = 0; turn < 2; turn++)
            compare(type, NULL, 1, (2 + i % 5) * (i % 2 ? 4 : 2), 0, "a vector");
        MPI_Type_free(&type);
    }
}

/* What is out of order is the MPI's affair: its answer, its position, and its bytes. Not every MPI looks at sizes. */
static void as_the_host_answers(int size, int at, int count, MPI_Datatype type, MPI_Comm comm) {
    int mine = at, other = at, code, wanted;
    memset(ours, 0x11, ROOM), memset(theirs, 0x11, ROOM);
    code = class_of(MPI_Pack(memory, count, type, ours, size, &mine, comm));
    wanted = class_of(host_pack(memory, count, type, theirs, size, &other, comm));
    EXPECT_EQ(code, wanted);
    EXPECT_EQ(mine, other);
    EXPECT_EQ(first_difference(ours, theirs, ROOM), -1);
    mine = other = at;
    memset(back_ours, 0x22, ARENA), memset(back_theirs, 0x22, ARENA);
    code = class_of(MPI_Unpack(ours, size, &mine, back_ours, count, type, comm));
    wanted = class_of(host_unpack(ours, size, &other, back_theirs, count, type, comm));
    EXPECT_EQ(code, wanted);
    EXPECT_EQ(mine, other);
    EXPECT_EQ(first_difference(back_ours, back_theirs, ARENA), -1);
}

static void mistakes_are_the_hosts(void) {
    MPI_Datatype type;
    int position, turn;
    find_host(), make_arenas();
    MPI_Type_vector(4, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (turn = 0; turn < 3; turn++) {
        position = 0;
        OK(MPI_Pack(memory, 1, type, ours, ROOM, &position, MPI_COMM_WORLD));
    }
    as_the_host_answers(20, 8, 1, type, MPI_COMM_WORLD);
    as_the_host_answers(16, 0, 1, type, MPI_COMM_WORLD);
    as_the_host_answers(ROOM, 0, -1, type, MPI_COMM_WORLD);
    as_the_host_answers(ROOM, 0, 1, MPI_DATATYPE_NULL, MPI_COMM_WORLD);
    as_the_host_answers(ROOM, 0, 1, type, MPI_COMM_NULL);
    MPI_Type_free(&type);
}

/* The large form, of MPIs that have it. */
static void large_counts(void) {
#if MPI_VERSION >= 4
    MPI_Datatype type;
    MPI_Count position;
    int turn, small;
    find_host(), make_arenas();
    MPI_Type_vector(100, 3, 7, MPI_SHORT, &type);
    MPI_Type_commit(&type);
    memset(theirs, 0, ROOM);
    small = 9;
    OK(host_pack(memory, 2, type, theirs, ROOM, &small, MPI_COMM_WORLD));
    for (turn = 0; turn < 3; turn++) {
        memset(ours, 0, ROOM);
        position = 9;
        OK(MPI_Pack_c(memory, 2, type, ours, ROOM, &position, MPI_COMM_WORLD));
        EXPECT_EQ(position, small);
        EXPECT_EQ(first_difference(ours, theirs, ROOM), -1);
        memset(back_ours, 0, ARENA);
        position = 9;
        OK(MPI_Unpack_c(ours, ROOM, &position, back_ours, 2, type, MPI_COMM_WORLD));
        EXPECT_EQ(position, small);
        EXPECT_EQ(memcmp(back_ours, memory, 6), 0);
        EXPECT_EQ(back_ours[6], 0);
    }
    MPI_Type_free(&type);
#endif
}

/* Addresses instead of a buffer. */
static void absolute_addresses(void) {
    MPI_Datatype type;
    MPI_Aint places[3];
    int lengths[3] = {2, 1, 3}, turn;
    find_host(), make_arenas();
    MPI_Get_address(memory + 100, &places[0]);
    MPI_Get_address(memory + 40, &places[1]);
    MPI_Get_address(memory + 9000, &places[2]);
    MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (turn = 0; turn < 3; turn++) {
        int position = 0, other = 0;
        memset(ours, 0, ROOM), memset(theirs, 0, ROOM);
        /* MPICH takes MPI_BOTTOM for a mistake here. */
        if (host_pack(MPI_BOTTOM, 1, type, theirs, ROOM, &other, MPI_COMM_WORLD) != MPI_SUCCESS) {
            REFUSED(MPI_Pack(MPI_BOTTOM, 1, type, ours, ROOM, &position, MPI_COMM_WORLD));
            break;
        }
        OK(MPI_Pack(MPI_BOTTOM, 1, type, ours, ROOM, &position, MPI_COMM_WORLD));
        EXPECT_EQ(position, other);
        EXPECT_EQ(first_difference(ours, theirs, ROOM), -1);
    }
    MPI_Type_free(&type);
}

/* A run of this is what Pario's own answers would be without one call on its kernels. */
static void who_packs(void) {
    MPI_Datatype type;
    long long before = done_by_pario();
    int turn;
    find_host(), make_arenas();
    MPI_Type_vector(64, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (turn = 0; turn < 5; turn++) {
        int position = 0;
        OK(MPI_Pack(memory, 1, type, ours, ROOM, &position, MPI_COMM_WORLD));
        position = 0;
        OK(MPI_Pack(memory, 8, MPI_DOUBLE, ours, ROOM, &position, MPI_COMM_WORLD));
    }
    MPI_Type_free(&type);
    /* All but the first one with the type. */
    EXPECT_EQ(done_by_pario() - before, by_pario() ? 4 : 0);
}

int main(int argc, char **argv) {
    static const Case cases[] = {
        {"pack.random_types", random_types},
        {"pack.every_predefined_type", every_predefined_type},
        {"pack.handles_come_again", handles_come_again},
        {"pack.large_counts", large_counts},
        {"pack.absolute_addresses", absolute_addresses},
        {"pack.who_packs", who_packs},
        {"pack.mistakes_are_the_hosts", mistakes_are_the_hosts},
    };
    return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
