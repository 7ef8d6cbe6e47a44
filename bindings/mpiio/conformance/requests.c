/* Non-blocking and split access: requests under every completion call, beside messages, in lists with null and
 * inactive ones; failures; giving back and cancelling; order of collective operations; the calls that
 * are wrong between the two of a split. */
#include "check.h"

enum { LONG = 1 << 20, MANY = 8, TAG = 5 };
static char out[MANY][LONG], in[MANY][LONG];

static void expect_count(MPI_Status *status, int wanted) {
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    EXPECT_EQ(count, wanted);
    MPI_Test_cancelled(status, &cancelled);
    EXPECT_EQ(cancelled, 0);
}

static MPI_Offset place(int i) { return ((MPI_Offset)rank * MANY + i) * LONG; }

static void begin_writes(MPI_File file, MPI_Request *requests, int salt) {
    int i;
    for (i = 0; i < MANY; i++) {
        memset(out[i], salt + 10 * rank + i, LONG);
        requests[i] = MPI_REQUEST_NULL;
        OK(MPI_File_iwrite_at(file, place(i), out[i], LONG - i, MPI_BYTE, &requests[i]));
        EXPECT(requests[i] != MPI_REQUEST_NULL);
    }
}

static void check_writes(MPI_File file, int salt) {
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int i;
    memset(in, 0, sizeof in);
    for (i = 0; i < MANY; i++)
        OK(MPI_File_iread_at(file, place(i), in[i], LONG - i, MPI_BYTE, &requests[i]));
    OK(MPI_Waitall(MANY, requests, statuses));
    for (i = 0; i < MANY; i++) {
        expect_count(&statuses[i], LONG - i);
        EXPECT(requests[i] == MPI_REQUEST_NULL);
        EXPECT_EQ(in[i][0], (char)(salt + 10 * rank + i));
        EXPECT(memcmp(in[i], out[i], LONG - i) == 0);
    }
}

/* seed004 s35, seed001 s22: wait returns after completion, test does not block, requests are independent. */
static void s35_wait(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[MANY];
    MPI_Status status, statuses[MANY];
    int i, index, left, some, indices[MANY], seen[MANY] = {0};
    begin_writes(file, requests, 1);
    for (i = MANY; i-- > 0;) {
        OK(MPI_Wait(&requests[i], &status));
        expect_count(&status, LONG - i);
        EXPECT(requests[i] == MPI_REQUEST_NULL);
    }
    check_writes(file, 1);
    begin_writes(file, requests, 2);
    for (i = 0; i < MANY; i++) {
        index = -1;
        OK(MPI_Waitany(MANY, requests, &index, &status));
        EXPECT(index >= 0 && index < MANY && !seen[index]);
        if (index >= 0 && index < MANY) { seen[index] = 1; expect_count(&status, LONG - index); }
    }
    OK(MPI_Waitany(MANY, requests, &index, &status));
    EXPECT_EQ(index, MPI_UNDEFINED);
    check_writes(file, 2);
    begin_writes(file, requests, 3);
    for (left = MANY; left > 0; left -= some) {
        some = -1;
        OK(MPI_Waitsome(MANY, requests, &some, indices, statuses));
        EXPECT(some >= 1 && some <= left);
        if (some < 1) break;
        for (i = 0; i < some; i++)
            expect_count(&statuses[i], LONG - indices[i]);
    }
    OK(MPI_Waitsome(MANY, requests, &some, indices, statuses));
    EXPECT_EQ(some, MPI_UNDEFINED);
    check_writes(file, 3);
    begin_writes(file, requests, 4);
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    check_writes(file, 4);
    OK(MPI_File_close(&file));
}

