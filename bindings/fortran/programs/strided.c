/* What strided.f90 compares with: every second row of a matrix of doubles, in Fortran's order, as a pattern made once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pario.h"

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

double strided_in_c(pario_file *file, void *base, int64_t rows, int64_t columns, int64_t times) {
    pario_pattern *entry = NULL, *column = NULL, *matrix = NULL;
    int code = pario_pattern_bytes(8, &entry) || pario_pattern_hvector((rows + 1) / 2, 1, 16, entry, &column)
               || pario_pattern_hvector(columns, 1, rows * 8, column, &matrix);
    /* The first access makes what is kept with a pattern. */
    code = code || pario_write_pattern_at(file, 0, base, matrix, 1, NULL);
    double from = now();
    for (int64_t i = 0; !code && i < times; i++)
        code = pario_write_pattern_at(file, 0, base, matrix, 1, NULL) || pario_read_pattern_at(file, 0, base, matrix, 1, NULL);
    double to = now();
    pario_pattern_free(entry);
    pario_pattern_free(column);
    pario_pattern_free(matrix);
    if (code) {
        fprintf(stderr, "%s\n", pario_last_error());
        exit(1);
    }
    return (to - from) / (double)times;
}
