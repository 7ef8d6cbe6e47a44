/* Views: statements 53 to 55, 59, 60 of source 004, 26 of source 001. Two ranks or more. */
#include "check.h"

static MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype vector(int count, int length, int stride, MPI_Datatype old) {
    MPI_Datatype type;
    MPI_Type_vector(count, length, stride, old, &type);
    return committed(type);
}

static void s53_pointer_and_get_view(void) {
    MPI_File file = new_file("x");
    MPI_Datatype filetype = vector(3, 2, 5, MPI_INT), etype = MPI_DATATYPE_NULL, got = MPI_DATATYPE_NULL;
    MPI_Offset position = -1, disp = -1;
    MPI_Aint low, extent;
    MPI_Status status;
    char datarep[MPI_MAX_DATAREP_STRING] = "";
    int values[4] = {1, 2, 3, 4}, n[3], combiner, size_of;
    OK(MPI_File_get_view(file, &disp, &etype, &got, datarep));
    EXPECT_EQ(disp, 0);
    EXPECT(etype == MPI_BYTE && got == MPI_BYTE);
    EXPECT(strcmp(datarep, "native") == 0);
    OK(MPI_File_write(file, values, 4, MPI_INT, &status));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 16);
    OK(MPI_File_seek_shared(file, 8, MPI_SEEK_SET));
    OK(MPI_File_set_view(file, 12, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 0);
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 0);
    OK(MPI_File_get_view(file, &disp, &etype, &got, datarep));
    EXPECT_EQ(disp, 12);
    EXPECT(etype == MPI_INT);
    MPI_Type_get_extent(got, &low, &extent);
    MPI_Type_size(got, &size_of);
    EXPECT_EQ(low, 0);
    EXPECT_EQ(extent, (2 * 5 + 2) * 4);
    EXPECT_EQ(size_of, 24);
    /* What was set may be freed by the program, and so may what it got: the view stays. */
    MPI_Type_get_envelope(got, &n[0], &n[1], &n[2], &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(&got);
    MPI_Type_free(&filetype);
    OK(MPI_File_get_byte_offset(file, 3, &disp));
    EXPECT_EQ(disp, 12 + 5 * 4 + 4);
    OK(MPI_File_close(&file));
}

static void s53_current_displacement(void) {
    /* MPI_DISPLACEMENT_CURRENT belongs to sequential files only. */
    MPI_File file = new_file("x");
    REFUSED(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, -8, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_close(&file));
    discard("s");
    file = open_as(MPI_COMM_WORLD, "s", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
    if (file != MPI_FILE_NULL) {
        int value = 3;
        MPI_Offset disp = -1;
        MPI_Datatype etype, filetype;
        MPI_Status status;
        char datarep[MPI_MAX_DATAREP_STRING];
        OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
        OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
        EXPECT_EQ(disp, 4 * size);
        OK(MPI_File_close(&file));
    }
}

static void s53_rejects(void) {
    MPI_File file = new_file("x");
    MPI_Datatype wrong = vector(2, 3, 4, MPI_CHAR), backwards, negative, uncommitted;
    int lengths[2] = {1, 1}, displacements[2] = {4, 0};
    /* A filetype of bytes that are no whole number of the etype. */
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, wrong, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL));
    /* Displacements of a filetype ascend and are not negative. */
    MPI_Type_indexed(2, lengths, displacements, MPI_INT, &backwards);
    MPI_Type_commit(&backwards);
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL));
    displacements[0] = -4;
    MPI_Type_indexed(2, lengths, displacements, MPI_INT, &negative);
    MPI_Type_commit(&negative);
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, negative, "native", MPI_INFO_NULL));
    /* Types that are none. */
    REFUSED(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL));
    MPI_Type_contiguous(3, MPI_INT, &uncommitted);
    (void)uncommitted;
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "klingon", MPI_INFO_NULL));
    /* What ranks must agree on. */
    REFUSED(MPI_File_set_view(file, 0, rank ? MPI_INT : MPI_DOUBLE, rank ? MPI_INT : MPI_DOUBLE, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, rank ? "native" : "external32", MPI_INFO_NULL));
    /* None of these changed the view. */
    {
        MPI_Offset disp;
        MPI_Datatype etype, filetype;
        char datarep[MPI_MAX_DATAREP_STRING];
        OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
        EXPECT(disp == 0 && etype == MPI_BYTE && filetype == MPI_BYTE && strcmp(datarep, "native") == 0);
    }
    MPI_Type_free(&wrong);
    MPI_Type_free(&backwards);
    MPI_Type_free(&negative);
    MPI_Type_free(&uncommitted);
    OK(MPI_File_close(&file));
}

