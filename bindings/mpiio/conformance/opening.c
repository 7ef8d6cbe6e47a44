/* Opening, closing and deleting files, their sizes and hints: statements 50 to 52, 66, 67, 88, 89 and 16
 * of source 004; 5 and 28 of source 001. Two ranks or more. */
#include "check.h"

/* The error of a collective open is seen by all, and leaves no file open on any. */
static void refused_on_all(const char *name, int mode, int class_wanted, int line) {
    MPI_File file;
    int code;
    memset(&file, 0x5a, sizeof file);
    code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
    /* Who ignores the error has no file either; the MPI's own implementation does as it likes. */
    if (code != MPI_SUCCESS && strncmp(name, "pario:", 6) == 0 && file != MPI_FILE_NULL)
        complain(__FILE__, line, "a failed open of %s, mode %d, leaves a handle", name, mode);
    if (code == MPI_SUCCESS) {
        complain(__FILE__, line, "open of %s, mode %d, succeeded", name, mode);
        MPI_File_close(&file);
    } else if (class_wanted != -1 && class_of(code) != class_wanted)
        complain(__FILE__, line, "class %d (%s), wanted %d", class_of(code), text_of(code), class_wanted);
}

static void s50_names(void) {
    discard("a");
    discard("b");
    refused_on_all(file_name(rank % 2 ? "a" : "b"), MPI_MODE_CREATE | MPI_MODE_RDWR, -1, __LINE__);
    barrier();
    if (rank == 0) {
        MPI_File_delete(file_name("a"), MPI_INFO_NULL);
        MPI_File_delete(file_name("b"), MPI_INFO_NULL);
    }
    barrier();
}

static void s50_modes(void) {
    MPI_File file = new_file("x"); /* it exists, so every mode alone would do */
    refused_on_all(file_name("x"), rank % 2 ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_ERR_NOT_SAME, __LINE__);
    refused_on_all(file_name("x"), MPI_MODE_RDWR | (rank % 2 ? MPI_MODE_APPEND : 0), MPI_ERR_NOT_SAME, __LINE__);
    OK(MPI_File_close(&file));
}

static void s50_self(void) {
    /* Independent: other names, other modes, other numbers of opens on each rank. */
    char what[32];
    MPI_File files[3];
    MPI_Group group;
    int i, members, value = rank, back = -1;
    MPI_Status status;
    for (i = 0; i <= rank % 3; i++) {
        snprintf(what, sizeof what, "self-%d-%d", rank, i);
        files[i] = open_as(MPI_COMM_SELF, what, NEW_MODE);
        OK(MPI_File_get_group(files[i], &group));
        MPI_Group_size(group, &members);
        EXPECT_EQ(members, 1);
        MPI_Group_free(&group);
        OK(MPI_File_write(files[i], &value, 1, MPI_INT, &status));
        OK(MPI_File_read_at(files[i], 0, &back, 1, MPI_INT, &status));
        EXPECT_EQ(back, rank);
    }
    while (i-- > 0)
        OK(MPI_File_close(&files[i]));
    barrier();
}

static void s51_wrong_modes(void) {
    MPI_File file = new_file("x");
    const char *name = file_name("x");
    refused_on_all(name, MPI_MODE_CREATE | MPI_MODE_RDONLY, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_EXCL | MPI_MODE_RDONLY, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_SEQUENTIAL | MPI_MODE_RDWR, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_CREATE, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, 0, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_ERR_AMODE, __LINE__);
    refused_on_all(name, MPI_MODE_WRONLY | MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_AMODE, __LINE__);
    OK(MPI_File_close(&file));
}

static void s51_exclusive(void) {
    MPI_File file;
    discard("x");
    refused_on_all(file_name("x"), MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE, __LINE__);
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    OK(MPI_File_close(&file));
    refused_on_all(file_name("x"), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_ERR_FILE_EXISTS, __LINE__);
    discard("x");
}

