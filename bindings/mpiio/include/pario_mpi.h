/* Pario beside MPI: redistribution of arrays in the memory of MPI processes.
 *
 * Files need no header: MPI_File_open("pario:...") is all. Link with -lpario_mpiio before MPI, or preload it.
 */
#ifndef PARIO_MPI_H
#define PARIO_MPI_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each process holds a part of an array and gets another part of it.
 *
 * A part is described by a datatype whose extent is the whole array, as MPI_Type_create_darray and
 * MPI_Type_create_subarray make it, or any other that could be the filetype of a view. In memory parts are packed, in the
 * order of the array. Elements that several processes hold come from the lowest rank; elements that nobody holds
 * keep their value. All processes of comm call; the answer is MPI_SUCCESS or an error class, and after an error the
 * bytes of the target are not defined.
 *
 * pario_redistribute works in place: buf holds the source part before and the target part after, and has room for the
 * longer one.
 */
int pario_redistribute(void *buf, MPI_Datatype source, MPI_Datatype target, MPI_Comm comm);
int pario_redistribute_to(const void *from, MPI_Datatype source, void *to, MPI_Datatype target, MPI_Comm comm);

/* Memory for parts of arrays. Processes of the same user and host read it in place when it is the source of
 * pario_redistribute_to, so that every byte is copied once, into the target; any other memory goes through a cache-sized
 * ring. Use it like any other memory; give it back with pario_free when no call uses it. Children of the process share it.
 * Where the kernel does not let processes look at each other it is ordinary memory.
 */
int pario_alloc(size_t bytes, void **memory);
int pario_free(void *memory);

/* With PARIO_MPI_PACK=on in the environment MPI_Pack and MPI_Unpack of datatypes that the program made run on the kernels of
 * Pario, with the bytes and positions of the MPI library. How many calls of this process did so far; the MPI library does all
 * others: predefined and solid types, types that do not ascend, the first call with a type, and whatever it has to refuse.
 */
long long pario_pack_count(void);

/* A process's place in a grid of processes; row and column -1 if it is not in the grid. */
struct pario_grid {
    int rows, columns, row, column;
};

/* Copies the m x n submatrix of a that begins at (ia, ja) to the submatrix of b that begins at (ib, jb), counted from 1.
 * Descriptors are those of ScaLAPACK (nine integers; their contexts are not looked at); blocks, grids and even the sets
 * of processes may differ. All processes of comm call.
 */
int pario_gemr2d(int m, int n, size_t element_bytes,
                 const void *a, int ia, int ja, const int *desca, const struct pario_grid *grid_a,
                 void *b, int ib, int jb, const int *descb, const struct pario_grid *grid_b, MPI_Comm comm);

/* The same with the arguments of p?gemr2d; grids and communicator are those of the BLACS contexts. In Fortran the names
 * are these, and the arguments those of the routines they stand for.
 */
int pario_pigemr2d(int m, int n, const int *a, int ia, int ja, const int *desca,
                   int *b, int ib, int jb, const int *descb, int context);
int pario_psgemr2d(int m, int n, const float *a, int ia, int ja, const int *desca,
                   float *b, int ib, int jb, const int *descb, int context);
int pario_pdgemr2d(int m, int n, const double *a, int ia, int ja, const int *desca,
                   double *b, int ib, int jb, const int *descb, int context);
int pario_pcgemr2d(int m, int n, const void *a, int ia, int ja, const int *desca,
                   void *b, int ib, int jb, const int *descb, int context);
int pario_pzgemr2d(int m, int n, const void *a, int ia, int ja, const int *desca,
                   void *b, int ib, int jb, const int *descb, int context);

#ifdef __cplusplus
}
#endif

#endif
