/* Data access: statements 56 to 58, 61 to 65 and 85 of source 004; 21, 23 and 27 of source 001. Two ranks or
 * more. */
#include "check.h"

static void sync_all(MPI_File file) {
    OK(MPI_File_sync(file));
    barrier();
    OK(MPI_File_sync(file));
}

static void s56_nonblocking_pointer(void) {
    MPI_File file = new_file("x");
    int values[40], first[10], second[10], at[5], i;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Offset position = -1;
    for (i = 0; i < 40; i++)
        values[i] = i;
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, values, 40, MPI_INT, statuses));
    sync_all(file);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_iread(file, first, 10, MPI_INT, &requests[0]));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 10); /* it moved when the call began */
    OK(MPI_File_iread(file, second, 10, MPI_INT, &requests[1]));
    OK(MPI_File_iread_at(file, 30, at, 5, MPI_INT, &requests[2]));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 20);
    OK(MPI_Waitall(3, requests, statuses));
    for (i = 0; i < 10; i++) {
        EXPECT_EQ(first[i], i);
        EXPECT_EQ(second[i], 10 + i);
    }
    EXPECT_EQ(at[4], 34);
    EXPECT_EQ(count_of(&statuses[0], MPI_INT), 10);
    EXPECT_EQ(count_of(&statuses[1], MPI_INT), 10);
    EXPECT_EQ(count_of(&statuses[2], MPI_INT), 5);
    OK(MPI_File_read_at(file, 3, at, 2, MPI_INT, statuses));
    OK(MPI_File_write_at(file, 40 + rank, at, 1, MPI_INT, statuses));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 20);
    OK(MPI_File_close(&file));
}

