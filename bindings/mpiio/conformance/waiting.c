/* Waiting inside file access drives the program's own messages: rank 0 sends 64 MiB, which move only while it
 * calls MPI, and goes into a collective write; rank 1 receives them first. Exactly two ranks matter; others
 * join the write. Each kind of collective call once, then reads, opens and closes. */
#include "check.h"

enum { BIG = 64 << 20 };
static char *big;

static void start(MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    if (!big)
        big = malloc(BIG);
    if (rank == 0) {
        memset(big, 17, BIG);
        OK(MPI_Isend(big, BIG, MPI_BYTE, 1, 3, MPI_COMM_WORLD, request));
    } else if (rank == 1) {
        memset(big, 0, BIG);
        OK(MPI_Recv(big, BIG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        EXPECT(big[0] == 17 && big[BIG - 1] == 17);
    }
}

static void check_written(MPI_File file, int value) {
    int back = -1, next = (rank + 1) % size;
    MPI_Status status;
    OK(MPI_File_sync(file));
    barrier();
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at(file, 4 * next, &back, 1, MPI_INT, &status));
    EXPECT_EQ(back, value - rank + next);
}

static void blocking(void) {
    MPI_File file = new_file("x");
    MPI_Request request;
    MPI_Status status;
    int value = 100 + rank;
    OK(MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    start(&request);
    OK(MPI_File_write_all(file, &value, 1, MPI_INT, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    check_written(file, value);
    start(&request);
    OK(MPI_File_read_at_all(file, 4 * rank, &value, 1, MPI_INT, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_EQ(value, 100 + rank);
    OK(MPI_File_close(&file));
}

static void split(void) {
    MPI_File file = new_file("x");
    MPI_Request request;
    MPI_Status status;
    int value = 200 + rank;
    start(&request);
    OK(MPI_File_write_at_all_begin(file, 4 * rank, &value, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &value, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_written(file, value);
    OK(MPI_File_close(&file));
}

static void nonblocking(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int value = 300 + rank;
    start(&requests[0]);
    OK(MPI_File_iwrite_at_all(file, 4 * rank, &value, 1, MPI_INT, &requests[1]));
    OK(MPI_Wait(&requests[1], &statuses[1])); /* ours first, and alone */
    OK(MPI_Wait(&requests[0], &statuses[0]));
    check_written(file, value);
    /* A request of ours and a message in one call, the message last in coming. */
    start(&requests[0]);
    OK(MPI_File_iwrite_at_all(file, 4 * rank, &value, 1, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_File_close(&file));
}

static void ordered(void) {
    MPI_File file = new_file("x");
    MPI_Request request;
    MPI_Status status;
    int value = 400 + rank;
    start(&request);
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_written(file, value);
    OK(MPI_File_close(&file));
}

static void control(void) {
    /* Collective calls without data: open, view, size, sync, close. */
    MPI_Request request;
    MPI_File file;
    start(&request);
    file = new_file("x");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    start(&request);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    start(&request);
    OK(MPI_File_set_size(file, 1000));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    start(&request);
    OK(MPI_File_sync(file));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    start(&request);
    OK(MPI_File_close(&file));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static const Case cases[] = {
    {"blocking", blocking}, {"split", split}, {"nonblocking", nonblocking}, {"ordered", ordered}, {"control", control},
};
PROGRAM(cases)
