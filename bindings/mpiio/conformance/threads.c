/* Requests that two threads complete at once, by every call, while a third exchanges messages. */
#include "check.h"
#include <pthread.h>

enum { PART = 300000, SMALL = 100, ROUNDS = 100 };
static MPI_File file;
static int failures[2];

static MPI_Offset place(int thread, int part) { return (MPI_Offset)((rank * 2 + thread) * 4 + part) * PART; }

static void *access_file(void *argument) {
    int me = (int)(long)argument, i, j, flag, index, *bad = &failures[me];
    char *to = malloc(4 * PART), *from = calloc(4, PART);
    MPI_Request requests[4];
    MPI_Status statuses[4];
    for (i = 0; i < ROUNDS; i++) {
        memset(to, i + me, 4 * PART);
        for (j = 0; j < 4; j++)
            *bad += MPI_File_iwrite_at(file, place(me, j), to + j * PART, j == 3 ? SMALL : PART, MPI_BYTE, &requests[j]) != 0;
        switch ((i + me) % 4) {
        case 0: *bad += MPI_Waitall(4, requests, statuses) != 0; break;
        case 1: for (j = 0; j < 4; j++) *bad += MPI_Wait(&requests[j], statuses) != 0; break;
        case 2: for (j = 0; j < 4; j++) *bad += MPI_Waitany(4, requests, &index, statuses) != 0; break;
        default: for (flag = 0; !flag;) *bad += MPI_Testall(4, requests, &flag, statuses) != 0;
        }
        for (j = 0; j < 4; j++)
            *bad += requests[j] != MPI_REQUEST_NULL;
        if (i % 10 != 0)
            continue;
        for (j = 0; j < 4; j++)
            *bad += MPI_File_iread_at(file, place(me, j), from + j * PART, j == 3 ? SMALL : PART, MPI_BYTE, &requests[j]) != 0;
        *bad += MPI_Waitall(4, requests, statuses) != 0;
        *bad += memcmp(to, from, 3 * PART + SMALL) != 0;
        /* One that is given back meanwhile. */
        *bad += MPI_File_iwrite_at(file, place(me, 0), to, PART, MPI_BYTE, &requests[0]) != 0;
        *bad += MPI_Request_free(&requests[0]) != 0;
    }
    free(from); /* `to` may still be read */
    return NULL;
}

static void *exchange(void *argument) {
    char *to = calloc(1, 1 << 20), *from = malloc(1 << 20);
    int i;
    (void)argument;
    for (i = 0; i < ROUNDS; i++) {
        MPI_Request requests[2];
        MPI_Irecv(from, 1 << 20, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(to, 1 << 20, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int level, code, bad, all = 0;
    pthread_t threads[3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (level < MPI_THREAD_MULTIPLE) {
        if (rank == 0) printf("ok threads: the library has none\n");
        MPI_Finalize();
        return 0;
    }
    case_name = "threads";
    file = new_file("x");
    pthread_create(&threads[0], 0, access_file, (void *)0);
    pthread_create(&threads[1], 0, access_file, (void *)1);
    pthread_create(&threads[2], 0, exchange, 0);
    for (code = 0; code < 3; code++)
        pthread_join(threads[code], 0);
    bad = failures[0] + failures[1] + (MPI_File_close(&file) != 0);
    MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf(all ? "FAIL threads: %d calls failed\n" : "ok threads\n", all);
    MPI_Finalize();
    return bad != 0;
}
