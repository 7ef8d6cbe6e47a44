/* Operations beside the program: many at once, in any order, from several threads, at the pointer, cancelled. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>

enum { COUNT = 40, PIECE = 5000, THREADS = 4 };

static unsigned char out[COUNT][PIECE], in[COUNT][PIECE];

static void many(pario_client *client) {
    pario_file *file = open_here(client, "/many", READ_WRITE, NULL, "striped(4KiB) over 2");
    pario_request *requests[COUNT], *one;
    uint64_t moved[COUNT], at;
    int i, j, done;
    for (i = 0; i < COUNT; i++) {
        for (j = 0; j < PIECE; j++) out[i][j] = (unsigned char)(i * 7 + j);
        OK(pario_iwrite_at(file, (uint64_t)i * PIECE, out[i], PIECE, &requests[i]));
    }
    OK(pario_wait_all(COUNT, requests, moved));
    for (i = 0; i < COUNT; i++) CHECK(moved[i] == PIECE && requests[i] == NULL);
    for (i = COUNT - 1; i >= 0; i--) OK(pario_iread_at(file, (uint64_t)i * PIECE, in[i], PIECE, &requests[i]));
    for (i = 0; i < COUNT; i++) {
        do OK(pario_test(&requests[i], &done, &moved[i]));
        while (!done);
        CHECK(moved[i] == PIECE && !memcmp(in[i], out[i], PIECE));
    }
    /* At the end it is short; one that fails says so when it is waited for. */
    OK(pario_iread_at(file, (uint64_t)COUNT * PIECE - 10, in[0], PIECE, &one));
    OK(pario_wait(&one, moved));
    CHECK(moved[0] == 10);
    /* The pointer is behind the bytes at once. */
    OK(pario_seek(file, 0, PARIO_FROM_START, NULL));
    OK(pario_iread(file, in[0], 100, &requests[0]));
    OK(pario_iread(file, in[1], 100, &requests[1]));
    OK(pario_tell(file, &at));
    CHECK(at == 200);
    OK(pario_wait_all(2, requests, moved));
    CHECK(!memcmp(in[0], out[0], 100) && !memcmp(in[1], out[0] + 100, 100));
    OK(pario_iwrite(file, in[1], 50, &one));
    OK(pario_request_free(one)); /* it goes on */
    /* A request is taken back or done, and told in any case. */
    for (i = 0; i < COUNT; i++) OK(pario_iread_at(file, 0, in[i], PIECE, &requests[i]));
    OK(pario_wait(&requests[0], &moved[0])); /* whatever becomes of the others */
    CHECK(moved[0] == PIECE);
    for (i = COUNT - 1; i > 0; i--) {
        OK(pario_cancel(requests[i], &done));
        OK(pario_wait(&requests[i], &moved[i]));
        CHECK(moved[i] == (done ? 0u : (unsigned)PIECE));
    }
    {
        pario_pattern *every_other;
        OK(pario_pattern_vector(PIECE / 2, 1, 2, NULL, &every_other));
        memset(in, 0, sizeof in);
        OK(pario_iread_pattern_at(file, PIECE, in[0], every_other, 1, &one));
        OK(pario_pattern_free(every_other)); /* the operation has it */
        OK(pario_wait(&one, moved));
        CHECK(moved[0] == PIECE / 2);
        for (i = 0; i < PIECE; i++) CHECK(in[0][i] == (i % 2 ? 0 : out[1][i / 2]));
    }
    OK(pario_close(file));
    file = open_here(client, "/many", PARIO_READ, NULL, NULL);
    OK(pario_iwrite_at(file, 0, out[0], 1, &one));
    FAILS(PARIO_ERR_PERMISSION_DENIED, pario_wait(&one, moved));
    CHECK(one == NULL && moved[0] == 0);
    /* Closing waits. */
    OK(pario_iread_at(file, 0, in[0], PIECE, &one));
    OK(pario_close(file));
    OK(pario_test(&one, &done, moved));
    CHECK(done && moved[0] == PIECE);
}

static pario_file *common;

static void *writer(void *number) {
    int me = *(int *)number, i, j;
    unsigned char mine[100], got[100];
    uint64_t moved;
    for (i = 0; i < 200; i++) {
        uint64_t at = ((uint64_t)i * THREADS + (uint64_t)me) * sizeof mine;
        for (j = 0; j < 100; j++) mine[j] = (unsigned char)(me * 50 + i + j);
        OK(pario_write_at(common, at, mine, sizeof mine, &moved));
        OK(pario_read_at(common, at, got, sizeof got, &moved));
        CHECK(!memcmp(mine, got, sizeof mine));
        /* Errors are of the thread that made them. */
        CHECK(pario_read_at(common, at, NULL, (size_t)me + 1, NULL) == PARIO_ERR_INVALID_ARGUMENT);
        {
            char text[40];
            sprintf(text, "give %d bytes", me + 1);
            CHECK(strstr(pario_last_error(), text));
        }
    }
    return NULL;
}

static void threads(pario_client *client) {
    pthread_t all[THREADS];
    int numbers[THREADS], i;
    uint64_t bytes;
    common = open_here(client, "/common", READ_WRITE, NULL, "striped(128) over 2");
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&all[i], NULL, writer, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(all[i], NULL) == 0);
    OK(pario_size(common, &bytes));
    CHECK(bytes == 200 * THREADS * 100);
    OK(pario_close(common));
}

/* Threads that open and close while others use what they can get hold of. */
static pario_file *volatile hot;

static void *user(void *unused) {
    char byte;
    int i;
    for (i = 0; i < 20000; i++) {
        int code = pario_read_at(hot, 0, &byte, 1, NULL);
        CHECK(code == PARIO_OK || code == PARIO_ERR_BAD_HANDLE);
    }
    return unused;
}

static void races(pario_client *client) {
    pthread_t all[THREADS];
    int i;
    hot = open_here(client, "/hot", READ_WRITE, NULL, NULL);
    for (i = 0; i < THREADS; i++) CHECK(pthread_create(&all[i], NULL, user, NULL) == 0);
    for (i = 0; i < 50; i++) {
        pario_file *old = hot;
        hot = open_here(client, "/hot", PARIO_READ, NULL, NULL);
        OK(pario_close(old));
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

int main(int argc, char **argv) {
    pario_client *client;
    begin(argc, argv);
    client = connect_here();
    many(client);
    threads(client);
    races(client);
    OK(pario_disconnect(client));
    return end();
}
