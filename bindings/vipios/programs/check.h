/* What the test programs share: calls that must succeed or fail, and how the program ends. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipios.h>

/* Not every program uses all of it. */
#define SOME __attribute__((unused)) static

static void failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, ViPIOS_Error_text());
    exit(1);
}

/* It holds. */
#define CHECK(it) ((it) ? (void)0 : failed(__FILE__, __LINE__, #it))

/* A call that answers true or false: it succeeds. */
#define YES(call) CHECK(call)

/* A call that answers 0 or a code: it succeeds. */
#define OK(call) CHECK((call) == 0)

/* The call fails with a code, and says which function failed. */
#define REFUSED(code, call) check_refusal(__FILE__, __LINE__, #call, code, (call) ? 1 : 0)
#define FAILS(code, call) check_failure(__FILE__, __LINE__, #call, code, call)

SOME void check_named(const char *file, int line, const char *what) {
    char name[64];
    const char *said = ViPIOS_Error_text();
    size_t length = strcspn(what, "(");
    memcpy(name, what, length);
    name[length] = 0;
    if (strncmp(said, name, length) != 0 || said[length] != ':') failed(file, line, "its message names another function");
}

SOME void check_refusal(const char *file, int line, const char *what, int expected, int answer) {
    if (answer || ViPIOS_Error_code() != expected) {
        fprintf(stderr, "%d in place of %d: ", ViPIOS_Error_code(), expected);
        failed(file, line, what);
    }
    check_named(file, line, what);
}

SOME void check_failure(const char *file, int line, const char *what, int expected, int answer) {
    if (answer != -expected || ViPIOS_Error_code() != expected) {
        fprintf(stderr, "%d in place of %d: ", answer, -expected);
        failed(file, line, what);
    }
    check_named(file, line, what);
}

#define READ_WRITE (VIPIOS_RW | VIPIOS_CREATE)

SOME int open_here(const char *path, int flags) {
    int fid = 0;
    YES(ViPIOS_Open(path, flags, &fid));
    CHECK(fid > 0);
    return fid;
}

SOME int count_of(int fid) {
    int count = -1;
    OK(ViPIOS_File_get_count(fid, &count));
    return count;
}

SOME int position_of(int fid) {
    int position = -1;
    OK(ViPIOS_File_get_position(fid, &position));
    return position;
}

SOME int size_of(int fid) {
    int size = -1;
    OK(ViPIOS_File_get_size(fid, &size));
    return size;
}

/* A descriptor of one block. */
#define DESC(name, offset, repeat, count, stride, subtype, skip) \
    basic_block name##_block = {offset, repeat, count, stride, subtype, 0, 0}; \
    Access_Desc name = {1, &name##_block, skip}

/* The first argument is the URL of a service: 0 stands for it. */
SOME void begin(int argc, char **argv) {
    CHECK(argc > 1);
    CHECK(setenv("PARIO_URL", argv[1], 1) == 0);
}

/* The test that started the program looks for this line. */
SOME int end(void) {
    puts("all is well");
    return 0;
}

#endif
