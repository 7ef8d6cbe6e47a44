/* Parallel HDF5 on a file that the library underneath opens through MPI-IO. Two ranks or more. */
#include "check.h"
#include <hdf5.h>

static void dataset(void) {
    enum { ROWS = 8, COLUMNS = 10 };
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER), file, space, set, memory;
    hsize_t dims[2] = {(hsize_t)ROWS * (hsize_t)size, COLUMNS}, start[2] = {(hsize_t)ROWS * (hsize_t)rank, 0}, count[2] = {ROWS, COLUMNS};
    double values[ROWS][COLUMNS], back[ROWS][COLUMNS];
    int i, j;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++)
            values[i][j] = 100 * rank + 10 * i + j;
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    file = H5Fcreate(file_name("h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    EXPECT(file >= 0);
    space = H5Screate_simple(2, dims, NULL);
    set = H5Dcreate2(file, "matrix", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT(set >= 0);
    memory = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    EXPECT(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values) >= 0);
    EXPECT(H5Dclose(set) >= 0);
    EXPECT(H5Fclose(file) >= 0);
    file = H5Fopen(file_name("h5"), H5F_ACC_RDONLY, access);
    EXPECT(file >= 0);
    set = H5Dopen2(file, "matrix", H5P_DEFAULT);
    start[0] = (hsize_t)ROWS * (hsize_t)((rank + 1) % size); /* what the neighbour wrote */
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    EXPECT(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, back) >= 0);
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++)
            EXPECT(back[i][j] == 100 * ((rank + 1) % size) + 10 * i + j);
    H5Dclose(set);
    H5Fclose(file);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(access);
    H5Pclose(transfer);
    discard("h5");
}

static const Case cases[] = {{"hdf5_dataset", dataset}};
PROGRAM(cases)