static void s35_test(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[MANY];
    MPI_Status status, statuses[MANY];
    int i, index, left, some, flag, indices[MANY];
    begin_writes(file, requests, 1);
    for (i = 0; i < MANY; i++) {
        for (flag = 0; !flag;)
            OK(MPI_Test(&requests[i], &flag, &status));
        expect_count(&status, LONG - i);
        EXPECT(requests[i] == MPI_REQUEST_NULL);
    }
    check_writes(file, 1);
    begin_writes(file, requests, 2);
    for (i = 0; i < MANY; i++) {
        for (flag = 0; !flag;)
            OK(MPI_Testany(MANY, requests, &index, &flag, &status));
        EXPECT(index >= 0 && index < MANY);
        expect_count(&status, LONG - index);
    }
    flag = 0;
    OK(MPI_Testany(MANY, requests, &index, &flag, &status));
    EXPECT(flag && index == MPI_UNDEFINED);
    check_writes(file, 2);
    begin_writes(file, requests, 3);
    for (left = MANY; left > 0; left -= some) {
        OK(MPI_Testsome(MANY, requests, &some, indices, statuses));
        for (i = 0; i < some; i++)
            expect_count(&statuses[i], LONG - indices[i]);
    }
    OK(MPI_Testsome(MANY, requests, &some, indices, statuses));
    EXPECT_EQ(some, MPI_UNDEFINED);
    check_writes(file, 3);
    begin_writes(file, requests, 4);
    for (flag = 0; !flag;)
        OK(MPI_Testall(MANY, requests, &flag, statuses));
    for (i = 0; i < MANY; i++)
        expect_count(&statuses[i], LONG - i);
    check_writes(file, 4);
    begin_writes(file, requests, 5);
    for (i = 0; i < MANY; i++) {
        for (flag = 0; !flag;)
            OK(MPI_Request_get_status(requests[i], &flag, &status));
        expect_count(&status, LONG - i);
        EXPECT(requests[i] != MPI_REQUEST_NULL);
        OK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&requests[i], &status));
        expect_count(&status, LONG - i);
    }
    check_writes(file, 5);
    OK(MPI_File_close(&file));
}

static void edges(void) {
    MPI_File file = new_file("x");
    MPI_Request null[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, ours, persistent, list[4];
    MPI_Status status, statuses[4];
    int flag, index, some, indices[4], message = 7;
    memset(out[0], 9, LONG);
    /* With one of ours pending, lists that have none of ours. */
    OK(MPI_File_iwrite_at(file, place(0), out[0], LONG, MPI_BYTE, &ours));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Wait(&null[0], &status));
    flag = 0;
    OK(MPI_Test(&null[0], &flag, &status));
    EXPECT(flag);
    flag = 0;
    OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    EXPECT(flag);
    OK(MPI_Waitall(2, null, statuses));
    OK(MPI_Waitany(2, null, &index, &status));
    EXPECT_EQ(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(2, null, &some, indices, statuses));
    EXPECT_EQ(some, MPI_UNDEFINED);
    flag = 0;
    OK(MPI_Testany(2, null, &index, &flag, &status));
    EXPECT(flag && index == MPI_UNDEFINED);
    /* Null, inactive, ours and a message in one list. */
    OK(MPI_Recv_init(&message, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &persistent));
    list[0] = MPI_REQUEST_NULL;
    list[1] = persistent;
    list[2] = ours;
    OK(MPI_Irecv(&message, 1, MPI_INT, (rank + size - 1) % size, TAG, MPI_COMM_WORLD, &list[3]));
    OK(MPI_Waitany(3, list, &index, &status));
    EXPECT_EQ(index, 2);
    expect_count(&status, LONG);
    OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, TAG, MPI_COMM_WORLD));
    OK(MPI_File_iwrite_at(file, place(0), out[0], LONG, MPI_BYTE, &list[2]));
    OK(MPI_Waitall(4, list, statuses));
    expect_count(&statuses[2], LONG);
    EXPECT_EQ(message, (rank + size - 1) % size);
    EXPECT_EQ(statuses[3].MPI_SOURCE, (rank + size - 1) % size);
    EXPECT(list[1] == persistent && list[2] == MPI_REQUEST_NULL && list[3] == MPI_REQUEST_NULL);
    OK(MPI_Request_free(&persistent));
    /* Nothing to move. */
    OK(MPI_File_iwrite_at(file, 0, out[0], 0, MPI_BYTE, &ours));
    OK(MPI_Wait(&ours, &status));
    expect_count(&status, 0);
    OK(MPI_File_iread_at(file, (MPI_Offset)size * MANY * LONG + 5, in[0], LONG, MPI_BYTE, &ours));
    OK(MPI_Wait(&ours, &status));
    expect_count(&status, 0);
    OK(MPI_File_close(&file));
}

