/* One file at the same time through four interfaces: native C, ViPIOS, MPI-IO, and Unix-style calls; each rank writes the bytes that are
 * its own, in many small accesses, and then sees all of them. The test looks at the file with the program. */
#include <mpi.h>
#include <pario.h>

#include "check.h"
#include <vip_unix.h>

#define RANKS 4
#define ROUNDS 50
#define EACH 30
#define TOTAL (RANKS * ROUNDS * EACH)

#define FINE(call) CHECK((call) == PARIO_OK)
#define MPI_OK(call) CHECK((call) == MPI_SUCCESS)

/* Byte i is of rank i % RANKS, and is this. */
static unsigned char byte_of(int i) { return (unsigned char)(i * 7 + i / 250); }

static void fill(unsigned char *mine, int rank, int round) {
    int k;
    for (k = 0; k < EACH; k++) mine[k] = byte_of((round * EACH + k) * RANKS + rank);
}

static void complete(const unsigned char *all) {
    int i;
    for (i = 0; i < TOTAL; i++) CHECK(all[i] == byte_of(i));
}

static unsigned char all[TOTAL], mine[EACH];

static void native(int rank) {
    pario_client *client;
    pario_file *file;
    pario_open_options how;
    uint64_t moved;
    char view[40];
    int round;
    PARIO_INIT(how);
    how.flags = PARIO_READ | PARIO_WRITE;
    FINE(pario_connect(NULL, NULL, &client));
    FINE(pario_open(client, "/one", &how, &file));
    sprintf(view, "striped(1) over %d [%d]", RANKS, rank);
    FINE(pario_set_view(file, 0, view));
    for (round = 0; round < ROUNDS; round++) {
        fill(mine, rank, round);
        FINE(pario_write_at(file, (uint64_t)round * EACH, mine, EACH, &moved));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    FINE(pario_set_view(file, 0, NULL));
    FINE(pario_read_at(file, 0, all, TOTAL, &moved));
    CHECK(moved == TOTAL);
    FINE(pario_disconnect(client));
}

static void vipios(int rank) {
    DESC(every_fourth, 0, 1, 1, 0, NULL, RANKS - 1);
    int fid, round;
    YES(ViPIOS_Connect(0));
    fid = open_here("/one", VIPIOS_RW);
    for (round = 0; round < ROUNDS; round++) {
        fill(mine, rank, round);
        OK(ViPIOS_Write_struct(fid, mine, EACH, &every_fourth, rank, -1));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    YES(ViPIOS_Read(fid, all, TOTAL, 0));
    CHECK(count_of(fid) == TOTAL);
    YES(ViPIOS_Disconnect());
}

static void mpi(int rank) {
    MPI_File file;
    MPI_Datatype every_fourth;
    MPI_Status status;
    int round, count;
    MPI_OK(MPI_File_open(MPI_COMM_SELF, "pario:/one", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_OK(MPI_Type_create_resized(MPI_BYTE, 0, RANKS, &every_fourth));
    MPI_OK(MPI_Type_commit(&every_fourth));
    MPI_OK(MPI_File_set_view(file, rank, MPI_BYTE, every_fourth, "native", MPI_INFO_NULL));
    for (round = 0; round < ROUNDS; round++) {
        fill(mine, rank, round);
        MPI_OK(MPI_File_write(file, mine, EACH, MPI_BYTE, &status));
    }
    MPI_OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_OK(MPI_File_sync(file));
    MPI_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_OK(MPI_File_read_at(file, 0, all, TOTAL, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == TOTAL);
    MPI_OK(MPI_File_close(&file));
    MPI_Type_free(&every_fourth);
}

static void as_unix(int rank) {
    int fd = vip_open("/one", O_RDWR, 0), round, k;
    CHECK(fd > 0);
    for (round = 0; round < ROUNDS; round++) {
        fill(mine, rank, round);
        for (k = 0; k < EACH; k++) CHECK(vip_pwrite(fd, mine + k, 1, (round * EACH + k) * RANKS + rank) == 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(vip_pread(fd, all, TOTAL, 0) == TOTAL && vip_close(fd) == 0);
    YES(ViPIOS_Disconnect());
}

int main(int argc, char **argv) {
    int rank, size;
    void (*interfaces[RANKS])(int) = {native, vipios, mpi, as_unix};
    MPI_OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == RANKS);
    interfaces[rank](rank);
    complete(all);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("all is well");
    MPI_OK(MPI_Finalize());
    return 0;
}
