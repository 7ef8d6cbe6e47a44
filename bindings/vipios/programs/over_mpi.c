/* A program for ViMPIOS: clients are the world, MPI_Init connects, requests are waited for with the names of the source. One file through
 * MPI-IO and native calls. Run below `pario run`. */
#include <mpi.h>
#include <vip_mpio_init.h>

#include "check.h"

#define MPI_OK(call) CHECK((call) == MPI_SUCCESS)

int main(int argc, char **argv) {
    int rank, size, i, flag = 0, count = -1, fid, mine[10], all[100];
    MPI_File file;
    MPIO_Request request;
    MPIO_Status status;
    MPI_OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_APP, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= 10 && MPI_COMM_SERV == MPI_COMM_NULL && Vipios_comm_app == MPI_COMM_UNIVERSAL);
    for (i = 0; i < 10; i++) mine[i] = 10 * rank + i;
    MPI_OK(MPI_File_open(MPI_COMM_APP, "pario:/vimpios", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_OK(MPI_File_iwrite_at(file, (MPI_Offset)rank * 40, mine, 5, MPI_INT, &request));
    MPI_OK(MPI_File_wait(&request, &status));
    MPI_OK(MPI_File_get_count(&status, MPI_INT, &count));
    CHECK(count == 20);
    MPI_OK(MPI_File_iwrite_at(file, (MPI_Offset)rank * 40 + 20, mine + 5, 5, MPI_INT, &request));
    while (!flag) MPI_OK(MPI_File_test(&request, &flag, &status));
    MPI_OK(MPI_File_sync(file));
    MPI_OK(MPI_Barrier(MPI_COMM_APP));
    /* The same file by the native calls, which MPI_Init has connected. */
    YES(ViPIOS_Open("/vimpios", VIPIOS_R, &fid));
    YES(ViPIOS_Read(fid, all, 40 * size, 0));
    CHECK(count_of(fid) == 40 * size);
    for (i = 0; i < 10 * size; i++) CHECK(all[i] == i);
    YES(ViPIOS_Close(fid));
    MPI_OK(MPI_File_close(&file));
    MPI_OK(MPI_Barrier(MPI_COMM_APP));
    if (rank == 0) puts("all is well");
    MPI_OK(MPI_Finalize());
    return 0;
}
