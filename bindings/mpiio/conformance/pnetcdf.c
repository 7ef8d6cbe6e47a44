/* PnetCDF: an array in blocks of columns, written and read collectively. Two ranks or more.
 *
 * In one go: ncmpi_open of an existing file is left out. On rank 0 it asks ncmpi_inq_file_format first, which cuts
 * off what is before a colon, opens the rest with open(2), reads the signature (8 bytes) and returns NC_ENOENT
 * (-220) if there is no such file of the system. So no form of a name helps; below a mount the file is there. */
#include "check.h"
#include <pnetcdf.h>

static void variable(void) {
    enum { ROWS = 6, EACH = 4 };
    int file, dims[2], id, values[ROWS][EACH], back[ROWS][EACH], i, j, next = (rank + 1) % size;
    MPI_Offset start[2] = {0, EACH * rank}, count[2] = {ROWS, EACH};
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < EACH; j++)
            values[i][j] = 1000 * rank + 10 * i + j;
    EXPECT_EQ(ncmpi_create(MPI_COMM_WORLD, file_name("nc"), NC_CLOBBER, MPI_INFO_NULL, &file), NC_NOERR);
    EXPECT_EQ(ncmpi_def_dim(file, "row", ROWS, &dims[0]), NC_NOERR);
    EXPECT_EQ(ncmpi_def_dim(file, "column", (MPI_Offset)EACH * size, &dims[1]), NC_NOERR);
    EXPECT_EQ(ncmpi_def_var(file, "matrix", NC_INT, 2, dims, &id), NC_NOERR);
    EXPECT_EQ(ncmpi_enddef(file), NC_NOERR);
    EXPECT_EQ(ncmpi_put_vara_int_all(file, id, start, count, &values[0][0]), NC_NOERR);
    EXPECT_EQ(ncmpi_sync(file), NC_NOERR);
    barrier();
    EXPECT_EQ(ncmpi_sync(file), NC_NOERR);
    start[1] = EACH * next;
    EXPECT_EQ(ncmpi_get_vara_int_all(file, id, start, count, &back[0][0]), NC_NOERR);
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < EACH; j++)
            EXPECT_EQ(back[i][j], 1000 * next + 10 * i + j);
    EXPECT_EQ(ncmpi_close(file), NC_NOERR);
    barrier();
    discard("nc");
}

static const Case cases[] = {{"pnetcdf_variable", variable}};
PROGRAM(cases)
