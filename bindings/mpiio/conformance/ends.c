/* The end of MPI, and a child that was forked off, while operations are under way.
 *
 *   ends free      requests are given back, the file is left open
 *   ends forget    requests are forgotten as well
 *   ends alone     rank 0 is in an operation that the others never join
 *   ends fork      children end by themselves; the operations are completed as usual
 */
#include "check.h"
#include <sys/wait.h>

enum { PARTS = 4, PART = 8 << 20 };
static char bytes[PARTS][PART];

static void children(void) {
    int i, status;
    for (i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0)
            exit(3);
        waitpid(child, &status, 0);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "free";
    MPI_File file = MPI_FILE_NULL;
    MPI_Request requests[PARTS], alone;
    MPI_Info info;
    int i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    case_name = "ends";
    MPI_Info_create(&info);
    if (!strcmp(how, "alone"))
        MPI_Info_set(info, "pario_strategy", "two_phase");
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(how), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    for (i = 0; i < PARTS; i++)
        OK(MPI_File_iwrite_at(file, (MPI_Offset)(rank * PARTS + i) * PART, bytes[i], PART, MPI_BYTE, &requests[i]));
    if (!strcmp(how, "free")) {
        for (i = 0; i < PARTS; i++)
            OK(MPI_Request_free(&requests[i]));
    } else if (!strcmp(how, "alone") && rank == 0) {
        OK(MPI_File_iwrite_at_all(file, 0, bytes[0], PART, MPI_BYTE, &alone));
    } else if (!strcmp(how, "fork")) {
        children();
        OK(MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE));
        OK(MPI_File_close(&file));
    }
    MPI_Finalize();
    printf(case_failed ? "FAIL %s rank %d: %s\n" : "ok %s rank %d%s\n", how, rank, case_why);
    return case_failed != 0;
}
