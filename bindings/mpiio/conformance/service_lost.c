/* Accesses a file until that fails, since somebody ends the service; then makes every kind of call on it.
 * Every rank must get an error of the class for I/O from each, the first within seconds, the others at once,
 * and the file is closed and MPI ended all the same.
 *
 *   service_lost [CALL]   the call that finds it out: collective (if nothing is said), independent, split,
 *                         nonblocking, size, sync and so on, or close
 *   SERVICE_LOST_MARK     for close, which happens once: a file that is there once the service is dead
 *   SERVICE_LOST_TIMES    if set, the time of each call is printed
 */
#include "check.h"

enum { BYTES = 1 << 16 };
/* Seconds that a call may take: several times what it waits for the service, since ranks share the processors, and
 * less than what it would wait for an answer. */
enum { LIMIT = 40 };
static char bytes[BYTES];
static MPI_File file = MPI_FILE_NULL;
static MPI_Status status;

static MPI_Offset place(int round) {
    return ((MPI_Offset)(round % 8) * size + rank) * BYTES;
}

static int collective(int round) {
    int code = MPI_File_write_at_all(file, place(round), bytes, BYTES, MPI_BYTE, &status);
    if (code == MPI_SUCCESS)
        code = MPI_File_read_at_all(file, place(round), bytes, BYTES, MPI_BYTE, &status);
    return code;
}

static int read_independent(int round) {
    return MPI_File_read_at(file, place(round), bytes, BYTES, MPI_BYTE, &status);
}

static int write_independent(int round) {
    return MPI_File_write_at(file, place(round), bytes, BYTES, MPI_BYTE, &status);
}

static int split(int round) {
    int code = MPI_File_write_at_all_begin(file, place(round), bytes, BYTES, MPI_BYTE);
    if (code == MPI_SUCCESS)
        code = MPI_File_write_at_all_end(file, bytes, &status);
    return code;
}

static int nonblocking(int round) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_File_iwrite_at(file, place(round), bytes, BYTES, MPI_BYTE, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, &status);
    return code;
}

static int nonblocking_collective(int round) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_File_iread_at_all(file, place(round), bytes, BYTES, MPI_BYTE, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, &status);
    return code;
}

static int shared_pointer(int round) {
    (void)round;
    return MPI_File_write_shared(file, bytes, BYTES, MPI_BYTE, &status);
}

static int ordered(int round) {
    (void)round;
    return MPI_File_write_ordered(file, bytes, BYTES, MPI_BYTE, &status);
}

static int ask_size(int round) {
    MPI_Offset found;
    (void)round;
    return MPI_File_get_size(file, &found);
}

static int set_size(int round) {
    return MPI_File_set_size(file, (MPI_Offset)(round + 1) * BYTES);
}

static int sync_all(int round) {
    (void)round;
    return MPI_File_sync(file);
}

static int set_view(int round) {
    int code;
    MPI_Datatype type;
    MPI_Type_vector(2, 1 + round % 3, 8, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    code = MPI_File_set_view(file, rank, MPI_BYTE, type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
    return code;
}

static int set_atomicity(int round) {
    (void)round;
    return MPI_File_set_atomicity(file, 1);
}

static int open_again(int round) {
    MPI_File other = file;
    int code = MPI_File_open(MPI_COMM_WORLD, file_name("y"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &other);
    (void)round;
    if (code == MPI_SUCCESS)
        MPI_File_close(&other);
    else if (other != MPI_FILE_NULL)
        complain(__FILE__, __LINE__, "a handle is left of a file that was not opened");
    return code;
}

static const struct { const char *name; int (*run)(int); } calls[] = {
    {"collective", collective},
    {"independent", read_independent},
    {"write", write_independent},
    {"split", split},
    {"nonblocking", nonblocking},
    {"nonblocking_collective", nonblocking_collective},
    {"shared", shared_pointer},
    {"ordered", ordered},
    {"size", ask_size},
    {"set_size", set_size},
    {"sync", sync_all},
    {"set_view", set_view},
    {"atomicity", set_atomicity},
    {"open", open_again},
};

/* All make the same number of rounds, until all have failed: servers do not die at the same moment. */
static int until_it_fails(int (*run)(int)) {
    int round, now, code = MPI_SUCCESS, failed = 0, all = 0;
    double started = 0, spent;
    const char *mark = getenv("SERVICE_LOST_MARK");
    if (!run && !mark)
        complain(__FILE__, __LINE__, "no such call, or SERVICE_LOST_MARK is not set");
    for (round = 0; !all && !case_failed; round++) {
        started = MPI_Wtime();
        now = run ? run(round) : MPI_SUCCESS;
        if (code == MPI_SUCCESS)
            code = now;
        failed = code != MPI_SUCCESS || (!run && round > 20 && access(mark, F_OK) == 0);
        MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (round == 20 && rank == 0) {
            printf("under way\n");
            fflush(stdout);
        }
    }
    spent = MPI_Wtime() - started;
    if (spent > LIMIT)
        complain(__FILE__, __LINE__, "the first error took %.1f s", spent);
    if (getenv("SERVICE_LOST_TIMES"))
        printf("time rank %d first %.3f\n", rank, spent);
    return code;
}

static void expect_class(const char *name, int code) {
    if (class_of(code) != MPI_ERR_IO)
        complain(__FILE__, __LINE__, "%s: class %d: %s", name, class_of(code), text_of(code));
}

int main(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "collective";
    int (*run)(int) = NULL;
    double started, spent;
    int code, worst = 0;
    size_t i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    case_name = "service_lost";
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, first) == 0)
            run = calls[i].run;
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (!case_failed)
        for (i = 0; i < 8; i++)
            OK(collective((int)i));
    code = until_it_fails(run);
    if (run)
        expect_class(first, code);
    for (i = 0; run && i < sizeof calls / sizeof *calls; i++) {
        started = MPI_Wtime();
        code = calls[i].run(1);
        spent = MPI_Wtime() - started;
        expect_class(calls[i].name, code);
        if (spent > LIMIT)
            complain(__FILE__, __LINE__, "%s took %.1f s", calls[i].name, spent);
        if (getenv("SERVICE_LOST_TIMES"))
            printf("time rank %d %s %.3f class %d %s\n", rank, calls[i].name, spent, class_of(code), text_of(code));
    }
    /* A file whose service is gone is closed all the same. */
    if (file != MPI_FILE_NULL) {
        started = MPI_Wtime();
        code = MPI_File_close(&file);
        spent = MPI_Wtime() - started;
        if (spent > LIMIT)
            complain(__FILE__, __LINE__, "close took %.1f s", spent);
        if (getenv("SERVICE_LOST_TIMES"))
            printf("time rank %d close %.3f class %d\n", rank, spent, class_of(code));
    }
    if (case_failed) {
        printf("FAIL service_lost: %s\n", case_why);
        fflush(stdout);
    }
    MPI_Allreduce(&case_failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && worst == 0)
        printf("ok service_lost\n");
    MPI_Finalize();
    return worst != 0;
}