/* A message that arrives while one of ours is pending; either order. */
static void beside_messages(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[3];
    MPI_Status statuses[3];
    static char to[1 << 22], from[1 << 22];
    int i, round;
    for (round = 0; round < 20; round++) {
        memset(to, round + rank, sizeof to);
        memset(out[0], round, LONG);
        OK(MPI_Irecv(from, sizeof from, MPI_BYTE, (rank + size - 1) % size, TAG, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_File_iwrite_at_all(file, place(0), out[0], LONG, MPI_BYTE, &requests[1]));
        OK(MPI_Isend(to, sizeof to, MPI_BYTE, (rank + 1) % size, TAG, MPI_COMM_WORLD, &requests[2]));
        if (round % 3 == 0) {
            OK(MPI_Waitall(3, requests, statuses));
        } else if (round % 3 == 1) {
            for (i = 0; i < 3; i++) { int index; OK(MPI_Waitany(3, requests, &index, statuses)); }
        } else {
            OK(MPI_Wait(&requests[(rank + round) % 3], statuses));
            OK(MPI_Waitall(3, requests, statuses));
        }
        EXPECT_EQ(from[sizeof from - 1], (char)(round + (rank + size - 1) % size));
    }
    OK(MPI_File_close(&file));
}

/* Given back while it runs: the operation ends all the same, and the file can be closed. */
static void given_back(void) {
    MPI_File file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Request requests[MANY];
    int i;
    begin_writes(file, requests, 7);
    for (i = 0; i < MANY; i++) {
        OK(MPI_Request_free(&requests[i]));
        EXPECT(requests[i] == MPI_REQUEST_NULL);
    }
    OK(MPI_File_sync(file));
    OK(MPI_File_close(&file));
    file = new_file("x");
    check_writes(file, 7);
    OK(MPI_File_close(&file));
}

static void cancelled(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[MANY];
    MPI_Status status;
    int i;
    begin_writes(file, requests, 8);
    for (i = 0; i < MANY; i++) {
        OK(MPI_Cancel(&requests[i]));
        OK(MPI_Wait(&requests[i], &status));
        expect_count(&status, LONG - i);
    }
    check_writes(file, 8);
    OK(MPI_File_close(&file));
}

static int called, called_code;
static void note(MPI_File *file, int *code, ...) { (void)file; called++; called_code = *code; }

/* A write that begins inside all offsets and ends beyond them fails where it is done. */
static void failures(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[3];
    MPI_Status status, statuses[3];
    MPI_Errhandler handler;
    MPI_Offset far = INT64_MAX - LONG / 2;
    int code, index, flag, some, indices[3];
    code = MPI_File_iwrite_at(file, far, out[0], LONG, MPI_BYTE, &requests[0]);
    if (code != MPI_SUCCESS) { /* found at the call: as good */
        OK(MPI_File_close(&file));
        return;
    }
    code = MPI_Wait(&requests[0], &status);
    EXPECT(code != MPI_SUCCESS && requests[0] == MPI_REQUEST_NULL);
    EXPECT(strstr(text_of(code), "failures.x") != NULL);
    OK(MPI_File_create_errhandler(note, &handler));
    OK(MPI_File_set_errhandler(file, handler));
    OK(MPI_File_iwrite_at(file, far, out[0], LONG, MPI_BYTE, &requests[0]));
    for (flag = 0; !flag && (code = MPI_Test(&requests[0], &flag, &status)) == MPI_SUCCESS;) {}
    EXPECT(code != MPI_SUCCESS);
    EXPECT_EQ(called, 1);
    EXPECT_EQ(called_code, code);
    OK(MPI_File_iwrite_at(file, place(0), out[0], LONG, MPI_BYTE, &requests[0]));
    OK(MPI_File_iwrite_at(file, far, out[1], LONG, MPI_BYTE, &requests[1]));
    requests[2] = MPI_REQUEST_NULL;
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(3, requests, statuses));
    EXPECT_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQ(statuses[1].MPI_ERROR, code);
    EXPECT_EQ(statuses[2].MPI_ERROR, MPI_SUCCESS);
    expect_count(&statuses[0], LONG);
    EXPECT(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    EXPECT_EQ(called, 2);
    OK(MPI_File_iwrite_at(file, far, out[1], LONG, MPI_BYTE, &requests[1]));
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitsome(2, requests, &some, indices, statuses));
    EXPECT(some == 1 && indices[0] == 1);
    EXPECT_EQ(statuses[0].MPI_ERROR, code);
    OK(MPI_File_iwrite_at(file, far, out[1], LONG, MPI_BYTE, &requests[1]));
    EXPECT_EQ(MPI_Waitany(2, requests, &index, &status), code);
    EXPECT_EQ(index, 1);
    OK(MPI_File_iwrite_at(file, far, out[1], LONG, MPI_BYTE, &requests[1]));
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_close(&file));
}