/* Every way to complete a request. */
static void s56_completion(void) {
    MPI_File file = new_file("x");
    enum { N = 8 };
    int values[N], back[N], i, index, flag, done, indices[N], count;
    MPI_Request requests[N];
    MPI_Status statuses[N], status;
    MPI_Offset base = (MPI_Offset)rank * N * 4;
    for (i = 0; i < N; i++)
        values[i] = 100 * rank + i;
    for (i = 0; i < N; i++)
        OK(MPI_File_iwrite_at(file, base + 4 * i, &values[i], 1, MPI_INT, &requests[i]));
    for (i = 0; i < N; i++) {
        index = -1;
        OK(MPI_Waitany(N, requests, &index, &status));
        EXPECT(index >= 0 && index < N);
        EXPECT_EQ(count_of(&status, MPI_INT), 1);
    }
    OK(MPI_Waitany(N, requests, &index, &status));
    EXPECT_EQ(index, MPI_UNDEFINED);
    for (i = 0; i < N; i++)
        OK(MPI_File_iread_at(file, base + 4 * i, &back[i], 1, MPI_INT, &requests[i]));
    for (done = 0; done < N;) {
        OK(MPI_Waitsome(N, requests, &count, indices, statuses));
        EXPECT(count > 0);
        if (count <= 0)
            break;
        done += count;
    }
    EXPECT(memcmp(values, back, sizeof values) == 0);
    memset(back, 0, sizeof back);
    for (i = 0; i < N; i++)
        OK(MPI_File_iread_at(file, base + 4 * i, &back[i], 1, MPI_INT, &requests[i]));
    for (flag = 0; !flag;)
        OK(MPI_Testall(N, requests, &flag, statuses));
    EXPECT(memcmp(values, back, sizeof values) == 0);
    memset(back, 0, sizeof back);
    for (i = 0; i < N; i++) {
        OK(MPI_File_iread_at(file, base + 4 * i, &back[i], 1, MPI_INT, &requests[i]));
        if (i % 3 == 0)
            for (flag = 0; !flag;)
                OK(MPI_Test(&requests[i], &flag, &status));
        else if (i % 3 == 1)
            for (flag = 0; !flag;)
                OK(MPI_Testany(1, &requests[i], &index, &flag, &status));
        else
            for (count = 0; count == 0;)
                OK(MPI_Testsome(1, &requests[i], &count, indices, statuses));
        EXPECT(requests[i] == MPI_REQUEST_NULL);
    }
    EXPECT(memcmp(values, back, sizeof values) == 0);
    OK(MPI_File_iread_at(file, base, back, 1, MPI_INT, &requests[0]));
    for (flag = 0; !flag;)
        OK(MPI_Request_get_status(requests[0], &flag, &status));
    EXPECT(requests[0] != MPI_REQUEST_NULL);
    EXPECT_EQ(count_of(&status, MPI_INT), 1);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    /* Beside requests of the MPI's own, in one array, both ways. */
    {
        int next = (rank + 1) % size, before = (rank + size - 1) % size, got = -1;
        OK(MPI_Irecv(&got, 1, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_File_iread_at(file, base, back, N, MPI_INT, &requests[1]));
        OK(MPI_Isend(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[2]));
        requests[3] = MPI_REQUEST_NULL;
        OK(MPI_Waitall(4, requests, statuses));
        EXPECT_EQ(got, before);
        EXPECT_EQ(count_of(&statuses[1], MPI_INT), N);
        EXPECT(memcmp(values, back, sizeof values) == 0);
    }
    /* Given up before it ends: the close waits for it. */
    OK(MPI_File_iwrite_at(file, base, values, N, MPI_INT, &requests[0]));
    OK(MPI_Request_free(&requests[0]));
    EXPECT(requests[0] == MPI_REQUEST_NULL);
    OK(MPI_File_close(&file));
}

static void s57_both_derived(void) {
    /* Memory columns of a matrix with a border, into a file of interleaved rows. */
    MPI_File file = new_file("x");
    enum { ROWS = 7, COLUMNS = 5 };
    double memory[ROWS + 2][COLUMNS + 2], back[ROWS + 2][COLUMNS + 2], *whole = malloc(sizeof(double) * ROWS * COLUMNS * (size_t)size);
    MPI_Datatype column, inside, filetype;
    MPI_Status status;
    int i, j, sizes[2] = {COLUMNS, ROWS * size}, parts[2] = {COLUMNS, ROWS}, starts[2] = {0, ROWS * rank};
    MPI_Type_vector(ROWS, 1, COLUMNS + 2, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(COLUMNS, 1, sizeof(double), column, &inside);
    MPI_Type_commit(&inside);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &filetype);
    MPI_Type_commit(&filetype);
    for (i = 0; i < ROWS + 2; i++)
        for (j = 0; j < COLUMNS + 2; j++) {
            memory[i][j] = 10000 * rank + 100 * i + j;
            back[i][j] = -1;
        }
    OK(MPI_File_set_view(file, 24, MPI_DOUBLE, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, &memory[1][1], 1, inside, &status));
    EXPECT_EQ(count_of(&status, inside), 1);
    EXPECT_EQ(count_of(&status, MPI_DOUBLE), ROWS * COLUMNS);
    sync_all(file);
    OK(MPI_File_read_at(file, 0, &back[1][1], 1, inside, &status));
    for (i = 0; i < ROWS + 2; i++)
        for (j = 0; j < COLUMNS + 2; j++)
            EXPECT(back[i][j] == (i > 0 && i <= ROWS && j > 0 && j <= COLUMNS ? memory[i][j] : -1));
    OK(MPI_File_set_view(file, 24, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, whole, ROWS * COLUMNS * size, MPI_DOUBLE, &status));
    for (j = 0; j < COLUMNS; j++)
        for (i = 0; i < ROWS * size; i++)
            EXPECT(whole[j * ROWS * size + i] == 10000 * (i / ROWS) + 100 * (i % ROWS + 1) + j + 1);
    MPI_Type_free(&column);
    MPI_Type_free(&inside);
    MPI_Type_free(&filetype);
    free(whole);
    OK(MPI_File_close(&file));
}

static void s57_memory_kinds(void) {
    /* Zero counts, negative lower bounds, overlap on writes. */
    MPI_File file = new_file("x");
    MPI_Datatype below, overlapping, empty;
    MPI_Status status;
    int values[20], back[20], i, lengths[2] = {1, 1}, displacements[2] = {-3, 2};
    MPI_Offset base = rank * 200;
    for (i = 0; i < 20; i++)
        values[i] = 50 * rank + i;
    OK(MPI_File_write_at(file, base, NULL, 0, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 0);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    OK(MPI_File_write_at_all(file, base, values, 5, empty, &status));
    OK(MPI_File_read_at_all(file, base, back, rank ? 0 : 0, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 0);
    MPI_Type_indexed(2, lengths, displacements, MPI_INT, &below);
    MPI_Type_commit(&below);
    OK(MPI_File_write_at(file, base, values + 10, 1, below, &status));
    OK(MPI_File_read_at(file, base, back, 2, MPI_INT, &status));
    EXPECT_EQ(back[0], values[7]);
    EXPECT_EQ(back[1], values[12]);
    /* Items 0 1 2 and 1 2 3: written twice over. */
    MPI_Type_create_hvector(2, 3, 4, MPI_INT, &overlapping);
    MPI_Type_commit(&overlapping);
    OK(MPI_File_write_at(file, base, values, 1, overlapping, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 6);
    OK(MPI_File_read_at(file, base, back, 6, MPI_INT, &status));
    for (i = 0; i < 6; i++)
        EXPECT_EQ(back[i], values[i % 3 + i / 3]);
    MPI_Type_free(&below);
    MPI_Type_free(&overlapping);
    MPI_Type_free(&empty);
    OK(MPI_File_close(&file));
}

/* Levels of access: contiguous or derived, independent or collective. One file each, then compared. */
static void levels(void) {
    static const char *const names[4] = {"level-0", "level-1", "level-2", "level-3"};
    enum { N = 24 };
    int level, i, j, sizes[2], parts[2], starts[2], side = 1;
    long long lengths[4];
    unsigned char *bytes[4];
    while ((side + 1) * (side + 1) <= size)
        side++;
    /* A matrix of ints in blocks of columns; rows are runs. */
    sizes[0] = N;
    sizes[1] = N * size;
    parts[0] = N;
    parts[1] = N;
    starts[0] = 0;
    starts[1] = N * rank;
    for (level = 0; level < 4; level++) {
        MPI_File file;
        MPI_Datatype filetype;
        MPI_Status status;
        int values[N][N], back[N][N];
        discard(names[level]);
        file = open_as(MPI_COMM_WORLD, names[level], MPI_MODE_CREATE | MPI_MODE_RDWR);
        for (i = 0; i < N; i++)
            for (j = 0; j < N; j++)
                values[i][j] = (i * N * size + N * rank + j) * 3 + 1;
        memset(back, 0, sizeof back);
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &filetype);
        MPI_Type_commit(&filetype);
        if (level >= 2)
            OK(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
        else
            OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        for (i = 0; i < N; i++) {
            MPI_Offset offset = (MPI_Offset)i * N * size + (MPI_Offset)N * rank;
            if (level == 0)
                OK(MPI_File_write_at(file, offset, values[i], N, MPI_INT, &status));
            if (level == 1)
                OK(MPI_File_write_at_all(file, offset, values[i], N, MPI_INT, &status));
        }
        if (level == 2)
            OK(MPI_File_write(file, values, N * N, MPI_INT, &status));
        if (level == 3)
            OK(MPI_File_write_all(file, values, N * N, MPI_INT, &status));
        sync_all(file);
        for (i = 0; i < N; i++) {
            MPI_Offset offset = (MPI_Offset)i * N * size + (MPI_Offset)N * rank;
            if (level == 0)
                OK(MPI_File_read_at(file, offset, back[i], N, MPI_INT, &status));
            if (level == 1)
                OK(MPI_File_read_at_all(file, offset, back[i], N, MPI_INT, &status));
        }
        if (level == 2)
            OK(MPI_File_read_at(file, 0, back, N * N, MPI_INT, &status));
        if (level == 3)
            OK(MPI_File_read_at_all(file, 0, back, N * N, MPI_INT, &status));
        EXPECT(memcmp(values, back, sizeof values) == 0);
        MPI_Type_free(&filetype);
        OK(MPI_File_close(&file));
        barrier();
        bytes[level] = contents(names[level], &lengths[level]);
        EXPECT_EQ(lengths[level], 4LL * N * N * size);
    }
    for (level = 1; level < 4; level++) {
        EXPECT_EQ(lengths[level], lengths[0]);
        if (lengths[level] == lengths[0])
            EXPECT(memcmp(bytes[level], bytes[0], (size_t)lengths[0]) == 0);
    }
    barrier();
    for (level = 0; level < 4; level++) {
        free(bytes[level]);
        discard(names[level]);
    }
}

static void s58_collective_equals_independent(void) {
    /* Sizes differ among ranks, some have nothing; both ways see the same. */
    MPI_File file = new_file("x");
    MPI_Status status;
    enum { MOST = 5000 };
    static unsigned char values[MOST], one[MOST], two[MOST];
    int mine = rank % 3 == 2 ? 0 : 1000 * (rank + 1) % MOST, round;
    long long base = 0, length = mine;
    MPI_Exscan(&length, &base, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        base = 0;
    for (round = 0; round < 3; round++) {
        fill(values, mine, rank + 10 * round);
        if (round == 1)
            OK(MPI_File_write_at(file, base, values, mine, MPI_BYTE, &status));
        else
            OK(MPI_File_write_at_all(file, base, values, mine, MPI_BYTE, &status));
        EXPECT_EQ(count_of(&status, MPI_BYTE), mine);
        sync_all(file);
        OK(MPI_File_read_at(file, base, one, mine, MPI_BYTE, &status));
        OK(MPI_File_read_at_all(file, base, two, mine, MPI_BYTE, &status));
        EXPECT_EQ(count_of(&status, MPI_BYTE), mine);
        EXPECT(memcmp(one, values, (size_t)mine) == 0);
        EXPECT(memcmp(two, values, (size_t)mine) == 0);
        barrier();
    }
    OK(MPI_File_close(&file));
}

static void s58_nonblocking_collective(void) {
    MPI_File file = new_file("x");
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Offset position;
    int values[2][8], back[2][8], i;
    for (i = 0; i < 8; i++) {
        values[0][i] = 100 * rank + i;
        values[1][i] = 5000 + 100 * rank + i;
    }
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_iwrite_all(file, values[0], 8, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_at_all(file, 8, values[1], 8, MPI_INT, &requests[1]));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 8);
    OK(MPI_Waitall(2, requests, statuses));
    EXPECT_EQ(count_of(&statuses[0], MPI_INT), 8);
    EXPECT_EQ(count_of(&statuses[1], MPI_INT), 8);
    sync_all(file);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread_all(file, back[0], 8, MPI_INT, &requests[0]));
    OK(MPI_File_iread_at_all(file, 8, back[1], 8, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    EXPECT(memcmp(values, back, sizeof values) == 0);
    OK(MPI_File_close(&file));
}

static void s61_shared(void) {
    /* Nobody's items are lost or seen twice, whoever comes when. */
    MPI_File file = new_file("x");
    enum { EACH = 25 };
    MPI_Status status;
    MPI_Request request;
    MPI_Offset position = -1;
    int i, total = EACH * size, *seen = calloc((size_t)total, sizeof(int)), *all = malloc((size_t)total * sizeof(int)), got;
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (i = 0; i < EACH; i++) {
        int value = EACH * rank + i;
        if (i % 2) {
            OK(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        } else
            OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    }
    sync_all(file);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, total);
    OK(MPI_File_read_at(file, 0, all, total, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), total);
    barrier(); /* before the first one moves it */
    for (i = 0; i < total; i++) {
        EXPECT(all[i] >= 0 && all[i] < total);
        if (all[i] >= 0 && all[i] < total)
            EXPECT_EQ(seen[all[i]]++, 0);
    }
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    memset(seen, 0, (size_t)total * sizeof(int));
    for (i = 0; i < EACH; i++) {
        got = -1;
        if (i % 2) {
            OK(MPI_File_iread_shared(file, &got, 1, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        } else
            OK(MPI_File_read_shared(file, &got, 1, MPI_INT, &status));
        if (got >= 0 && got < total)
            seen[got]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < total; i++)
        EXPECT_EQ(seen[i], 1);
    free(seen);
    free(all);
    OK(MPI_File_close(&file));
}

static void s61_ordered(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Offset position = -1;
    int values[8], back[8], i, mine = rank + 1, before = rank * (rank + 1) / 2, total = size * (size + 1) / 2;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (i = 0; i < mine; i++)
        values[i] = before + i;
    OK(MPI_File_write_ordered(file, values, mine, MPI_INT, &status));
    OK(MPI_File_write_ordered_begin(file, values, mine, MPI_INT));
    OK(MPI_File_write_ordered_end(file, values, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), mine);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 2 * total);
    sync_all(file);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, back, mine, MPI_INT, &status));
    EXPECT(memcmp(values, back, (size_t)mine * sizeof(int)) == 0);
    memset(back, 0, sizeof back);
    OK(MPI_File_read_ordered_begin(file, back, mine, MPI_INT));
    OK(MPI_File_read_ordered_end(file, back, &status));
    EXPECT(memcmp(values, back, (size_t)mine * sizeof(int)) == 0);
    OK(MPI_File_read_at(file, total + before, back, mine, MPI_INT, &status));
    EXPECT(memcmp(values, back, (size_t)mine * sizeof(int)) == 0);
    OK(MPI_File_close(&file));
}

static void s62_split(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    int values[4] = {1, 2, 3, 4}, back[4] = {0};
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 32, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_write_all_end(file, values, &status));
    OK(MPI_File_write_all_begin(file, values, 4, MPI_INT));
    REFUSED(MPI_File_write_all_begin(file, values, 4, MPI_INT));
    REFUSED(MPI_File_read_at_all_begin(file, 0, back, 4, MPI_INT));
    REFUSED(MPI_File_read_all_end(file, values, &status)); /* of another kind */
    OK(MPI_File_write_all_end(file, values, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 4);
    REFUSED(MPI_File_write_all_end(file, values, &status));
    OK(MPI_File_write_at_all_begin(file, 4, values, 4, MPI_INT));
    OK(MPI_File_write_at_all_end(file, values, &status));
    sync_all(file);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, back, 4, MPI_INT));
    OK(MPI_File_read_all_end(file, back, &status));
    EXPECT(memcmp(values, back, sizeof values) == 0);
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at_all_begin(file, 4, back, 4, MPI_INT));
    OK(MPI_File_read_at_all_end(file, back, &status));
    EXPECT(memcmp(values, back, sizeof values) == 0);
    OK(MPI_File_close(&file));
}

/* A collective access during a split one of the same file is an error of Pario's; MPI forbids it. */
static void s62_interleaved(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    int values[4] = {1, 2, 3, 4};
    OK(MPI_File_write_all_begin(file, values, 4, MPI_INT));
    REFUSED(MPI_File_write_all(file, values, 4, MPI_INT, &status));
    OK(MPI_File_write_all_end(file, values, &status));
    OK(MPI_File_close(&file));
}

static void s63_atomic(void) {
    MPI_File file = new_file("x");
    enum { N = 30000, ROUNDS = 6 };
    static unsigned char values[N], back[N];
    MPI_Status status;
    MPI_Datatype strided;
    int flag = -1, round, i;
    OK(MPI_File_get_atomicity(file, &flag));
    EXPECT_EQ(flag, 0);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    EXPECT_EQ(flag, 1);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &strided);
    MPI_Type_commit(&strided);
    for (round = 0; round < ROUNDS; round++) {
        /* All write the same range at once, contiguous or strided: one of them is there, whole. */
        memset(values, 1 + rank + 10 * round, N);
        OK(MPI_File_set_view(file, 0, MPI_BYTE, round % 2 ? strided : MPI_BYTE, "native", MPI_INFO_NULL));
        barrier();
        OK(MPI_File_write_at(file, 0, values, N, MPI_BYTE, &status));
        /* What a rank sees now may be another's, but of one rank. */
        OK(MPI_File_read_at(file, 0, back, N, MPI_BYTE, &status));
        for (i = 1; i < N && back[i] == back[0]; i++) {}
        EXPECT_EQ(i, N);
        barrier();
        OK(MPI_File_read_at(file, 0, back, N, MPI_BYTE, &status));
        for (i = 1; i < N && back[i] == back[0]; i++) {}
        EXPECT_EQ(i, N);
        EXPECT(back[0] > 10 * round && back[0] <= 10 * round + size);
        barrier();
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, 0));
    MPI_Type_free(&strided);
    /* Atomicity differs among ranks: an error on all. */
    REFUSED(MPI_File_set_atomicity(file, rank % 2));
    OK(MPI_File_close(&file));
}