static void s53_pending(void) {
    MPI_File file = new_file("x");
    MPI_Status status;
    int value = 5;
    OK(MPI_File_write_all_begin(file, &value, 1, MPI_INT));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all_end(file, &value, &status));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    {   /* Non-blocking ones are waited for, or refused where the program asks for that. */
        MPI_Request request;
        MPI_Info info;
        OK(MPI_File_iwrite_at(file, rank, &value, 1, MPI_INT, &request));
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_Wait(&request, &status));
        if (strncmp(file_name("x"), "pario:", 6) == 0) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "pario_pending", "refuse");
            OK(MPI_File_set_info(file, info));
            MPI_Info_free(&info);
            OK(MPI_File_iwrite_at(file, rank, &value, 1, MPI_INT, &request));
            REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
            REFUSED(MPI_File_set_size(file, 100));
            OK(MPI_Wait(&request, &status));
            OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        }
    }
    OK(MPI_File_close(&file));
}

static void s54_complementary(void) {
    /* Each rank sees every size-th pair of ints behind a header of 100 bytes. */
    MPI_File file = new_file("x");
    MPI_Datatype one, filetype;
    MPI_Status status;
    MPI_Offset length = -1;
    int values[20], i, *all = malloc((size_t)size * 20 * sizeof(int));
    unsigned char header[100], back[100];
    fill(header, 100, 1);
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, header, 100, MPI_BYTE, &status));
    MPI_Type_contiguous(2, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, size * 8, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(file, 100 + 8 * rank, MPI_INT, filetype, "native", MPI_INFO_NULL));
    for (i = 0; i < 20; i++)
        values[i] = 1000 * rank + i;
    OK(MPI_File_write_at_all(file, 0, values, 20, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), 20);
    OK(MPI_File_sync(file));
    barrier();
    OK(MPI_File_sync(file));
    OK(MPI_File_set_view(file, 100, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, all, 20 * size, MPI_INT, &status));
    for (i = 0; i < 20 * size; i++)
        EXPECT_EQ(all[i], 1000 * (i / 2 % size) + i / 2 / size * 2 + i % 2);
    /* The header is what it was; offsets count from the new displacement. */
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, back, 100, MPI_BYTE, &status));
    EXPECT(memcmp(back, header, 100) == 0);
    OK(MPI_File_set_view(file, 40, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 10, back, 50, MPI_BYTE, &status));
    EXPECT(memcmp(back, header + 50, 50) == 0);
    OK(MPI_File_get_size(file, &length));
    EXPECT_EQ(length, 100 + 80 * size);
    MPI_Type_free(&one);
    MPI_Type_free(&filetype);
    free(all);
    OK(MPI_File_close(&file));
}

static void s55_offsets(void) {
    MPI_File file = new_file("x");
    MPI_Datatype inner = vector(2, 5, 10, MPI_BYTE), etype, filetype;
    MPI_Offset position = -1, bytes = -1;
    static const long long wanted[] = {0, 15, 45, 60, 90, 105};
    MPI_Aint extent = -1;
    int i;
    /* A nested type: bytes 0-4 and 10-14 are an element, elements at 0, 15, 45, 60, 90, 105. */
    etype = inner;
    filetype = vector(3, 2, 3, inner);
    OK(MPI_File_set_view(file, 7, etype, filetype, "native", MPI_INFO_NULL));
    for (i = 0; i < 6; i++) {
        OK(MPI_File_get_byte_offset(file, i, &bytes));
        EXPECT_EQ(bytes, 7 + wanted[i]);
        OK(MPI_File_get_byte_offset(file, 6 * 1000000007LL + i, &bytes));
        EXPECT_EQ(bytes, 7 + 1000000007LL * 120 + wanted[i]);
    }
    OK(MPI_File_get_type_extent(file, filetype, &extent));
    EXPECT_EQ(extent, 120);
    OK(MPI_File_set_size(file, 7 + 2 * 120 + 46)); /* two filetypes and 2 elements, and a bit of the next */
    OK(MPI_File_seek(file, 4, MPI_SEEK_SET));
    OK(MPI_File_seek(file, 3, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 7);
    OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 5);
    REFUSED(MPI_File_seek(file, -6, MPI_SEEK_CUR));
    REFUSED(MPI_File_seek(file, -1, MPI_SEEK_SET));
    REFUSED(MPI_File_seek(file, 0, 12345));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 5);
    MPI_Type_free(&filetype);
    MPI_Type_free(&inner);
    /* The end in a view with whole elements. */
    MPI_Type_create_resized(MPI_INT, 0, 16, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_size(file, 4 + 16 * 10));
    OK(MPI_File_set_view(file, 4, MPI_INT, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 10);
    OK(MPI_File_seek(file, -3, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &position));
    EXPECT_EQ(position, 7);
    OK(MPI_File_seek_shared(file, -4, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &position));
    EXPECT_EQ(position, 6);
    MPI_Type_free(&filetype);
    OK(MPI_File_close(&file));
}

