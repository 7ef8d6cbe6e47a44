/* What the conformance programs share: cases, expectations, names of files.
 *
 *   PROGRAM [FILTER...]  runs the cases whose names begin with a FILTER (all without one), and with
 *                        none of those that begin with `-`; prints one line for each case:
 *                        `ok NAME`, or `FAIL NAME: why`; exit code 1 if one failed
 *   CONFORMANCE_PREFIX   what names of files begin with: `pario:/` or a directory of the host
 *
 * Expectations never leave a case: the other ranks would wait for ever in its next collective call.
 * A case that prints nothing did not end.
 */
#ifndef PARIO_CHECK_H
#define PARIO_CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static const char *case_name;
static char case_why[2048];
static int case_failed;

typedef struct { const char *name; void (*run)(void); } Case;

static void complain(const char *where, int line, const char *format, ...) {
    va_list arguments;
    size_t used;
    if (case_failed++)
        return; /* the first one tells */
    used = (size_t)snprintf(case_why, sizeof case_why, "rank %d, %s:%d: ", rank, where, line);
    va_start(arguments, format);
    vsnprintf(case_why + used, sizeof case_why - used, format, arguments);
    va_end(arguments);
}

static int class_of(int code) {
    int class = -1;
    if (code == MPI_SUCCESS)
        return MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static const char *text_of(int code) {
    static char texts[2][MPI_MAX_ERROR_STRING];
    static int turn;
    int length;
    turn = !turn;
    if (MPI_Error_string(code, texts[turn], &length) != MPI_SUCCESS)
        snprintf(texts[turn], sizeof texts[turn], "code %d without a text", code);
    return texts[turn];
}

#define EXPECT(condition) \
    do { if (!(condition)) complain(__FILE__, __LINE__, "not so: %s", #condition); } while (0)
#define EXPECT_EQ(left, right) \
    do { long long l_ = (long long)(left), r_ = (long long)(right); \
        if (l_ != r_) complain(__FILE__, __LINE__, "%s is %lld, not %lld", #left, l_, r_); } while (0)
/* A call that must succeed. */
#define OK(call) \
    do { int code_ = (call); \
        if (code_ != MPI_SUCCESS) complain(__FILE__, __LINE__, "%s: %s", #call, text_of(code_)); } while (0)
/* A call that must fail, with an error of this class. */
#define FAILS(class_wanted, call) \
    do { int code_ = (call), class_ = class_of(code_); \
        if (code_ == MPI_SUCCESS) complain(__FILE__, __LINE__, "%s succeeded, wanted %s", #call, #class_wanted); \
        else if (class_ != (class_wanted)) complain(__FILE__, __LINE__, "%s: class %d (%s), wanted %s", #call, class_, text_of(code_), #class_wanted); } while (0)
/* A call that must fail, in whatever way. */
#define REFUSED(call) \
    do { if ((call) == MPI_SUCCESS) complain(__FILE__, __LINE__, "%s succeeded", #call); } while (0)

/* Names of files: of this case, of every run of the program. The same on all ranks. */
static const char *file_name(const char *what) {
    static char names[8][1024];
    static int turn;
    const char *prefix = getenv("CONFORMANCE_PREFIX");
    turn = (turn + 1) % 8;
    snprintf(names[turn], sizeof names[turn], "%s%s.%s", prefix ? prefix : "pario:/", case_name, what);
    return names[turn];
}

static MPI_File open_as(MPI_Comm comm, const char *what, int mode) {
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(comm, file_name(what), mode, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS)
        complain(__FILE__, __LINE__, "open of %s: %s", what, text_of(code));
    return file;
}

/* A new file for reading and writing, of all ranks; it is removed when it is closed. */
#define NEW_MODE (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE)
static MPI_File new_file(const char *what) { return open_as(MPI_COMM_WORLD, what, NEW_MODE); }

static int count_of(MPI_Status *status, MPI_Datatype type) {
    int count = -2;
    MPI_Get_count(status, type, &count);
    return count;
}

/* What belongs at a byte of a file. */
static unsigned char pattern(long long offset, int salt) {
    unsigned long long x = (unsigned long long)offset * 0x9E3779B97F4A7C15ull + (unsigned long long)salt * 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    return (unsigned char)(x * 0x94D049BB133111EBull >> 56) | 1; /* never 0, which is what holes hold */
}

static void fill(void *buffer, long long length, int salt) {
    unsigned char *bytes = buffer;
    long long i;
    for (i = 0; i < length; i++)
        bytes[i] = pattern(i, salt);
}

/* Reads a whole file by the simplest way there is, on every rank by itself. */
static unsigned char *contents(const char *what, long long *length) {
    MPI_File file = MPI_FILE_NULL;
    MPI_Offset bytes = 0;
    MPI_Status status;
    unsigned char *buffer;
    OK(MPI_File_open(MPI_COMM_SELF, file_name(what), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    if (file == MPI_FILE_NULL) {
        *length = 0;
        return calloc(1, 1);
    }
    OK(MPI_File_get_size(file, &bytes));
    buffer = calloc(1, (size_t)bytes + 1);
    OK(MPI_File_read_at(file, 0, buffer, (int)bytes, MPI_BYTE, &status));
    EXPECT_EQ(count_of(&status, MPI_BYTE), bytes);
    OK(MPI_File_close(&file));
    *length = bytes;
    return buffer;
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Removes a file that may be left from before; all ranks wait for it. */
static void discard(const char *what) {
    if (rank == 0)
        MPI_File_delete(file_name(what), MPI_INFO_NULL);
    barrier();
}

static int is_selected(const char *name, int argc, char **argv) {
    int i, asked = 0, matched = 0;
    for (i = 1; i < argc; i++) {
        const char *filter = argv[i];
        if (*filter == '-') {
            if (strncmp(name, filter + 1, strlen(filter + 1)) == 0)
                return 0;
        } else {
            asked = 1;
            matched |= strncmp(name, filter, strlen(filter)) == 0;
        }
    }
    return matched || !asked;
}

static int run_cases(int argc, char **argv, const Case *cases, size_t count) {
    int failures = 0;
    size_t i, ran = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < count; i++) {
        char *reasons = NULL;
        int failed, r;
        if (!is_selected(cases[i].name, argc, argv))
            continue;
        ran++;
        case_name = cases[i].name;
        case_failed = 0;
        case_why[0] = 0;
        cases[i].run();
        MPI_Allreduce(&case_failed, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            reasons = malloc((size_t)size * sizeof case_why);
        MPI_Gather(case_why, sizeof case_why, MPI_CHAR, reasons, sizeof case_why, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            if (failed)
                for (r = 0; r < size; r++) {
                    const char *why = reasons + (size_t)r * sizeof case_why;
                    if (*why)
                        printf("FAIL %s: %s\n", case_name, why);
                }
            else
                printf("ok %s\n", case_name);
            fflush(stdout);
            free(reasons);
        }
        failures += failed != 0;
    }
    if (ran == 0 && rank == 0)
        printf("FAIL no case is selected\n");
    MPI_Finalize();
    return failures != 0 || ran == 0;
}

#define PROGRAM(cases) \
    int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }

#endif
