/* mpi_to_vip.h: the communicators of the source (5.2.3, 5.3), to be included directly behind mpi.h.
 *
 * In the source servers and clients shared MPI_COMM_WORLD, which had to be renamed. Here servers are never ranks: the
 * world is that of the clients, whatever was started, and the other names stand for it.
 */
#ifndef MPI_TO_VIP_H
#define MPI_TO_VIP_H

#ifndef MPI_VERSION
#error "include mpi.h before mpi_to_vip.h"
#endif

#define MPI_COMM_APP MPI_COMM_WORLD
#define MPI_COMM_UNIVERSAL MPI_COMM_WORLD
#define Vipios_comm_app MPI_COMM_WORLD
/* No client is a server. */
#define MPI_COMM_SERV MPI_COMM_NULL

#endif
