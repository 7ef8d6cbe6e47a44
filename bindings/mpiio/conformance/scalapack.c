/* pario_pdgemr2d beside ScaLAPACK's own pdgemr2d: the same arguments, the same matrix. Linked with ScaLAPACK. */
#include "check.h"

#include "../include/pario_mpi.h"

extern void Cblacs_pinfo(int *mine, int *count);
extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
extern void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
extern void Cblacs_gridexit(int context);
extern void Cpdgemr2d(int m, int n, double *a, int ia, int ja, int *desca, double *b, int ib, int jb, int *descb, int context);
extern int numroc_(const int *n, const int *block, const int *mine, const int *first, const int *processes);

static int local(int n, int block, int mine, int processes) {
    int first = 0;
    return numroc_(&n, &block, &mine, &first, &processes);
}

static void pdgemr2d_and_its_stand_in_agree(void) {
    enum { M = 31, N = 26 };
    int two[2] = {0, 0}, all, ca, cb, mine, count;
    Cblacs_pinfo(&mine, &count);
    MPI_Dims_create(size, 2, two);
    Cblacs_get(-1, 0, &all), ca = cb = all;
    Cblacs_gridinit(&all, "R", 1, size);
    Cblacs_gridinit(&ca, "R", two[0], two[1]);
    Cblacs_gridinit(&cb, "C", size, 1);
    int rows, columns, ra, qa, rb, qb;
    Cblacs_gridinfo(ca, &rows, &columns, &ra, &qa);
    int la = local(M, 4, ra, two[0]), wa = local(N, 3, qa, two[1]);
    Cblacs_gridinfo(cb, &rows, &columns, &rb, &qb);
    int lb = local(M, 5, rb, size), wb = local(N, 7, qb, 1);
    int da[9] = {1, ca, M, N, 4, 3, 0, 0, la > 1 ? la : 1}, db[9] = {1, cb, M, N, 5, 7, 0, 0, lb > 1 ? lb : 1};
    double *a = calloc((size_t)la * wa + 1, sizeof *a);
    double *ours = calloc((size_t)lb * wb + 1, sizeof *a), *theirs = calloc((size_t)lb * wb + 1, sizeof *a);
    for (int i = 0; i < la * wa; i++) a[i] = 1000 * rank + i;
    Cpdgemr2d(M - 6, N - 4, a, 3, 2, da, theirs, 5, 4, db, all);
    OK(pario_pdgemr2d(M - 6, N - 4, a, 3, 2, da, ours, 5, 4, db, all));
    EXPECT(memcmp(ours, theirs, (size_t)lb * wb * sizeof *a) == 0);
    Cpdgemr2d(M, N, a, 1, 1, da, theirs, 1, 1, db, all);
    OK(pario_pdgemr2d(M, N, a, 1, 1, da, ours, 1, 1, db, all));
    EXPECT(memcmp(ours, theirs, (size_t)lb * wb * sizeof *a) == 0);
    free(a), free(ours), free(theirs);
    Cblacs_gridexit(ca), Cblacs_gridexit(cb), Cblacs_gridexit(all);
}

static const Case cases[] = {
    {"pdgemr2d_and_its_stand_in_agree", pdgemr2d_and_its_stand_in_agree},
};
PROGRAM(cases)