static void s63_sync(void) {
    /* Not atomic: what one wrote is there for the next after sync, barrier, sync. */
    MPI_File file = new_file("x");
    MPI_Status status;
    int round, next = (rank + 1) % size;
    for (round = 0; round < 10; round++) {
        int value = 100 * round + rank, back = -1;
        OK(MPI_File_write_at(file, 4 * rank, &value, 1, MPI_INT, &status));
        sync_all(file);
        OK(MPI_File_read_at(file, 4 * next, &back, 1, MPI_INT, &status));
        EXPECT_EQ(back, 100 * round + next);
        sync_all(file);
    }
    OK(MPI_File_close(&file));
}

static void s64_external32(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Aint extent = -1;
    int numbers[4] = {1, -2, 0x01020304, 1 << 30}, back[4];
    double reals[3] = {1.5, -2.25, 1e300}, reals_back[3];
    unsigned char raw[16];
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG_DOUBLE, &extent));
    EXPECT_EQ(extent, 16);
    OK(MPI_File_get_type_extent(file, MPI_SHORT, &extent));
    EXPECT_EQ(extent, 2);
    OK(MPI_File_write_at(file, 0, numbers, 4, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 4);
    OK(MPI_File_read_at(file, 0, back, 4, MPI_INT, &status));
    EXPECT(memcmp(numbers, back, sizeof numbers) == 0);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64 + 16, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, reals, 3, MPI_DOUBLE, &status));
    OK(MPI_File_read_at_all(file, 0, reals_back, 3, MPI_DOUBLE, &status));
    EXPECT(memcmp(reals, reals_back, sizeof reals) == 0);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 8, raw, 16, MPI_BYTE, &status));
    EXPECT(memcmp(raw, "\1\2\3\4\x40\0\0\0\x3f\xf8\0\0\0\0\0\0", 16) == 0);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 1000 + 4 * rank, numbers, 4, MPI_INT, &status));
    OK(MPI_File_read_at(file, 1000 + 4 * rank, back, 4, MPI_INT, &status));
    EXPECT(memcmp(numbers, back, sizeof numbers) == 0);
    OK(MPI_File_close(&file));
}

