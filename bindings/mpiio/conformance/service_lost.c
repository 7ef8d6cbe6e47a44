/* Accesses a file collectively until that fails, since somebody ends the service; then says how it failed.
 * Every rank must get an error of the class for I/O, a few seconds after the other at most. */
#include "check.h"

int main(int argc, char **argv) {
    enum { BYTES = 1 << 16 };
    static char bytes[BYTES];
    MPI_File file = MPI_FILE_NULL;
    MPI_Status status;
    int code = MPI_SUCCESS, round, class_found, worst = 0, right;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    case_name = "service_lost";
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (round = 0; code == MPI_SUCCESS && !case_failed; round++) {
        code = MPI_File_write_at_all(file, ((MPI_Offset)(round % 8) * size + rank) * BYTES, bytes, BYTES, MPI_BYTE, &status);
        if (code == MPI_SUCCESS)
            code = MPI_File_read_at_all(file, ((MPI_Offset)(round % 8) * size + rank) * BYTES, bytes, BYTES, MPI_BYTE, &status);
        if (round == 20 && rank == 0) {
            printf("under way\n");
            fflush(stdout);
        }
    }
    class_found = class_of(code);
    right = !case_failed && class_found == MPI_ERR_IO;
    if (!right) {
        printf("FAIL service_lost: rank %d: class %d: %s %s\n", rank, class_found, text_of(code), case_why);
        fflush(stdout);
    }
    /* A file whose service is gone is closed all the same. */
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    right = !right;
    MPI_Allreduce(&right, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && worst == 0)
        printf("ok service_lost\n");
    MPI_Finalize();
    return worst;
}
