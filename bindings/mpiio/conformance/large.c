/* Counts, extents and distances beyond 2^31, and memory far from its address. */
#include "check.h"

#include <sys/mman.h>

static const MPI_Offset GIB = 1ll << 30;

/* So much address space that nothing is behind until it is touched. */
static char *wide(MPI_Offset bytes) {
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) complain(__FILE__, __LINE__, "no address space");
    return memory == MAP_FAILED ? NULL : memory;
}

static long long elements_of(MPI_Status *status) {
    MPI_Count count = -1;
#if MPI_VERSION >= 4
    MPI_Get_elements_c(status, MPI_BYTE, &count);
#else
    MPI_Get_elements_x(status, MPI_BYTE, &count);
#endif
    return count;
}

static void types_of_more_than_four_gibibytes(void) {
    MPI_File file = new_file("data");
    MPI_Status status;
    MPI_Datatype part, whole;
    char *memory = wide(6 * GIB);
    OK(MPI_Type_contiguous(1 << 30, MPI_BYTE, &part));
    OK(MPI_Type_contiguous(5, part, &whole));
    OK(MPI_Type_commit(&whole));
    if (rank == 0) OK(MPI_File_write_at(file, 0, "hello, world", 12, MPI_BYTE, &status));
    barrier();
    /* asks for 5 GiB and gets what there is */
    OK(MPI_File_read_at(file, 0, memory, 1, whole, &status));
    EXPECT_EQ(elements_of(&status), 12);
    EXPECT(memcmp(memory, "hello, world", 12) == 0);
    MPI_Aint extent;
    OK(MPI_File_get_type_extent(file, whole, &extent));
    EXPECT_EQ(extent, 5 * GIB);
    barrier();
    MPI_Type_free(&part), MPI_Type_free(&whole);
    munmap(memory, (size_t)(6 * GIB));
    OK(MPI_File_close(&file));
}

static void bytes_that_are_gibibytes_apart(void) {
    MPI_File file = new_file("data");
    MPI_Status status;
    MPI_Datatype apart;
    MPI_Offset place, bytes;
    char *memory = wide(5 * GIB), back[4] = {0};
    OK(MPI_Type_create_hvector(3, 1, 2 * GIB, MPI_BYTE, &apart));
    OK(MPI_Type_commit(&apart));
    memory[0] = 'x', memory[2 * GIB] = 'y', memory[4 * GIB] = 'z';
    /* in memory */
    OK(MPI_File_write_at(file, 3 * rank, memory, 1, apart, &status));
    EXPECT_EQ(elements_of(&status), 3);
    barrier();
    OK(MPI_File_read_at(file, 3 * ((rank + 1) % size), back, 3, MPI_BYTE, &status));
    EXPECT(memcmp(back, "xyz", 3) == 0);
    barrier();
    /* in the file, from far behind its beginning */
    OK(MPI_File_set_view(file, (1ll << 40) + 16 * rank, MPI_BYTE, apart, "native", MPI_INFO_NULL));
    OK(MPI_File_get_byte_offset(file, 5, &place));
    EXPECT_EQ(place, (1ll << 40) + 16 * rank + 4 * GIB + 1 + 4 * GIB);
    OK(MPI_File_write_at_all(file, 0, "abcd", 4, MPI_BYTE, &status));
    barrier();
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_EQ(bytes, (1ll << 40) + 16 * (size - 1) + 4 * GIB + 2); /* the fourth begins the next tile */
    memset(back, 0, 4);
    OK(MPI_File_read_at_all(file, 0, back, 4, MPI_BYTE, &status));
    EXPECT(memcmp(back, "abcd", 4) == 0);
    MPI_Type_free(&apart);
    munmap(memory, (size_t)(5 * GIB));
    OK(MPI_File_close(&file));
}

static void addresses_from_the_bottom_of_memory(void) {
    MPI_File file = new_file("data");
    MPI_Status status;
    MPI_Datatype type;
    MPI_Aint at[2];
    int first[2] = {rank, 7}, second = 8, back[3] = {0}, lengths[2] = {2, 1};
    MPI_Get_address(first, &at[0]);
    MPI_Get_address(&second, &at[1]);
    OK(MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_File_write_at_all(file, 12 * rank, MPI_BOTTOM, 1, type, &status));
    OK(MPI_File_read_at(file, 12 * rank, back, 3, MPI_INT, &status));
    EXPECT(back[0] == rank && back[1] == 7 && back[2] == 8);
    first[0] = first[1] = second = 0;
    OK(MPI_File_read_at_all(file, 12 * rank, MPI_BOTTOM, 1, type, &status));
    EXPECT(first[0] == rank && first[1] == 7 && second == 8);
    MPI_Type_free(&type);
    OK(MPI_File_close(&file));
}