static int extent_of_pairs(MPI_Datatype type, MPI_Aint *extent, void *extra) {
    MPI_Aint low, normal;
    (void)extra;
    MPI_Type_get_extent(type, &low, &normal);
    *extent = 2 * normal;
    return MPI_SUCCESS;
}

/* A representation that holds each int twice. */
static int read_pairs(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
    int i;
    (void)type;
    ++*(int *)extra;
    for (i = 0; i < count; i++)
        ((int *)user)[position + i] = ((int *)file)[2 * i];
    return MPI_SUCCESS;
}

static int write_pairs(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
    int i;
    (void)type;
    ++*(int *)extra;
    for (i = 0; i < count; i++)
        ((int *)file)[2 * i] = ((int *)file)[2 * i + 1] = ((int *)user)[position + i];
    return MPI_SUCCESS;
}

static void s64_registered(void) {
    static int calls;
    MPI_File file = new_file("x");
    MPI_Status status;
    int numbers[5] = {5, 6, 7, 8, 9}, back[5] = {0}, raw[10], i;
    OK(MPI_Register_datarep("pairs", read_pairs, write_pairs, extent_of_pairs, &calls));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("pairs", read_pairs, write_pairs, extent_of_pairs, &calls));
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no such", MPI_INFO_NULL));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64, MPI_INT, MPI_INT, "pairs", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, numbers, 5, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, 0, back, 5, MPI_INT, &status));
    EXPECT(memcmp(numbers, back, sizeof numbers) == 0);
    EXPECT(calls >= 2);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, raw, 10, MPI_INT, &status));
    for (i = 0; i < 10; i++)
        EXPECT_EQ(raw[i], 5 + i / 2);
    OK(MPI_File_close(&file));
}

