/* What programs do wrong: every mistake is a code, none is a crash. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <errno.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static void null_and_made_up(pario_client *client, pario_file *file) {
    char byte[8];
    uint64_t number;
    int flag;
    size_t i;
    uintptr_t made_up[] = {1, 2, 64, 4096, (uintptr_t)file + 1, (uintptr_t)file ^ ((uintptr_t)1 << 24), (uintptr_t)byte,
                           UINTPTR_MAX, (uintptr_t)1 << 63, (uintptr_t)client};
    pario_file *none = NULL;
    FAILS(PARIO_ERR_BAD_HANDLE, pario_close(NULL));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_disconnect(NULL));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_read_at(NULL, 0, byte, 1, NULL));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_open(NULL, "/x", NULL, &none));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_team_barrier(NULL));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_cancel(NULL, &flag));
    for (i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        pario_file *wrong = (pario_file *)made_up[i];
        FAILS(PARIO_ERR_BAD_HANDLE, pario_read_at(wrong, 0, byte, 1, NULL));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_close(wrong));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_pattern_free((pario_pattern *)wrong));
    }
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, NULL, NULL, &none));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/x", NULL, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_unlink(client, "\xff\xfe"));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_read_at(file, 0, NULL, 1, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_write_at(file, 0, NULL, 1, &number));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_write(file, NULL, 1, &number));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_read_at(file, 0, byte, SIZE_MAX, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_write_at(file, 0, byte, (size_t)1 << 63, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_append(file, byte, SIZE_MAX, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_size(file, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stat(client, "/", NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_truncate(file, UINT64_MAX));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_memory_free(byte));
    OK(pario_read_at(file, 0, NULL, 0, NULL));
    OK(pario_read_at(file, UINT64_MAX / 2, byte, 1, &number));
    CHECK(number == 0);
    CHECK(pario_write_at(file, UINT64_MAX - 1, byte, 8, NULL) != PARIO_OK);
    /* A null request is one that is done. */
    {
        pario_request *request = NULL;
        OK(pario_wait(&request, &number));
        OK(pario_test(&request, &flag, NULL));
        CHECK(flag);
        FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_wait(NULL, NULL));
        request = (pario_request *)file;
        FAILS(PARIO_ERR_BAD_HANDLE, pario_wait(&request, NULL));
    }
}

static void options(pario_client *client) {
    struct {
        pario_open_options known;
        uint64_t unknown;
    } newer;
    pario_open_options how;
    pario_connect_options connection;
    pario_array_info shorter;
    pario_client *none;
    pario_file *file;
    pario_hint hint = {"no_such_hint", "x"};
    uint64_t many[40] = {0};
    PARIO_INIT(how);
    how.size = 3;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    how.size = SIZE_MAX;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    PARIO_INIT(how);
    how.flags = 1 << 30;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    how.flags = PARIO_READ | PARIO_TRUNCATE;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    how.flags = READ_WRITE;
    how.array = "f64[3";
    CHECK(pario_open(client, "/o", &how, &file) == PARIO_ERR_INVALID_ARGUMENT && file == NULL);
    how.array = NULL;
    how.element = PARIO_F64;
    how.shape = many;
    how.dimensions = SIZE_MAX / 8;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    how.dimensions = 40;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    how.dimensions = 1;
    how.element = 99;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open(client, "/o", &how, &file));
    PARIO_INIT(how);
    how.hints = &hint;
    how.hint_count = 1;
    how.flags = READ_WRITE;
    OK(pario_open(client, "/o", &how, &file)); /* a hint that nobody knows is kept */
    hint.name = NULL;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_set_hints(file, &hint, 1));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_set_hints(file, NULL, 1));
    OK(pario_close(file));
    /* A program compiled with a newer header, and one with an older. */
    memset(&newer, 0, sizeof newer);
    newer.known.size = sizeof newer;
    newer.known.flags = READ_WRITE;
    OK(pario_open(client, "/o", &newer.known, &file));
    shorter.size = offsetof(pario_array_info, element_bytes);
    shorter.bytes = 4711;
    OK(pario_array(file, &shorter));
    CHECK(shorter.element == PARIO_NO_ELEMENT && shorter.bytes == 4711);
    OK(pario_close(file));
    newer.unknown = 1;
    FAILS(PARIO_ERR_UNSUPPORTED, pario_open(client, "/o", &newer.known, &file));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_connect("no url", NULL, &none));
    CHECK(none == NULL);
    PARIO_INIT(connection);
    connection.direct = 7;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_connect(url, &connection, &none));
    connection.direct = 0;
    connection.rank = 2;
    connection.processes = 2;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_connect(url, &connection, &none));
    PARIO_INIT(connection);
    connection.secret_file = "/no/such/file";
    CHECK(pario_connect(url, &connection, &none) != PARIO_OK);
}