/* Who owns index i of a dimension, by the words of the standard. */
static int owner(int i, int length, int distribution, int argument, int procs) {
    if (distribution == MPI_DISTRIBUTE_NONE)
        return 0;
    if (distribution == MPI_DISTRIBUTE_BLOCK) {
        int block = argument == MPI_DISTRIBUTE_DFLT_DARG ? (length + procs - 1) / procs : argument;
        return i / block;
    }
    return i / (argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument) % procs;
}

/* Writes an array through a darray view and compares with ownership counted by hand. */
static void darray_case(int dims, const int *lengths, const int *kinds, const int *arguments, const int *grid, int order) {
    MPI_File file = new_file("x");
    MPI_Datatype type;
    MPI_Status status;
    MPI_Aint low, extent;
    int total = 1, mine = 0, d, i, bytes, *whole, *local, next = 0, coordinates[4], rest = rank;
    for (d = 0; d < dims; d++)
        total *= lengths[d];
    for (d = dims - 1; d >= 0; d--) { /* the grid is in C order, whatever the array's is */
        coordinates[d] = rest % grid[d];
        rest /= grid[d];
    }
    whole = malloc((size_t)total * sizeof(int));
    local = malloc((size_t)total * sizeof(int));
    for (i = 0; i < total; i++) {
        int index[4], left = i, is_mine = 1;
        for (d = 0; d < dims; d++) {
            int k = order == MPI_ORDER_C ? dims - 1 - d : d;
            index[k] = left % lengths[k];
            left /= lengths[k];
        }
        for (d = 0; d < dims; d++)
            is_mine &= owner(index[d], lengths[d], kinds[d], arguments[d], grid[d]) == coordinates[d];
        if (is_mine)
            local[mine++] = 7 * i + 1;
    }
    OK(MPI_Type_create_darray(size, rank, dims, lengths, kinds, arguments, grid, order, MPI_INT, &type));
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    EXPECT_EQ(bytes, 4 * mine);
    MPI_Type_get_extent(type, &low, &extent);
    EXPECT_EQ(low, 0);
    EXPECT_EQ(extent, 4 * total);
    OK(MPI_File_set_view(file, 16, MPI_INT, type, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, local, mine, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), mine);
    OK(MPI_File_sync(file));
    barrier();
    OK(MPI_File_sync(file));
    /* Back through the same view, and as a whole: every item is there, once. */
    memset(whole, 0, (size_t)total * sizeof(int));
    OK(MPI_File_read_at_all(file, 0, whole, mine, MPI_INT, &status));
    EXPECT(memcmp(whole, local, (size_t)mine * sizeof(int)) == 0);
    OK(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, whole, total, MPI_INT, &status));
    EXPECT_EQ(count_of(&status, MPI_INT), total);
    for (i = 0; i < total; i++)
        if (whole[i] != 7 * i + 1 && next++ == 0)
            complain(__FILE__, __LINE__, "item %d of %d is %d, not %d", i, total, whole[i], 7 * i + 1);
    MPI_Type_free(&type);
    free(whole);
    free(local);
    OK(MPI_File_close(&file));
}

