/* What the test programs share: calls that must succeed or fail, and how the program ends. */
#ifndef CHECK_H
#define CHECK_H

#include <pario.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not every program uses all of it. */
#define SOME __attribute__((unused)) static

static const char *url;

static void failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, pario_last_error());
    exit(1);
}

/* It holds. */
#define CHECK(it) ((it) ? (void)0 : failed(__FILE__, __LINE__, #it))

/* The call succeeds. */
#define OK(call) CHECK((call) == PARIO_OK)

/* The call fails with a code, and says which function failed. */
#define FAILS(code, call) check_failure(__FILE__, __LINE__, #call, code, call)

SOME void check_failure(const char *file, int line, const char *what, int expected, int code) {
    char name[64];
    const char *said = pario_last_error();
    size_t length = strcspn(what, "(");
    memcpy(name, what, length);
    name[length] = 0;
    if (code != expected) {
        fprintf(stderr, "%s:%d: %s: %d (%s) in place of %d: ", file, line, what, code, pario_strerror(code), expected);
        failed(file, line, what);
    }
    if (strncmp(said, name, length) != 0 || said[length] != ':') failed(file, line, "its message names another function");
}

SOME pario_client *connect_here(void) {
    pario_client *client;
    OK(pario_connect(url, NULL, &client));
    return client;
}

SOME pario_file *open_here(pario_client *client, const char *path, int flags, const char *array, const char *layout) {
    pario_open_options how;
    pario_file *file;
    PARIO_INIT(how);
    how.flags = flags;
    how.array = array;
    how.layout = layout;
    OK(pario_open(client, path, &how, &file));
    return file;
}

#define READ_WRITE (PARIO_READ | PARIO_WRITE | PARIO_CREATE)

/* The first argument is the URL of a service. */
static void begin(int argc, char **argv) {
    CHECK(argc > 1);
    url = argv[1];
}

/* The test that started the program looks for this line. */
static int end(void) {
    puts("all is well");
    return 0;
}

#endif