/* seed004 s56: pointers move at the call; explicit offsets leave them. */
static void s56_pointers(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Offset at = -1;
    int i, values[4] = {0};
    static int numbers[LONG / 2];
    for (i = 0; i < LONG / 2; i++) numbers[i] = i;
    OK(MPI_File_set_view(file, (MPI_Offset)rank * sizeof numbers, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_iwrite(file, numbers, LONG / 4, MPI_INT, &requests[0]));
    OK(MPI_File_get_position(file, &at));
    EXPECT_EQ(at, LONG / 4);
    OK(MPI_File_iwrite(file, numbers + LONG / 4, LONG / 4, MPI_INT, &requests[1]));
    OK(MPI_File_get_position(file, &at));
    EXPECT_EQ(at, LONG / 2);
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_File_seek(file, 10, MPI_SEEK_SET));
    OK(MPI_File_iread(file, &values[0], 1, MPI_INT, &requests[0]));
    OK(MPI_File_iread(file, &values[1], 2, MPI_INT, &requests[1]));
    OK(MPI_File_iread_at(file, 100, &values[3], 1, MPI_INT, &requests[2]));
    OK(MPI_File_get_position(file, &at));
    EXPECT_EQ(at, 13);
    OK(MPI_Waitall(3, requests, statuses));
    EXPECT(values[0] == 10 && values[1] == 11 && values[2] == 12 && values[3] == 100);
    OK(MPI_File_close(&file));
}

static void shared(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    MPI_Offset at = -1, length = -1;
    int i, counts[256] = {0}, all[256];
    char *whole;
    for (i = 0; i < MANY; i++) {
        memset(out[i], 1 + rank * MANY + i, LONG);
        OK(MPI_File_iwrite_shared(file, out[i], LONG, MPI_BYTE, &requests[i]));
    }
    barrier();
    OK(MPI_File_get_position_shared(file, &at));
    EXPECT_EQ(at, (long long)size * MANY * LONG);
    OK(MPI_Waitall(MANY, requests, statuses));
    OK(MPI_File_sync(file));
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, (long long)size * MANY * LONG);
    whole = malloc(LONG);
    for (i = 0; i < size * MANY; i++) {
        OK(MPI_File_read_at(file, (MPI_Offset)i * LONG, whole, LONG, MPI_BYTE, &statuses[0]));
        EXPECT(whole[0] == whole[LONG - 1] && whole[0] == whole[LONG / 2]);
        counts[(unsigned char)whole[0]]++;
    }
    for (i = 1; i <= size * MANY; i++)
        EXPECT_EQ(counts[i], 1);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    memset(counts, 0, sizeof counts);
    for (i = 0; i < MANY; i++)
        OK(MPI_File_iread_shared(file, in[i], LONG, MPI_BYTE, &requests[i]));
    OK(MPI_Waitall(MANY, requests, statuses));
    for (i = 0; i < MANY; i++)
        counts[(unsigned char)in[i][0]]++;
    MPI_Allreduce(counts, all, 256, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (i = 1; i <= size * MANY; i++)
        EXPECT_EQ(all[i], 1);
    free(whole);
    OK(MPI_File_close(&file));
}

