/* vip_mpio_init.h: programs written for ViMPIOS, the MPI-IO of the source (6.3). Include it behind mpi.h.
 *
 *     #include <mpi.h>
 *     #include <vip_mpio_init.h>       mpicc program.c $(pkg-config --cflags --libs vipios)
 *     pario run -- mpiexec -n 4 ./program
 *
 * MPI_Init connects too, and MPI_Finalize disconnects before MPI ends (the source has an example that does it the other way round). So
 * MPI_File_x and ViPIOS_x can be used in one program. What ViMPIOS had in place of MPI_Wait, MPI_Test and MPI_Get_count is here
 * in terms of these: a request and a status are those of MPI, each request has its own.
 */
#ifndef VIP_MPIO_INIT_H
#define VIP_MPIO_INIT_H

#include "mpi_to_vip.h"
#include "vipios.h"

#ifndef MPIO_Request
#define MPIO_Request MPI_Request
#endif
#define MPIO_Status MPI_Status

#ifdef __cplusplus
extern "C" {
#endif

/* Connects, after MPI_Init. */
static inline int MPIO_Init(void) { return ViPIOS_Connect(0) ? MPI_SUCCESS : MPI_ERR_OTHER; }

/* Disconnects, before MPI_Finalize. */
static inline int MPIO_Finalize(void) { return ViPIOS_Disconnect() ? MPI_SUCCESS : MPI_ERR_OTHER; }

static inline int vip_mpi_init(int *argc, char ***argv) {
    int code = MPI_Init(argc, argv);
    return code == MPI_SUCCESS ? MPIO_Init() : code;
}

static inline int vip_mpi_init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = MPI_Init_thread(argc, argv, required, provided);
    return code == MPI_SUCCESS ? MPIO_Init() : code;
}

static inline int vip_mpi_finalize(void) {
    int code = MPIO_Finalize(), ended = MPI_Finalize();
    return code == MPI_SUCCESS ? ended : code;
}

/* Waits for a request. */
static inline int MPI_File_wait(MPIO_Request *request, MPIO_Status *status) { return MPI_Wait(request, status); }

/* Whether a request is done; the status counts then. */
static inline int MPI_File_test(MPIO_Request *request, int *flag, MPIO_Status *status) {
    return MPI_Test(request, flag, status);
}

/* The bytes that were transferred. (The source counts bytes too, whatever the datatype.) */
static inline int MPI_File_get_count(MPIO_Status *status, MPI_Datatype datatype, int *count) {
    (void)datatype;
    return MPI_Get_elements(status, MPI_BYTE, count);
}

#ifdef __cplusplus
}
#endif

#ifndef VIP_MPIO_KEEP_NAMES
#define MPI_Init(argc, argv) vip_mpi_init(argc, argv)
#define MPI_Init_thread(argc, argv, required, provided) vip_mpi_init_thread(argc, argv, required, provided)
#define MPI_Finalize() vip_mpi_finalize()
#endif

#endif
