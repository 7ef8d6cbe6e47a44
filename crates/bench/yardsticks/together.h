/* What MPI programs of the benchmarks share: a barrier between the processes of this host that sleeps, the time from
 * the first process that begins to the last that ends, and how they fail. It comes before the text of each.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct shared {
    pthread_barrier_t barrier;
    double begin[64], end[64];
};

static struct shared *shared;
static int rank, size;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code) MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %.*s\n", rank, what, length, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code, const char *what) {
    if (code != MPI_SUCCESS) fail(what, code);
}

static void all_here(void) { pthread_barrier_wait(&shared->barrier); }

/* Makes the barrier of all processes in a file, which goes at once. */
static void meet(const char *path) {
    int fd = -1;
    if (rank == 0) {
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || ftruncate(fd, sizeof(struct shared))) fail("cannot make the barrier", 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) fd = open(path, O_RDWR);
    if (fd < 0) fail("cannot open the barrier", 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) fail("cannot map the barrier", 0);
    close(fd);
    if (rank == 0) {
        pthread_barrierattr_t attributes;
        pthread_barrierattr_init(&attributes);
        pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&shared->barrier, &attributes, size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(path);
}

/* What all processes do between these two is timed. */
static void begin_together(void) {
    all_here();
    shared->begin[rank] = now();
}

/* Seconds from the first that began to the last that ended. */
static double end_together(void) {
    shared->end[rank] = now();
    all_here();
    double begin = shared->begin[0], end = shared->end[0];
    for (int i = 1; i < size; i++) {
        if (shared->begin[i] < begin) begin = shared->begin[i];
        if (shared->end[i] > end) end = shared->end[i];
    }
    all_here();
    return end - begin;
}