/* A file whose collective accesses exchange bytes among the ranks, where the hint is known. */
static MPI_File regrouped_file(const char *what) {
    MPI_File file = MPI_FILE_NULL;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "pario_strategy", "two_phase"));
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(what), NEW_MODE, info, &file));
    OK(MPI_Info_free(&info));
    return file;
}

/* Operations of all processes: two files in either order, blocking behind non-blocking, a late rank. */
static void together_with(MPI_File a, MPI_File b) {
    MPI_Request requests[4];
    MPI_Status statuses[4], status;
    int i, token = 0;
    for (i = 0; i < MANY; i++) memset(out[i], rank * 16 + i, LONG);
    if (rank % 2 == 0) {
        OK(MPI_File_iwrite_at_all(a, place(0), out[0], LONG, MPI_BYTE, &requests[0]));
        OK(MPI_File_iwrite_at_all(b, place(0), out[1], LONG, MPI_BYTE, &requests[1]));
        OK(MPI_Wait(&requests[0], &status));
        OK(MPI_Wait(&requests[1], &status));
    } else {
        OK(MPI_File_iwrite_at_all(b, place(0), out[1], LONG, MPI_BYTE, &requests[1]));
        OK(MPI_File_iwrite_at_all(a, place(0), out[0], LONG, MPI_BYTE, &requests[0]));
        OK(MPI_Wait(&requests[1], &status));
        OK(MPI_Wait(&requests[0], &status));
    }
    /* The others come only after this rank has gone on. */
    if (rank == 0) {
        OK(MPI_File_iwrite_all(a, out[2], LONG, MPI_BYTE, &requests[0]));
        for (i = 1; i < size; i++) OK(MPI_Send(&token, 1, MPI_INT, i, TAG, MPI_COMM_WORLD));
    } else {
        OK(MPI_File_seek(a, place(2), MPI_SEEK_SET));
        OK(MPI_Recv(&token, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status));
        OK(MPI_File_iwrite_all(a, out[2], LONG, MPI_BYTE, &requests[0]));
    }
    OK(MPI_File_write_at_all(a, place(3), out[3], LONG, MPI_BYTE, &status));
    expect_count(&status, LONG);
    OK(MPI_File_iread_at_all(a, place(3), in[3], LONG, MPI_BYTE, &requests[1]));
    OK(MPI_File_iread_at_all(b, place(0), in[1], LONG, MPI_BYTE, &requests[2]));
    OK(MPI_File_iread_all(a, in[4], 0, MPI_BYTE, &requests[3]));
    OK(MPI_Waitall(4, requests, statuses));
    expect_count(&statuses[1], LONG);
    expect_count(&statuses[3], 0);
    EXPECT(memcmp(in[3], out[3], LONG) == 0 && memcmp(in[1], out[1], LONG) == 0);
    OK(MPI_File_close(&a));
    OK(MPI_File_close(&b));
}

static void together(void) {
    MPI_File a = new_file("a"), b = new_file("b");
    together_with(a, b);
}

static void together_regrouped(void) {
    MPI_File a = regrouped_file("a"), b = regrouped_file("b");
    together_with(a, b);
}