static void the_same_memory_written_many_times(void) {
    enum { MANY = 100000 };
    MPI_File file = new_file("data");
    MPI_Status status;
    MPI_Datatype still;
    char value = (char)('a' + rank), *back = calloc(1, MANY);
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 0, &still));
    OK(MPI_Type_commit(&still));
    OK(MPI_File_write_at(file, (MPI_Offset)rank * MANY, &value, MANY, still, &status));
    EXPECT_EQ(elements_of(&status), MANY);
    OK(MPI_File_read_at(file, (MPI_Offset)rank * MANY, back, MANY, MPI_BYTE, &status));
    for (int i = 0; i < MANY; i++)
        if (back[i] != value) { complain(__FILE__, __LINE__, "byte %d is %d", i, back[i]); break; }
    free(back);
    MPI_Type_free(&still);
    OK(MPI_File_close(&file));
}

static void large_counts(void) {
#if MPI_VERSION >= 4
    MPI_File file = new_file("data");
    MPI_Status status;
    MPI_Datatype whole, apart;
    MPI_Count extent;
    MPI_Offset place;
    char *memory = wide(6 * GIB);
    if (rank == 0) OK(MPI_File_write_at_c(file, 0, "hello, world", 12, MPI_BYTE, &status));
    barrier();
    OK(MPI_File_read_at_c(file, 0, memory, 5 * GIB + 7, MPI_BYTE, &status));
    EXPECT_EQ(elements_of(&status), 12);
    OK(MPI_File_read_at_all_c(file, 7, memory, 3 * GIB, MPI_BYTE, &status));
    EXPECT_EQ(elements_of(&status), 5);
    EXPECT(memcmp(memory, "world", 5) == 0);
    OK(MPI_Type_contiguous_c(5 * GIB, MPI_BYTE, &whole));
    OK(MPI_Type_commit(&whole));
    OK(MPI_File_get_type_extent_c(file, whole, &extent));
    EXPECT_EQ(extent, 5 * GIB);
    OK(MPI_File_read_at_c(file, 0, memory, 1, whole, &status));
    EXPECT_EQ(elements_of(&status), 12);
    OK(MPI_Type_vector_c(3, 1, 2 * GIB, MPI_BYTE, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, apart, "native", MPI_INFO_NULL));
    OK(MPI_File_get_byte_offset(file, 2, &place));
    EXPECT_EQ(place, 4 * GIB);
    MPI_Type_free(&whole), MPI_Type_free(&apart);
    munmap(memory, (size_t)(6 * GIB));
    OK(MPI_File_close(&file));
#endif
}

/* Handles of ours are numbers of Fortran like any other, and their handlers are called. */
static int called;
static void handler(MPI_File *file, int *code, ...) {
    (void)file;
    called = class_of(*code);
}

static void numbers_and_handlers_of_a_handle(void) {
    MPI_File file = new_file("data"), same;
    MPI_Errhandler mine, found;
    MPI_Status status;
    char text[MPI_MAX_ERROR_STRING], byte = 0;
    int length, code;
#if MPI_VERSION >= 5
    same = MPI_File_fromint(MPI_File_toint(file));
#else
    same = MPI_File_f2c(MPI_File_c2f(file));
#endif
    EXPECT(same == file);
    OK(MPI_File_create_errhandler(handler, &mine));
    OK(MPI_File_set_errhandler(file, mine));
    OK(MPI_File_get_errhandler(file, &found));
    EXPECT(found == mine);
    called = 0;
    code = MPI_File_write_at(same, -1, &byte, 1, MPI_BYTE, &status);
    EXPECT(code != MPI_SUCCESS);
    EXPECT_EQ(called, class_of(code));
    OK(MPI_Error_string(code, text, &length));
    EXPECT_EQ(length, (int)strlen(text));
    OK(MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE));
    EXPECT_EQ(called, MPI_ERR_NO_SPACE);
    MPI_Errhandler_free(&mine), MPI_Errhandler_free(&found);
    OK(MPI_File_close(&file));
    EXPECT(file == MPI_FILE_NULL);
}

static const Case cases[] = {
    {"types_of_more_than_four_gibibytes", types_of_more_than_four_gibibytes},
    {"bytes_that_are_gibibytes_apart", bytes_that_are_gibibytes_apart},
    {"addresses_from_the_bottom_of_memory", addresses_from_the_bottom_of_memory},
    {"the_same_memory_written_many_times", the_same_memory_written_many_times},
    {"large_counts", large_counts},
    {"numbers_and_handlers_of_a_handle", numbers_and_handlers_of_a_handle},
};
PROGRAM(cases)