static void s59_darray(void) {
    static const int kinds[3] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    int a, b, order, grid[4], lengths[4] = {9, 10, 7, 2}, types[4], arguments[4];
    for (order = 0; order < 2; order++)
        for (a = 0; a < 5; a++) {
            int how = order ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
            /* One dimension: blocks, given blocks, cyclic, cyclic of 2 and 3. */
            types[0] = kinds[a > 1];
            arguments[0] = a == 1 ? (9 + size - 1) / size + 1 : a == 3 ? 2 : a == 4 ? 3 : MPI_DISTRIBUTE_DFLT_DARG;
            grid[0] = size;
            darray_case(1, lengths, types, arguments, grid, how);
            /* Two and three dimensions, one of them not distributed. */
            for (b = 0; b < 3; b++) {
                memset(grid, 0, sizeof grid);
                grid[2] = 1;
                MPI_Dims_create(size, 2, grid);
                types[1] = kinds[b];
                arguments[1] = b == 1 ? 2 : MPI_DISTRIBUTE_DFLT_DARG;
                types[2] = MPI_DISTRIBUTE_NONE;
                arguments[2] = MPI_DISTRIBUTE_DFLT_DARG;
                if (b == 2) {
                    grid[0] = size;
                    grid[1] = 1;
                }
                if (types[0] == MPI_DISTRIBUTE_BLOCK)
                    arguments[0] = a == 1 ? (9 + grid[0] - 1) / grid[0] + 1 : MPI_DISTRIBUTE_DFLT_DARG;
                darray_case(2, lengths, types, arguments, grid, how);
                darray_case(3, lengths, types, arguments, grid, how);
            }
        }
}

static void s59_subarray(void) {
    /* Rows of a 3-D array are cut among ranks; both orders; two arrays in one file, by tiling. */
    int order, i;
    for (order = 0; order < 2; order++) {
        MPI_File file = new_file("x");
        MPI_Datatype type;
        MPI_Status status;
        int sizes[3] = {2 * size, 3, 5}, parts[3] = {2, 3, 5}, starts[3] = {2 * rank, 0, 0}, total = 30 * size;
        int local[60], *whole = malloc((size_t)total * 2 * sizeof(int));
        if (order) {
            sizes[0] = 5; parts[0] = 5; starts[0] = 0;
            sizes[2] = 2 * size; parts[2] = 2; starts[2] = 2 * rank;
        }
        OK(MPI_Type_create_subarray(3, sizes, parts, starts, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, MPI_INT, &type));
        MPI_Type_commit(&type);
        OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
        for (i = 0; i < 60; i++)
            local[i] = i / 30 * total + 30 * rank + i % 30;
        OK(MPI_File_write_all(file, local, 60, MPI_INT, &status));
        OK(MPI_File_sync(file));
        barrier();
        OK(MPI_File_sync(file));
        OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(file, 0, whole, 2 * total, MPI_INT, &status));
        EXPECT_EQ(count_of(&status, MPI_INT), 2 * total);
        for (i = 0; i < 2 * total; i++)
            EXPECT_EQ(whole[i], i);
        MPI_Type_free(&type);
        free(whole);
        OK(MPI_File_close(&file));
    }
}

/* A wrong type is refused where it is made, or, by those who make it nevertheless, as a view. */
static void refused_type(int code, MPI_Datatype *type, int line) {
    MPI_File file;
    if (code != MPI_SUCCESS)
        return;
    file = new_file("x");
    MPI_Type_commit(type);
    if (MPI_File_set_view(file, 0, MPI_INT, *type, "native", MPI_INFO_NULL) == MPI_SUCCESS)
        complain(__FILE__, line, "a type with wrong arguments was made, and set as view");
    MPI_Type_free(type);
    OK(MPI_File_close(&file));
}
#define WRONG(call) refused_type(call, &type, __LINE__)