static void split_regrouped(void) {
    MPI_File file = regrouped_file("x");
    MPI_Status status;
    int i, round;
    for (round = 0; round < 4; round++) {
        for (i = 0; i < LONG; i++) out[0][i] = (char)(i * 7 + rank + round);
        OK(MPI_File_write_at_all_begin(file, (MPI_Offset)rank * LONG, out[0], LONG, MPI_BYTE));
        OK(MPI_File_write_at_all_end(file, out[0], &status));
        expect_count(&status, LONG);
        OK(MPI_File_read_at_all_begin(file, (MPI_Offset)rank * LONG, in[0], LONG, MPI_BYTE));
        OK(MPI_File_read_at_all_end(file, in[0], &status));
        expect_count(&status, LONG);
        EXPECT(memcmp(in[0], out[0], LONG) == 0);
    }
    OK(MPI_File_close(&file));
}

/* seed004 s62. */
static void s62_split(void) {
    MPI_File file = new_file("x");
    MPI_Request request;
    MPI_Status status;
    MPI_Offset at = -1;
    MPI_File unused;
    memset(out, 3 + rank, sizeof out);
    REFUSED(MPI_File_write_all_end(file, out[0], &status));
    OK(MPI_File_seek(file, place(0), MPI_SEEK_SET));
    OK(MPI_File_write_all_begin(file, out[0], LONG, MPI_BYTE));
    OK(MPI_File_get_position(file, &at));
    EXPECT_EQ(at, place(0) + LONG);
    REFUSED(MPI_File_write_all_begin(file, out[0], LONG, MPI_BYTE));
    REFUSED(MPI_File_read_at_all_begin(file, 0, in[0], LONG, MPI_BYTE));
    REFUSED(MPI_File_write_ordered_begin(file, out[0], LONG, MPI_BYTE));
    REFUSED(MPI_File_read_all_end(file, in[0], &status));
    REFUSED(MPI_File_write_at_all_end(file, out[0], &status));
    REFUSED(MPI_File_write_at_all(file, 0, out[0], 1, MPI_BYTE, &status));
    REFUSED(MPI_File_read_ordered(file, in[0], 1, MPI_BYTE, &status));
    REFUSED(MPI_File_iread_at_all(file, 0, in[0], 1, MPI_BYTE, &request));
    REFUSED(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    unused = file;
    REFUSED(MPI_File_close(&unused));
    OK(MPI_File_write_at(file, place(1), out[1], LONG, MPI_BYTE, &status)); /* alone it may */
    OK(MPI_File_write_all_end(file, out[0], &status));
    expect_count(&status, LONG);
    REFUSED(MPI_File_write_all_end(file, out[0], &status));
    OK(MPI_File_read_at_all_begin(file, place(0), in[0], LONG, MPI_BYTE));
    OK(MPI_File_read_at_all_end(file, in[0], &status));
    expect_count(&status, LONG);
    EXPECT(memcmp(in[0], out[0], LONG) == 0);
    OK(MPI_File_sync(file));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_write_ordered_begin(file, out[0], LONG, MPI_BYTE));
    OK(MPI_File_write_ordered_end(file, out[0], MPI_STATUS_IGNORE));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin(file, in[1], LONG, MPI_BYTE));
    OK(MPI_File_read_ordered_end(file, in[1], &status));
    expect_count(&status, LONG);
    EXPECT(memcmp(in[1], out[0], LONG) == 0);
    OK(MPI_File_read_all_begin(file, in[1], 0, MPI_BYTE));
    OK(MPI_File_read_all_end(file, in[1], &status));
    OK(MPI_File_close(&file));
}

