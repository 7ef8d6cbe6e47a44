/* Successive over-relaxation as programs for TreadMarks have it: a grid of ROWS x COLUMNS numbers is read from a parallel file, red
 * and black elements are relaxed in turns by bands of rows, and the grid is written to another parallel file.
 *
 *     PARIO_URL=dir:data PARIO_TMK_PROCESSES=4 ./sor_tmk /in /out
 *
 * Prints, for every process, its number and the pages it fetched up to the first barrier of the computation. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "pario_tmk.h"

enum { ROWS = 2000, COLUMNS = 1000, ITERATIONS = 2, BYTES = ROWS * COLUMNS * (int)sizeof(float) };

static float (*grid)[COLUMNS];
static unsigned *count;

static void check(int outcome, const char *what)
{
    if (outcome < 0) {
        fprintf(stderr, "%s: %s\n", what, pario_last_error());
        exit(1);
    }
}

static void sweep(int begin, int end, int colour)
{
    for (int row = begin; row < end; row++)
        for (int column = 1 + (row + colour) % 2; column < COLUMNS - 1; column += 2)
            grid[row][column] = (float)(((double)grid[row - 1][column] + (double)grid[row][column - 1] +
                                         (double)grid[row][column + 1] + (double)grid[row + 1][column]) /
                                        4.0);
}

int main(int argc, char **argv)
{
    int in = -1;
    Tmk_startup(argc, argv);
    if (argc != 3) {
        fprintf(stderr, "give the names of two files\n");
        Tmk_exit(2);
    }
    if (Tmk_proc_id == 0) {
        grid = Tmk_malloc(BYTES);
        count = Tmk_malloc(sizeof *count);
        Tmk_distribute(&grid, sizeof grid);
        Tmk_distribute(&count, sizeof count);
        check(in = PIO_open(argv[1], O_RDONLY), "open");
        int got = PIO_read(in, (char *)grid, BYTES);
        check(got == BYTES ? 0 : -1, "read");
    }
    Tmk_barrier(0);

    int me = (int)Tmk_proc_id, all = (int)Tmk_nprocs;
    int begin = me * ROWS / all, end = (me + 1) * ROWS / all;
    if (begin == 0)
        begin = 1;
    if (end == ROWS)
        end = ROWS - 1;
    uint64_t fetches = pario_tmk_fetches();
    for (int half = 0; half < 2 * ITERATIONS; half++) {
        sweep(begin, end, half % 2);
        if (half == 0)
            fetches = pario_tmk_fetches() - fetches;
        Tmk_barrier(1);
    }

    /* All have counted when the last one has. */
    Tmk_lock_acquire(0);
    *count += 1;
    Tmk_lock_release(0);
    Tmk_barrier(2);
    if (*count != (unsigned)all) {
        fprintf(stderr, "%u of %d have counted\n", *count, all);
        exit(1);
    }
    if (me == 0) {
        int out;
        check(PIO_learn(in), "learn");
        check(PIO_close(in), "close");
        check(out = PIO_open(argv[2], O_WRONLY | O_TRUNC), "open");
        check(PIO_write(out, (char *)grid, BYTES) == BYTES ? 0 : -1, "write");
        check(PIO_close(out), "close");
        Tmk_free(count);
        Tmk_free(grid);
    }
    printf("process %d fetched %llu\n", me, (unsigned long long)fetches);
    fflush(stdout);
    Tmk_exit(0);
}
