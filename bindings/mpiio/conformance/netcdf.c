/* Parallel netCDF-4, which is HDF5 underneath. Two ranks or more. */
#include "check.h"
#include <netcdf.h>
#include <netcdf_par.h>

static void variable(void) {
    enum { EACH = 25 };
    int file, dim, id, values[EACH], back[EACH], i, next = (rank + 1) % size;
    size_t start = (size_t)(EACH * rank), count = EACH;
    for (i = 0; i < EACH; i++)
        values[i] = 1000 * rank + i;
    EXPECT_EQ(nc_create_par(file_name("nc"), NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file), NC_NOERR);
    EXPECT_EQ(nc_def_dim(file, "item", (size_t)(EACH * size), &dim), NC_NOERR);
    EXPECT_EQ(nc_def_var(file, "list", NC_INT, 1, &dim, &id), NC_NOERR);
    EXPECT_EQ(nc_enddef(file), NC_NOERR);
    EXPECT_EQ(nc_var_par_access(file, id, NC_COLLECTIVE), NC_NOERR);
    EXPECT_EQ(nc_put_vara_int(file, id, &start, &count, values), NC_NOERR);
    EXPECT_EQ(nc_close(file), NC_NOERR);
    EXPECT_EQ(nc_open_par(file_name("nc"), NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file), NC_NOERR);
    EXPECT_EQ(nc_inq_varid(file, "list", &id), NC_NOERR);
    start = (size_t)(EACH * next);
    EXPECT_EQ(nc_get_vara_int(file, id, &start, &count, back), NC_NOERR);
    for (i = 0; i < EACH; i++)
        EXPECT_EQ(back[i], 1000 * next + i);
    EXPECT_EQ(nc_close(file), NC_NOERR);
    barrier();
    discard("nc");
}

static const Case cases[] = {{"netcdf_variable", variable}};
PROGRAM(cases)