/* What changes a file waits for the operations that are under way; their requests stay. */
static void pending(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Datatype filetype;
    MPI_Offset length = -1;
    int token = 0, i;
    if (size > 1 && rank == 0) {
        /* The write waits for the others, who wait for this rank's message. */
        OK(MPI_File_iwrite_at_all(file, place(0), out[0], LONG, MPI_BYTE, &requests[0]));
        for (i = 1; i < size; i++) OK(MPI_Send(&token, 1, MPI_INT, i, TAG, MPI_COMM_WORLD));
    } else {
        if (size > 1) OK(MPI_Recv(&token, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_File_iwrite_at_all(file, place(0), out[0], LONG, MPI_BYTE, &requests[0]));
    }
    /* The same place, seen through another view while the first write may be under way. */
    MPI_Type_create_resized(MPI_INT, 0, 8, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(file, place(0), MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_iread_at(file, 0, in[1], 256, MPI_INT, &requests[1]));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_iwrite_at(file, place(2), out[2], LONG, MPI_BYTE, &requests[2]));
    OK(MPI_File_sync(file));
    OK(MPI_File_get_size(file, &length));
    OK(MPI_File_iread_at_all(file, place(0), in[0], LONG, MPI_BYTE, &requests[3]));
    OK(MPI_File_close(&file));
    EXPECT(file == MPI_FILE_NULL);
    OK(MPI_Waitall(4, requests, statuses));
    expect_count(&statuses[0], LONG);
    expect_count(&statuses[1], 1024);
    expect_count(&statuses[2], LONG);
    expect_count(&statuses[3], LONG);
    EXPECT(memcmp(in[0], out[0], LONG) == 0);
    for (i = 0; i < 256; i++) EXPECT(memcmp(in[1] + 4 * i, out[0] + 8 * i, 4) == 0);
    EXPECT(length >= place(2) + LONG);
    MPI_Type_free(&filetype);
}

/* A handler's answer is what the call returns. */
static int answers;
static void forgive(MPI_File *file, int *code, ...) {
    (void)file;
    answers++;
    *code = MPI_SUCCESS;
}

static void answer(void) {
    MPI_File file = new_file("x"), other;
    MPI_Errhandler handler, before;
    MPI_Request request;
    char byte = 0;
    answers = 0;
    OK(MPI_File_create_errhandler(forgive, &handler));
    OK(MPI_File_set_errhandler(file, handler));
    OK(MPI_File_write_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_EQ(answers, 1);
    OK(MPI_File_iread_at(file, -1, &byte, 1, MPI_BYTE, &request));
    EXPECT_EQ(answers, 2);
    EXPECT(request == MPI_REQUEST_NULL);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    REFUSED(MPI_File_write_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_EQ(answers, 2);
    OK(MPI_File_close(&file));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_open(MPI_COMM_WORLD, file_name("missing"), MPI_MODE_RDWR, MPI_INFO_NULL, &other));
    EXPECT_EQ(answers, 3);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, before));
    OK(MPI_Errhandler_free(&before));
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
/* Looking at many requests without completing them. */
static void looking(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[MANY];
    MPI_Status status, statuses[MANY];
    int i, flag, index, some, indices[MANY];
    begin_writes(file, requests, 6);
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status_any(MANY, requests, &index, &flag, &status));
    EXPECT(index >= 0 && index < MANY && requests[index] != MPI_REQUEST_NULL);
    expect_count(&status, LONG - index);
    for (some = 0; some == 0;)
        OK(MPI_Request_get_status_some(MANY, requests, &some, indices, statuses));
    expect_count(&statuses[0], LONG - indices[0]);
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status_all(MANY, requests, &flag, statuses));
    for (i = 0; i < MANY; i++) {
        expect_count(&statuses[i], LONG - i);
        EXPECT(requests[i] != MPI_REQUEST_NULL);
    }
    OK(MPI_Waitall(MANY, requests, statuses));
    check_writes(file, 6);
    OK(MPI_File_close(&file));
}
#else
static void looking(void) {}
#endif

static const Case cases[] = {
    {"seed004_s35_wait", s35_wait}, {"seed004_s35_test", s35_test}, {"seed001_s22_test", s35_test}, {"edges", edges}, {"beside_messages", beside_messages},
    {"given_back", given_back}, {"cancelled", cancelled}, {"failures", failures}, {"pointers", s56_pointers},
    {"shared", shared}, {"together", together}, {"together_regrouped", together_regrouped}, {"split_regrouped", split_regrouped}, {"split", s62_split}, {"pending", pending}, {"answer", answer}, {"looking", looking},
};
PROGRAM(cases)