static void closed(pario_client *client) {
    char byte = 0;
    pario_file *file = open_here(client, "/closed", READ_WRITE, NULL, NULL);
    pario_file *again;
    pario_pattern *pattern;
    pario_request *request, *kept;
    uint64_t number;
    int i;
    OK(pario_iwrite_at(file, 0, &byte, 1, &request));
    kept = request;
    OK(pario_wait(&request, &number));
    CHECK(request == NULL && number == 1);
    FAILS(PARIO_ERR_BAD_HANDLE, pario_cancel(kept, NULL));
    OK(pario_close(file));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_close(file));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_read_at(file, 0, &byte, 1, NULL));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_iread_at(file, 0, &byte, 1, &request));
    CHECK(request == NULL);
    for (i = 0; i < 1000; i++) {
        again = open_here(client, "/closed", PARIO_READ, NULL, NULL);
        CHECK(again != file);
        FAILS(PARIO_ERR_BAD_HANDLE, pario_size(file, &number));
        OK(pario_close(again));
        if (i > 20) break;
    }
    for (i = 0; i < 1000; i++) {
        OK(pario_pattern_bytes(8, &pattern));
        OK(pario_pattern_free(pattern));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_pattern_free(pattern));
    }
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_pattern_bytes(-1, &pattern));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_pattern_contiguous(INT64_MAX, NULL, NULL));
    OK(pario_pattern_bytes(8, &pattern));
    {
        pario_pattern *large = NULL;
        CHECK(pario_pattern_hvector(INT64_MAX, 1, INT64_MAX, pattern, &large) != PARIO_OK && large == NULL);
        CHECK(pario_pattern_indexed(SIZE_MAX, NULL, NULL, pattern, &large) != PARIO_OK);
    }
    OK(pario_pattern_free(pattern));
}

static void disconnected(void) {
    pario_client *client = connect_here();
    pario_file *file = open_here(client, "/left", READ_WRITE, NULL, NULL);
    pario_request *request;
    static char bytes[1 << 20];
    uint64_t number;
    OK(pario_iwrite_at(file, 0, bytes, sizeof bytes, &request));
    OK(pario_disconnect(client)); /* closes the file once its operation is done */
    FAILS(PARIO_ERR_BAD_HANDLE, pario_disconnect(client));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_size(file, &number));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_close(file));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_wait(&request, &number));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_unlink(client, "/left"));
}

static void forked(pario_client *client, pario_file *file) {
    char byte;
    int status;
    pid_t child;
    pario_request *request = NULL;
    OK(pario_iread_at(file, 0, &byte, 1, &request));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        FAILS(PARIO_ERR_BAD_HANDLE, pario_read_at(file, 0, &byte, 1, NULL));
        CHECK(strstr(pario_last_error(), "parent process"));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_close(file));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_wait(&request, NULL));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_disconnect(client));
        /* It connects anew, where others serve. */
        if (strncmp(url, "dir:", 4) != 0) {
            pario_client *mine = connect_here();
            pario_file *own = open_here(mine, "/child", READ_WRITE, NULL, NULL);
            OK(pario_write_at(own, 0, "c", 1, NULL));
            OK(pario_disconnect(mine));
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(pario_wait(&request, NULL));
    OK(pario_read_at(file, 0, &byte, 1, NULL));
}

int main(int argc, char **argv) {
    pario_client *client;
    pario_file *file;
    int code;
    begin(argc, argv);
    CHECK(!strcmp(pario_last_error(), "") && !pario_last_error_is_retryable());
    for (code = -2; code < 100; code++) CHECK(strlen(pario_strerror(code)) > 3);
    CHECK(pario_to_errno(PARIO_ERR_NOT_FOUND) == ENOENT && pario_to_errno(PARIO_OK) == 0 && pario_to_errno(-5) == EIO);
    client = connect_here();
    file = open_here(client, "/file", READ_WRITE, NULL, NULL);
    null_and_made_up(client, file);
    options(client);
    closed(client);
    disconnected();
    forked(client, file);
    OK(pario_close(file));
    OK(pario_disconnect(client));
    return end();
}