static void s51_direction(void) {
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    int value = 7 + rank, back = 0, mode = 0, code;
    discard("x");
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_get_amode(file, &mode));
    EXPECT_EQ(mode, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_write_at(file, rank * 4, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, &back, 1, MPI_INT, &status));
    FAILS(MPI_ERR_ACCESS, MPI_File_read_all(file, &back, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY);
    OK(MPI_File_read_at(file, rank * 4, &back, 1, MPI_INT, &status));
    EXPECT_EQ(back, 7 + rank);
    code = MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status);
    EXPECT(class_of(code) == MPI_ERR_READ_ONLY || class_of(code) == MPI_ERR_ACCESS);
    code = MPI_File_write_all(file, &value, 1, MPI_INT, &status);
    EXPECT(class_of(code) == MPI_ERR_READ_ONLY || class_of(code) == MPI_ERR_ACCESS);
    code = MPI_File_iwrite(file, &value, 1, MPI_INT, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, &status);
    EXPECT(code != MPI_SUCCESS);
    REFUSED(MPI_File_set_size(file, 0));
    REFUSED(MPI_File_preallocate(file, 1 << 20));
    OK(MPI_File_close(&file));
    discard("x");
}

static void s51_append(void) {
    MPI_File file;
    MPI_Status status;
    MPI_Offset position = -1;
    char bytes[10] = "abcdefghij";
    discard("x");
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR);
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, bytes, 10, MPI_BYTE, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 10);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 10);
    barrier();
    OK(MPI_File_write_ordered(file, bytes, 2, MPI_BYTE, &status));
    barrier();
    OK(MPI_File_get_size(file, &position));
    EXPECT_EQ(position, 10 + 2 * size);
    OK(MPI_File_close(&file));
}

static void s51_delete_on_close(void) {
    MPI_File file = new_file("x");
    OK(MPI_File_close(&file));
    EXPECT(file == MPI_FILE_NULL);
    refused_on_all(file_name("x"), MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE, __LINE__);
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(file_name("x"), MPI_INFO_NULL));
    barrier();
}

static void s51_unique_open(void) {
    MPI_File first = open_as(MPI_COMM_WORLD, "x", NEW_MODE | MPI_MODE_UNIQUE_OPEN), second;
    int code = MPI_File_open(MPI_COMM_WORLD, file_name("x"), MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL, &second);
    EXPECT(code != MPI_SUCCESS); /* MPI leaves it open; a conflict that is known is told */
    if (code == MPI_SUCCESS)
        MPI_File_close(&second);
    OK(MPI_File_close(&first));
}

static void s51_sequential(void) {
    MPI_File file;
    MPI_Status status;
    int value = rank, back[64] = {0}, i;
    long long sum = 0, wanted = 0;
    MPI_Offset offset = 0;
    discard("x");
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write(file, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write_all(file, &value, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_get_position(file, &offset));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_get_position_shared(file, &offset));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_set_size(file, 0));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_preallocate(file, 64));
    OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    barrier();
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_read_ordered(file, back, rank == 0 ? 2 * size : 0, MPI_INT, &status));
    if (rank == 0) {
        EXPECT_EQ(count_of(&status, MPI_INT), 2 * size);
        for (i = 0; i < size; i++) {
            EXPECT_EQ(back[size + i], i);
            sum += back[i] * back[i];
            wanted += i * i;
        }
        EXPECT_EQ(sum, wanted);
    }
    OK(MPI_File_close(&file));
}

static void s52_sizes(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    MPI_Offset length = -1, position = -1;
    unsigned char byte = 9, back[64];
    int i;
    OK(MPI_File_preallocate(file, 1000));
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 1000);
    OK(MPI_File_preallocate(file, 10));
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 1000);
    OK(MPI_File_seek(file, 17 + rank, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, 33, MPI_SEEK_SET));
    OK(MPI_File_set_size(file, 100));
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 100);
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 17 + rank);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 33);
    barrier();
    /* What was cut off and comes back is zero. */
    if (rank == 0)
        OK(MPI_File_write_at(file, 90, &byte, 1, MPI_BYTE, &status));
    barrier();
    OK(MPI_File_set_size(file, 50));
    OK(MPI_File_set_size(file, 120));
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 120);
    memset(back, 7, sizeof back);
    OK(MPI_File_read_at(file, 60, back, 60, MPI_BYTE, &status));
    EXPECT_EQ(count_of(&status, MPI_BYTE), 60);
    for (i = 0; i < 60; i++)
        EXPECT_EQ(back[i], 0);
    REFUSED(MPI_File_set_size(file, -1));
    REFUSED(MPI_File_preallocate(file, -1));
    OK(MPI_File_close(&file));
}

