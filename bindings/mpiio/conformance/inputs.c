/* With PARIO_MPIIO=all: a file that lies in the file system and not in Pario is read where it lies, one that is created
 * is Pario's, and one that neither has is an error that leaves no handle.
 *
 *   inputs DIR   DIR/input has eight bytes per rank, the number of the rank; DIR/output is made, DIR/none is missing
 */
#include "check.h"

static const char *in_dir(const char *dir, const char *name) {
    static char names[4][1024];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(names[turn], sizeof names[turn], "%s/%s", dir, name);
    return names[turn];
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Status status;
    int64_t value = -1;
    int code, worst = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    case_name = "inputs";
    OK(MPI_File_open(MPI_COMM_WORLD, in_dir(argv[1], "input"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    if (!case_failed) {
        OK(MPI_File_read_at_all(file, 8 * rank, &value, 8, MPI_BYTE, &status));
        EXPECT_EQ(value, rank);
        OK(MPI_File_close(&file));
    }
    OK(MPI_File_open(MPI_COMM_WORLD, in_dir(argv[1], "output"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (!case_failed) {
        OK(MPI_File_write_at_all(file, 8 * rank, &value, 8, MPI_BYTE, &status));
        OK(MPI_File_close(&file));
    }
    /* It is Pario's from now on, also without CREATE. */
    EXPECT(access(in_dir(argv[1], "output"), F_OK) != 0);
    value = -1;
    /* Whatever the file system has under that name since. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *other = fopen(in_dir(argv[1], "output"), "w");
        EXPECT(other != NULL);
        if (other) {
            fprintf(other, "something else that is long enough for all ranks");
            fclose(other);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, in_dir(argv[1], "output"), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (!case_failed) {
        OK(MPI_File_read_at_all(file, 8 * rank, &value, 8, MPI_BYTE, &status));
        EXPECT_EQ(value, rank);
        OK(MPI_File_close(&file));
    }
    memset(&file, 0x5a, sizeof file);
    code = MPI_File_open(MPI_COMM_WORLD, in_dir(argv[1], "none"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    if (class_of(code) != MPI_ERR_NO_SUCH_FILE)
        complain(__FILE__, __LINE__, "class %d", class_of(code));
    EXPECT(file == MPI_FILE_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        OK(MPI_File_delete(in_dir(argv[1], "input"), MPI_INFO_NULL));
        EXPECT(access(in_dir(argv[1], "input"), F_OK) != 0);
        OK(MPI_File_delete(in_dir(argv[1], "output"), MPI_INFO_NULL));
        /* Pario's is gone, the other one is not. */
        EXPECT(access(in_dir(argv[1], "output"), F_OK) == 0);
    }
    if (case_failed) {
        printf("FAIL inputs: %s\n", case_why);
        fflush(stdout);
    }
    MPI_Allreduce(&case_failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && worst == 0)
        printf("ok inputs\n");
    MPI_Finalize();
    return worst != 0;
}