static void s65_counts(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Datatype pair;
    int values[10] = {0}, elements = -1;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, values, 7, MPI_INT, &status));
    sync_all(file);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    /* Less than asked: the file ends. */
    OK(MPI_File_read_at(file, 0, values, 5, pair, &status));
    EXPECT_EQ(count_of(&status, pair), MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, pair, &elements));
    EXPECT_EQ(elements, 7);
    EXPECT_EQ(count_of(&status, MPI_INT), 7);
    EXPECT_EQ(count_of(&status, MPI_BYTE), 28);
    OK(MPI_File_read_at_all(file, 5, values, 5, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 2);
    OK(MPI_File_read_at(file, 7, values, 5, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 0);
    OK(MPI_File_read_at(file, 7000, values, 5, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 0);
    FAILS(MPI_ERR_COUNT, MPI_File_read_at(file, 0, values, -1, MPI_INT, &status));
    REFUSED(MPI_File_read_at(file, -1, values, 1, MPI_INT, &status));
    REFUSED(MPI_File_read_at(file, 0, values, 1, MPI_DATATYPE_NULL, &status));
    MPI_Type_free(&pair);
    OK(MPI_File_close(&file));
}

static void s85_other_bytes(void) {
    /* Neighbours write at the same time, in each other's gaps: nothing of theirs is lost. */
    MPI_File file = new_file("x");
    enum { BLOCKS = 400, BLOCK = 12, ROUNDS = 5 };
    MPI_Datatype block, filetype;
    MPI_Status status;
    unsigned char *values = malloc(BLOCKS * BLOCK), *all = malloc((size_t)BLOCKS * BLOCK * (size_t)size);
    int round, i;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * size, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(file, (MPI_Offset)BLOCK * rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (round = 0; round < ROUNDS; round++) {
        fill(values, BLOCKS * BLOCK, 100 * round + rank);
        barrier();
        OK(MPI_File_write_at(file, 0, values, BLOCKS * BLOCK, MPI_BYTE, &status));
        sync_all(file);
        OK(MPI_File_read_at(file, 0, all, BLOCKS * BLOCK, MPI_BYTE, &status));
        EXPECT(memcmp(all, values, BLOCKS * BLOCK) == 0);
        barrier();
    }
    /* A read stores nothing between what it was asked for. */
    {
        MPI_Datatype memory;
        unsigned char sparse[64];
        MPI_Type_vector(8, 2, 8, MPI_BYTE, &memory);
        MPI_Type_commit(&memory);
        memset(sparse, 0xEE, sizeof sparse);
        OK(MPI_File_read_at(file, 0, sparse, 1, memory, &status));
        for (i = 0; i < 64; i++)
            EXPECT_EQ(sparse[i], i % 8 < 2 ? values[i / 8 * 2 + i % 8] : 0xEE);
        MPI_Type_free(&memory);
    }
    MPI_Type_free(&block);
    MPI_Type_free(&filetype);
    free(values);
    free(all);
    OK(MPI_File_close(&file));
}

/* The 24 functions of a device: blocking, non-blocking and collective, contiguous and strided. */
static void s21_device(void) {
    MPI_File file = new_file("x"); /* Open */
    MPI_Status status;
    MPI_Request request;
    MPI_Info info;
    MPI_Offset length = -1, position = -1;
    MPI_Datatype strided;
    int values[6] = {1, 2, 3, 4, 5, 6}, back[6], flag, base = 48 * rank;
    MPI_Type_create_resized(MPI_INT, 0, 8, &strided);
    MPI_Type_commit(&strided);
    OK(MPI_File_write_at(file, base, values, 6, MPI_INT, &status)); /* WriteContig, ReadContig */
    OK(MPI_File_read_at(file, base, back, 6, MPI_INT, &status));
    EXPECT(memcmp(values, back, sizeof back) == 0);
    OK(MPI_File_iwrite_at(file, base, values + 1, 5, MPI_INT, &request)); /* IwriteContig, WriteDone */
    for (flag = 0; !flag;)
        OK(MPI_Test(&request, &flag, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 5);
    OK(MPI_File_iread_at(file, base, back, 5, MPI_INT, &request)); /* IreadContig, ReadDone */
    for (flag = 0; !flag;)
        OK(MPI_Test(&request, &flag, &status));
    EXPECT(memcmp(values + 1, back, 20) == 0);
    OK(MPI_File_iwrite_at(file, base, values, 6, MPI_INT, &request)); /* WriteComplete, ReadComplete */
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iread_at(file, base, back, 6, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    EXPECT(memcmp(values, back, sizeof back) == 0);
    OK(MPI_File_set_view(file, base, MPI_INT, strided, "native", MPI_INFO_NULL));
    OK(MPI_File_write(file, values, 6, MPI_INT, &status)); /* WriteStrided, ReadStrided, SeekIndividual */
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read(file, back, 6, MPI_INT, &status));
    EXPECT(memcmp(values, back, sizeof back) == 0);
    values[2] = 30;
    OK(MPI_File_write_at_all(file, 0, values, 6, MPI_INT, &status)); /* WriteStridedColl, ReadStridedColl */
    OK(MPI_File_read_at_all(file, 0, back, 6, MPI_INT, &status));
    EXPECT(memcmp(values, back, sizeof back) == 0);
    values[3] = 40;
    OK(MPI_File_iwrite_at(file, 0, values, 6, MPI_INT, &request)); /* IwriteStrided, IreadStrided */
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_iread_at(file, 0, back, 6, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    EXPECT(memcmp(values, back, sizeof back) == 0);
    OK(MPI_File_get_atomicity(file, &flag)); /* Fcntl */
    OK(MPI_File_sync(file)); /* Flush */
    barrier();
    OK(MPI_File_set_size(file, 4000)); /* Resize */
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 4000);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    OK(MPI_File_set_info(file, info)); /* SetInfo */
    MPI_Info_free(&info);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_seek_shared(file, 100, MPI_SEEK_SET)); /* Set_shared_fp, Get_shared_fp */
    OK(MPI_File_write_shared(file, values, 2, MPI_INT, &status));
    barrier();
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 100 + 2 * size);
    MPI_Type_free(&strided);
    OK(MPI_File_close(&file)); /* Close */
    discard("y");
    file = open_as(MPI_COMM_WORLD, "y", MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    barrier();
    if (rank == 0)
        OK(MPI_File_delete(file_name("y"), MPI_INFO_NULL)); /* Delete */
    barrier();
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, file_name("y"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

static void s23_pointers(void) {
    /* Individual pointers are each rank's own and apart from the shared one. */
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Offset individual = -1, shared = -1;
    unsigned char bytes[64];
    fill(bytes, 64, rank);
    OK(MPI_File_seek(file, 100 * (rank + 1), MPI_SEEK_SET));
    OK(MPI_File_write(file, bytes, 10 + rank, MPI_BYTE, &status));
    barrier();
    OK(MPI_File_get_position_shared(file, &shared));
    EXPECT_EQ(shared, 0);
    OK(MPI_File_get_position(file, &individual));
    EXPECT_EQ(individual, 100 * (rank + 1) + 10 + rank);
    barrier();
    OK(MPI_File_write_shared(file, bytes, 3, MPI_BYTE, &status));
    OK(MPI_File_get_position(file, &individual));
    EXPECT_EQ(individual, 100 * (rank + 1) + 10 + rank);
    barrier();
    OK(MPI_File_get_position_shared(file, &shared));
    EXPECT_EQ(shared, 3 * size);
    OK(MPI_File_close(&file));
}

static const Case cases[] = {
    {"seed004_s56_pointer", s56_nonblocking_pointer}, {"seed004_s56_completion", s56_completion},
    {"seed004_s57_both_derived", s57_both_derived}, {"seed004_s57_memory_kinds", s57_memory_kinds},
    {"seed004_s58_equal", s58_collective_equals_independent}, {"seed004_s58_nonblocking", s58_nonblocking_collective},
    {"seed004_s61_shared", s61_shared}, {"seed004_s61_ordered", s61_ordered}, {"seed004_s62_split", s62_split},
    {"seed004_s62_interleaved", s62_interleaved}, {"seed004_s63_atomic", s63_atomic}, {"seed004_s63_sync", s63_sync},
    {"seed004_s64_external32", s64_external32}, {"seed004_s64_registered", s64_registered}, {"seed004_s65_counts", s65_counts},
    {"seed004_s85_other_bytes", s85_other_bytes}, {"seed001_s21_device", s21_device}, {"seed001_s23_pointers", s23_pointers},
    {"seed001_s23_shared", s61_shared}, {"seed001_s27_levels", levels},
};
PROGRAM(cases)