static void s66_delete(void) {
    MPI_File file;
    int code;
    discard("x");
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(file_name("x"), MPI_INFO_NULL));
    barrier();
    file = open_as(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR);
    barrier();
    /* An open file: the standard lets it be in use, or lets it go at the last close. */
    if (rank == 0) {
        code = MPI_File_delete(file_name("x"), MPI_INFO_NULL);
        EXPECT(code == MPI_SUCCESS || class_of(code) == MPI_ERR_FILE_IN_USE || class_of(code) == MPI_ERR_ACCESS);
    }
    barrier();
    OK(MPI_File_close(&file));
    discard("x");
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(file_name("x"), MPI_INFO_NULL));
    barrier();
}

/* An open file is in use: Pario's answer where the standard leaves a choice. */
static void s66_in_use(void) {
    MPI_File file = new_file("x");
    barrier();
    FAILS(MPI_ERR_FILE_IN_USE, MPI_File_delete(file_name("x"), MPI_INFO_NULL));
    barrier();
    OK(MPI_File_close(&file));
}

static void s67_connected(void) {
    /* Ready after MPI_Init without a further call; MPI_Finalize below ends it. The caller looks whether
     * the service still knows of anybody. */
    MPI_File file = new_file("x");
    char byte = 1;
    MPI_Status status;
    OK(MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, &status));
    OK(MPI_File_close(&file));
}

static void s88_any_order(void) {
    /* Five nested communicators, one file each; closed third, first, fifth, second, fourth. */
    static const int order[5] = {2, 0, 4, 1, 3};
    MPI_Comm comms[5];
    MPI_File files[5];
    MPI_Group group;
    MPI_Status status;
    int i, j, n, value, back;
    char what[16];
    comms[0] = MPI_COMM_WORLD;
    for (i = 1; i < 5; i++) {
        int r, s;
        MPI_Comm_rank(comms[i - 1], &r);
        MPI_Comm_size(comms[i - 1], &s);
        MPI_Comm_split(comms[i - 1], s > 1 && r == s - 1, r, &comms[i]);
    }
    for (i = 0; i < 5; i++) {
        int first = rank;
        MPI_Bcast(&first, 1, MPI_INT, 0, comms[i]);
        snprintf(what, sizeof what, "%d-%d", i, first);
        files[i] = open_as(comms[i], what, NEW_MODE);
    }
    for (j = 0; j < 5; j++) {
        for (i = j; i < 5; i++) {
            int r, s;
            MPI_Comm_rank(comms[order[i]], &r);
            MPI_Comm_size(comms[order[i]], &s);
            value = 100 * order[i] + 10 * j + r;
            OK(MPI_File_write_at(files[order[i]], 4 * r, &value, 1, MPI_INT, &status));
            back = -1;
            OK(MPI_File_read_at(files[order[i]], 4 * r, &back, 1, MPI_INT, &status));
            EXPECT_EQ(back, value);
            OK(MPI_File_get_group(files[order[i]], &group));
            MPI_Group_size(group, &n);
            EXPECT_EQ(n, s);
            MPI_Group_free(&group);
        }
        OK(MPI_File_close(&files[order[j]]));
        EXPECT(files[order[j]] == MPI_FILE_NULL);
        /* Exactly that one: the file goes with its last handle, all others are there. */
        for (i = 0; i < 5; i++) {
            MPI_File seen = MPI_FILE_NULL;
            int first = rank, at, closed = 0;
            MPI_Bcast(&first, 1, MPI_INT, 0, comms[i]);
            for (at = 0; at <= j; at++)
                closed |= order[at] == i;
            snprintf(what, sizeof what, "%d-%d", i, first);
            if (closed)
                FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_SELF, file_name(what), MPI_MODE_RDONLY, MPI_INFO_NULL, &seen));
            else {
                OK(MPI_File_open(MPI_COMM_SELF, file_name(what), MPI_MODE_RDONLY, MPI_INFO_NULL, &seen));
                if (seen != MPI_FILE_NULL)
                    OK(MPI_File_close(&seen));
            }
        }
        barrier();
    }
    for (i = 4; i > 0; i--)
        MPI_Comm_free(&comms[i]);
    barrier();
}

