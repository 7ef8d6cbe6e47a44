/* Arrays that change their distribution in the memory of the processes, and block-cyclic matrices with grids that are
 * given. Linked with the library.
 */
#include "check.h"

#include "../include/pario_mpi.h"

static MPI_Datatype distributed(int rows, int columns, const int *grid, const int *kinds, const int *blocks) {
    int sizes[2] = {rows, columns};
    MPI_Datatype type;
    OK(MPI_Type_create_darray(size, rank, 2, sizes, kinds, blocks, grid, MPI_ORDER_C, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static int bytes_of(MPI_Datatype type) {
    int bytes;
    MPI_Type_size(type, &bytes);
    return bytes;
}

/* What a process has of an array whose elements are their numbers: packed by MPI itself. */
static void *part_of(MPI_Datatype type, const double *whole, int room) {
    int at = 0;
    char *part = calloc(1, (size_t)room + 1);
    MPI_Pack(whole, 1, type, part, room, &at, MPI_COMM_SELF);
    return part;
}

static void every_distribution_becomes_every_other(void) {
    enum { ROWS = 37, COLUMNS = 29, KINDS = 5 };
    int two[2] = {0, 0}, default_block = MPI_DISTRIBUTE_DFLT_DARG;
    MPI_Dims_create(size, 2, two);
    const int block = MPI_DISTRIBUTE_BLOCK, cyclic = MPI_DISTRIBUTE_CYCLIC;
    MPI_Datatype types[KINDS] = {
        distributed(ROWS, COLUMNS, (int[]){size, 1}, (int[]){block, block}, (int[]){default_block, default_block}),
        distributed(ROWS, COLUMNS, (int[]){1, size}, (int[]){block, block}, (int[]){default_block, default_block}),
        distributed(ROWS, COLUMNS, two, (int[]){block, block}, (int[]){default_block, default_block}),
        distributed(ROWS, COLUMNS, two, (int[]){cyclic, cyclic}, (int[]){3, 2}),
        distributed(ROWS, COLUMNS, (int[]){size, 1}, (int[]){cyclic, block}, (int[]){default_block, default_block}),
    };
    double whole[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) whole[i] = i + 0.5;
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < KINDS; j++) {
            int before = bytes_of(types[i]), after = bytes_of(types[j]);
            int room = before > after ? before : after;
            char *source = part_of(types[i], whole, room), *wanted = part_of(types[j], whole, room);
            char *target = calloc(1, (size_t)room + 1);
            OK(pario_redistribute_to(source, types[i], target, types[j], MPI_COMM_WORLD));
            EXPECT(memcmp(target, wanted, (size_t)after) == 0);
            OK(pario_redistribute(source, types[i], types[j], MPI_COMM_WORLD));
            EXPECT(memcmp(source, wanted, (size_t)after) == 0);
            free(source), free(wanted), free(target);
        }
    for (int i = 0; i < KINDS; i++) MPI_Type_free(&types[i]);
}

static void communicators_of_a_part_work_by_themselves(void) {
    MPI_Comm half;
    int colour = rank % 2, mine, many;
    MPI_Comm_split(MPI_COMM_WORLD, colour, rank, &half);
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &many);
    /* one byte each, turned around */
    MPI_Datatype source, target;
    int sizes[1] = {many}, one[1] = {1}, at[1] = {mine}, other[1] = {many - 1 - mine};
    OK(MPI_Type_create_subarray(1, sizes, one, at, MPI_ORDER_C, MPI_BYTE, &source));
    OK(MPI_Type_create_subarray(1, sizes, one, other, MPI_ORDER_C, MPI_BYTE, &target));
    MPI_Type_commit(&source), MPI_Type_commit(&target);
    for (int again = 0; again < 3; again++) {
        unsigned char byte = (unsigned char)(10 * colour + mine);
        OK(pario_redistribute(&byte, source, target, half));
        EXPECT_EQ(byte, 10 * colour + many - 1 - mine);
    }
    MPI_Type_free(&source), MPI_Type_free(&target);
    MPI_Comm_free(&half);
}

static void a_wrong_part_of_one_process_fails_for_all(void) {
    MPI_Datatype good, backwards;
    OK(MPI_Type_contiguous(8, MPI_BYTE, &good));
    OK(MPI_Type_create_hvector(2, 4, -8, MPI_BYTE, &backwards));
    MPI_Type_commit(&good), MPI_Type_commit(&backwards);
    char buf[64] = {0};
    REFUSED(pario_redistribute(buf, rank == size - 1 ? backwards : good, good, MPI_COMM_WORLD));
    OK(pario_redistribute(buf, good, good, MPI_COMM_WORLD));
    MPI_Type_free(&good), MPI_Type_free(&backwards);
}

/* Rows or columns below `count` that a process of a grid has. */
static int owned(int count, int block, int mine, int first, int processes) {
    int n = 0;
    for (int g = 0; g < count; g++) n += (g / block + first) % processes == mine;
    return n;
}

static void block_cyclic_matrices_change_blocks_and_grids(void) {
    enum { M = 23, N = 19 };
    int two[2] = {0, 0};
    MPI_Dims_create(size, 2, two);
    /* a on a grid of two dimensions, b on a row of processes without the last one */
    struct pario_grid ga = {two[0], two[1], rank / two[1], rank % two[1]};
    int fewer = size > 1 ? size - 1 : 1;
    struct pario_grid gb = {1, fewer, rank < fewer ? 0 : -1, rank < fewer ? rank : -1};
    int da[9] = {1, 0, M, N, 3, 2, two[0] - 1, 0, owned(M, 3, ga.row, two[0] - 1, two[0]) + 1};
    int db[9] = {1, 0, M + 4, N + 5, 5, 4, 0, fewer - 1, M + 6};
    double a[(M + 8) * (N + 8)], b[(M + 8) * (N + 8)];
    for (unsigned i = 0; i < sizeof a / sizeof *a; i++) a[i] = -1, b[i] = -2;
    for (int j = 0, lj = 0; j < N; j++) {
        if ((j / 2) % two[1] != ga.column) continue;
        for (int i = 0, li = 0; i < M; i++)
            if ((i / 3 + two[0] - 1) % two[0] == ga.row) a[lj * da[8] + li++] = 1000 * i + j;
        lj++;
    }
    const int ia = 4, ja = 3, ib = 2, jb = 6, m = 15, n = 12;
    OK(pario_gemr2d(m, n, sizeof(double), a, ia, ja, da, &ga, b, ib, jb, db, &gb, MPI_COMM_WORLD));
    if (rank < fewer)
        for (int j = 0, lj = 0; j < N + 5; j++) {
            if ((j / 4 + fewer - 1) % fewer != gb.column) continue;
            for (int i = 0; i < M + 4; i++) {
                int si = i - (ib - 1), sj = j - (jb - 1);
                int inside = si >= 0 && si < m && sj >= 0 && sj < n;
                double wanted = inside ? 1000 * (si + ia - 1) + sj + ja - 1 : -2;
                if (b[lj * db[8] + i] != wanted)
                    complain(__FILE__, __LINE__, "(%d, %d) is %g, not %g", i, j, b[lj * db[8] + i], wanted);
            }
            lj++;
        }
    FAILS(MPI_ERR_ARG, pario_gemr2d(M + 9, 1, 8, a, 1, 1, da, &ga, b, 1, 1, db, &gb, MPI_COMM_WORLD));
}

static const Case cases[] = {
    {"every_distribution_becomes_every_other", every_distribution_becomes_every_other},
    {"communicators_of_a_part_work_by_themselves", communicators_of_a_part_work_by_themselves},
    {"a_wrong_part_of_one_process_fails_for_all", a_wrong_part_of_one_process_fails_for_all},
    {"block_cyclic_matrices_change_blocks_and_grids", block_cyclic_matrices_change_blocks_and_grids},
};
PROGRAM(cases)