static void s60_arguments(void) {
    MPI_Datatype type;
    int sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 1}, bad[2];
    int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
    MPI_Type_free(&type);
    bad[0] = 5; bad[1] = 3;
    WRONG(MPI_Type_create_subarray(2, sizes, bad, starts, MPI_ORDER_C, MPI_INT, &type));
    bad[0] = 3; bad[1] = 1;
    WRONG(MPI_Type_create_subarray(2, sizes, parts, bad, MPI_ORDER_C, MPI_INT, &type));
    bad[0] = -1;
    WRONG(MPI_Type_create_subarray(2, sizes, parts, bad, MPI_ORDER_C, MPI_INT, &type));
    WRONG(MPI_Type_create_subarray(2, sizes, parts, starts, 987, MPI_INT, &type));
    OK(MPI_Type_create_darray(4, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    MPI_Type_free(&type);
    WRONG(MPI_Type_create_darray(4, 4, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    WRONG(MPI_Type_create_darray(5, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type));
    bad[0] = 1; bad[1] = 2; /* blocks of 1 do not cover 4 with 2 processes */
    WRONG(MPI_Type_create_darray(4, 1, 2, sizes, kinds, bad, grid, MPI_ORDER_C, MPI_INT, &type));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Every constructor as memory type and as filetype, each against bytes by hand. */
static void s26_constructors(void) {
    MPI_Datatype types[10];
    int count = 0, i, j, lengths[3] = {2, 1, 3}, displacements[3] = {1, 5, 7}, sizes[2] = {4, 5}, parts[2] = {2, 3}, starts[2] = {1, 2};
    int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, arguments[2] = {1, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 1};
    MPI_Aint bytes[3] = {0, 12, 24};
    MPI_Datatype parts_of[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Type_contiguous(6, MPI_INT, &types[count++]);
    MPI_Type_vector(3, 2, 4, MPI_INT, &types[count++]);
    MPI_Type_create_hvector(3, 2, 20, MPI_INT, &types[count++]);
    MPI_Type_indexed(3, lengths, displacements, MPI_INT, &types[count++]);
    MPI_Type_create_indexed_block(3, 2, (int[]){0, 3, 8}, MPI_INT, &types[count++]);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &types[count++]);
    MPI_Type_create_struct(3, lengths, bytes, parts_of, &types[count++]);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &types[count++]);
    MPI_Type_create_darray(2, rank % 2, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &types[count++]);
    MPI_Type_vector(2, 1, 3, types[1], &types[count++]); /* nested */
    for (i = 0; i < count; i++)
        MPI_Type_commit(&types[i]);
    for (i = 0; i < count; i++)
        for (j = 0; j < count; j++) {
            /* Write with memory type i through a view of type j; pack tells what must arrive. */
            enum { SLOTS = 400 };
            int memory[SLOTS], packed[SLOTS], back[SLOTS], bytes_i, items, position = 0, k;
            char what[16];
            MPI_Status status;
            MPI_File file;
            snprintf(what, sizeof what, "r%d", rank);
            file = open_as(MPI_COMM_SELF, what, NEW_MODE);
            for (k = 0; k < SLOTS; k++)
                memory[k] = 1 + k;
            MPI_Type_size(types[i], &bytes_i);
            items = 2 * bytes_i / 4;
            MPI_Pack(memory, 2, types[i], packed, sizeof packed, &position, MPI_COMM_SELF);
            EXPECT_EQ(position, 4 * items);
            OK(MPI_File_set_view(file, 20, MPI_INT, types[j], "native", MPI_INFO_NULL));
            OK(MPI_File_write_at(file, 0, memory, 2, types[i], &status));
            EXPECT_EQ(count_of(&status, types[i]), 2);
            memset(back, 0, sizeof back);
            OK(MPI_File_read_at(file, 0, back, items, MPI_INT, &status));
            EXPECT_EQ(count_of(&status, MPI_INT), items);
            EXPECT(memcmp(back, packed, (size_t)items * 4) == 0);
            memset(back, 0, sizeof back);
            OK(MPI_File_read_at(file, 0, back, 2, types[i], &status));
            memset(packed, 0, sizeof packed);
            { /* only what the type names was stored into */
                int again = 0, other[SLOTS];
                MPI_Pack(back, 2, types[i], other, sizeof other, &again, MPI_COMM_SELF);
                again = 0;
                MPI_Pack(memory, 2, types[i], packed, sizeof packed, &again, MPI_COMM_SELF);
                EXPECT(memcmp(other, packed, (size_t)items * 4) == 0);
                for (k = 0, again = 0; k < SLOTS; k++)
                    again += back[k] != 0;
                EXPECT_EQ(again, items);
            }
            OK(MPI_File_close(&file));
        }
    while (count-- > 0)
        MPI_Type_free(&types[count]);
    barrier();
}

static const Case cases[] = {
    {"seed004_s53_pointer_and_get_view", s53_pointer_and_get_view}, {"seed004_s53_current_displacement", s53_current_displacement},
    {"seed004_s53_rejects", s53_rejects}, {"seed004_s53_pending", s53_pending}, {"seed004_s54_complementary", s54_complementary},
    {"seed004_s55_offsets", s55_offsets}, {"seed004_s59_darray", s59_darray}, {"seed004_s59_subarray", s59_subarray},
    {"seed004_s60_arguments", s60_arguments}, {"seed001_s26_constructors", s26_constructors},
};
PROGRAM(cases)