static void s88_stale_handles(void) {
    MPI_File file = new_file("x"), null = MPI_FILE_NULL;
    MPI_Status status;
    MPI_Offset offset;
    char byte = 0;
    OK(MPI_File_close(&file));
    /* The handle of a closed file is the null handle; every call with it is an error. */
    FAILS(MPI_ERR_FILE, MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, &status));
    FAILS(MPI_ERR_FILE, MPI_File_get_size(null, &offset));
    FAILS(MPI_ERR_FILE, MPI_File_close(&null));
    FAILS(MPI_ERR_FILE, MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

static void s89_many_handles(void) {
    enum { MOST = 4000 };
    static MPI_File files[MOST];
    const char *wanted = getenv("CONFORMANCE_HANDLES");
    int count = wanted ? atoi(wanted) : 1500, i, back;
    MPI_Status status;
    char what[32];
    if (rank == 0) {
        for (i = 0; i < count; i++) {
            snprintf(what, sizeof what, "%d", i);
            files[i] = open_as(MPI_COMM_SELF, what, NEW_MODE);
            OK(MPI_File_write_at(files[i], 0, &i, 1, MPI_INT, &status));
        }
        /* Read and closed in another order than opened: 7 and the number have no common factor. */
        for (i = 0; i < count; i++) {
            int k = (int)((long long)i * 7919 % count);
            OK(MPI_File_read_at(files[k], 0, &back, 1, MPI_INT, &status));
            EXPECT_EQ(back, k);
            OK(MPI_File_close(&files[k]));
        }
    }
    barrier();
}

/* The ranks of the program are those that mpiexec made, 0 to n-1 without a gap, and nobody else is in sight. */
static void ranks_are_untouched(void) {
    const char *wanted = getenv("CONFORMANCE_RANKS"), *given = getenv("PMI_RANK");
    int all[64], r = -1, s = -1, i, flag = -1, sum = 0, token = -1, mine;
    MPI_Comm parent = MPI_COMM_WORLD, half;
    MPI_Request request;
    MPI_Status status;
    if (!given)
        given = getenv("OMPI_COMM_WORLD_RANK");
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    MPI_Comm_size(MPI_COMM_WORLD, &s);
    EXPECT(wanted != NULL);
    EXPECT_EQ(s, wanted ? atoi(wanted) : -1);
    EXPECT(given != NULL);
    EXPECT_EQ(r, given ? atoi(given) : -1);
    MPI_Comm_get_parent(&parent);
    EXPECT(parent == MPI_COMM_NULL);
    if (s > 64)
        return;
    MPI_Allgather(&r, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (i = 0; i < s; i++)
        EXPECT_EQ(all[i], i);
    MPI_Comm_split(MPI_COMM_WORLD, r % 2, -r, &half);
    MPI_Comm_size(half, &i);
    EXPECT_EQ(i, r % 2 ? s / 2 : (s + 1) / 2);
    MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, half);
    for (i = r % 2, mine = 0; i < s; i += 2)
        mine += i;
    EXPECT_EQ(sum, mine);
    MPI_Comm_free(&half);
    /* A receive from anybody gets what a rank of the program sent, and nothing of anybody else. */
    MPI_Irecv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    {
        MPI_File file = new_file("meanwhile");
        char bytes[100] = {1};
        OK(MPI_File_write_at_all(file, 100 * r, bytes, 100, MPI_BYTE, &status));
        OK(MPI_File_write_ordered(file, bytes, 100, MPI_BYTE, &status));
        OK(MPI_File_close(&file));
    }
    mine = 1000 + r;
    barrier();
    MPI_Send(&mine, 1, MPI_INT, (r + 1) % s, 77, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    EXPECT_EQ(status.MPI_SOURCE, (r + s - 1) % s);
    EXPECT_EQ(status.MPI_TAG, 77);
    EXPECT_EQ(token, 1000 + (r + s - 1) % s);
    barrier();
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    EXPECT_EQ(flag, 0);
}

static void s16_ranks(void) {
    /* Before, while and after a file is open and an access of it is under way. */
    static char bytes[1 << 20];
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    ranks_are_untouched();
    file = new_file("x");
    ranks_are_untouched();
    OK(MPI_File_iwrite_at(file, (MPI_Offset)rank << 20, bytes, 1 << 20, MPI_BYTE, &request));
    ranks_are_untouched();
    MPI_Wait(&request, &status);
    OK(MPI_File_close(&file));
    ranks_are_untouched();
}

static void s28_hints(void) {
    /* Every reserved hint, ROMIO's, and names that nobody knows. */
    static const char *const keys[] = {"access_style", "collective_buffering", "cb_block_size", "cb_buffer_size", "cb_nodes",
        "chunked", "chunked_item", "chunked_size", "filename", "file_perm", "io_node_list", "nb_proc", "num_io_nodes",
        "striping_factor", "striping_unit", "romio_cb_read", "romio_cb_write", "romio_ds_read", "romio_ds_write",
        "romio_no_indep_rw", "ind_rd_buffer_size", "ind_wr_buffer_size", "cb_config_list", "no_such_hint", "pario_no_such_hint"};
    static const char *const values[] = {"write_once,sequential", "true", "65536", "1048576", "1",
        "8,8", "4", "4,4", "elsewhere", "0644", "*", "2", "2",
        "2", "65536", "automatic", "enable", "disable", "automatic",
        "false", "65536", "65536", "*:1", "some value", "1"};
    MPI_Info info, used = MPI_INFO_NULL;
    MPI_File file = MPI_FILE_NULL;
    size_t i;
    int count = -1, flag, length;
    MPI_Info_create(&info);
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        MPI_Info_set(info, keys[i], values[i]);
    OK(MPI_File_open(MPI_COMM_WORLD, file_name("x"), NEW_MODE, info, &file));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
    OK(MPI_File_get_info(file, &used));
    EXPECT(used != MPI_INFO_NULL);
    if (used != MPI_INFO_NULL) {
        MPI_Info_get_nkeys(used, &count);
        EXPECT(count >= 0);
        MPI_Info_get_valuelen(used, "no_such_hint", &length, &flag); /* either is right; it must not fail */
        MPI_Info_free(&used);
    }
    OK(MPI_File_close(&file));
    MPI_Info_free(&info);
    OK(MPI_File_open(MPI_COMM_WORLD, file_name("x"), NEW_MODE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_info(file, MPI_INFO_NULL));
    OK(MPI_File_get_info(file, &used));
    MPI_Info_free(&used);
    OK(MPI_File_close(&file));
}

static const Case cases[] = {
    {"seed004_s50_names", s50_names}, {"seed004_s50_modes", s50_modes}, {"seed004_s50_self", s50_self},
    {"seed004_s51_wrong_modes", s51_wrong_modes}, {"seed004_s51_exclusive", s51_exclusive},
    {"seed004_s51_direction", s51_direction}, {"seed004_s51_append", s51_append},
    {"seed004_s51_delete_on_close", s51_delete_on_close}, {"seed004_s51_unique_open", s51_unique_open},
    {"seed004_s51_sequential", s51_sequential}, {"seed004_s52_sizes", s52_sizes},
    {"seed004_s66_delete", s66_delete}, {"seed004_s66_in_use", s66_in_use},
    {"seed004_s67_connected", s67_connected}, {"seed004_s88_any_order", s88_any_order},
    {"seed004_s88_stale_handles", s88_stale_handles}, {"seed004_s89_many_handles", s89_many_handles},
    {"seed004_s16_ranks", s16_ranks}, {"seed001_s05_ranks", s16_ranks}, {"seed001_s28_hints", s28_hints},
};
PROGRAM(cases)
