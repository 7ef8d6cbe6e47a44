/* A team of Pario out of the processes of an MPI communicator. Nothing but this header is needed beside pario.h and mpi.h.
 *
 *     pario_mpi_team all;
 *     if (pario_mpi_team_begin(MPI_COMM_WORLD, &all)) fprintf(stderr, "%s\n", pario_last_error());
 *     pario_open_all(client, all.team, "/matrix", &how, &file);
 *     ...
 *     pario_mpi_team_end(&all);
 *
 * All processes of the communicator call both. The team has a communicator of its own. Operations of the team beside the
 * program (pario_iread_at_all and its like) call MPI in a thread of the library: they need MPI_THREAD_MULTIPLE. Messages
 * (pario_team_send) are MPI's own affair here.
 */
#ifndef PARIO_MPI_TEAM_H
#define PARIO_MPI_TEAM_H

#include <limits.h>
#include <mpi.h>
#include <pario.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pario_mpi_team {
    MPI_Comm comm;
    pario_team *team;
} pario_mpi_team;

/* What the team exchanges bytes with. */
static inline int pario_mpi_gather(void *user, const void *mine, const uint64_t *bytes, void *all) {
    MPI_Comm comm = ((pario_mpi_team *)user)->comm;
    const uint64_t most = 1 << 30; /* counts of MPI are ints */
    uint64_t sum = 0, before = 0, done;
    int rank, size, i, *counts, code;
    if ((code = MPI_Comm_rank(comm, &rank)) || (code = MPI_Comm_size(comm, &size))) return code;
    for (i = 0; i < size; i++) {
        if (i == rank) before = sum;
        sum += bytes[i];
    }
    if (sum <= INT_MAX) {
        counts = (int *)malloc(2 * (size_t)size * sizeof *counts);
        if (!counts) return MPI_ERR_NO_MEM;
        for (i = 0, sum = 0; i < size; i++) {
            counts[i] = (int)bytes[i];
            counts[size + i] = (int)sum;
            sum += bytes[i];
        }
        code = MPI_Allgatherv(mine, counts[rank], MPI_BYTE, all, counts, counts + size, MPI_BYTE, comm);
        free(counts);
        return code;
    }
    memcpy((char *)all + before, mine, bytes[rank]);
    for (i = 0, sum = 0; i < size; sum += bytes[i], i++)
        for (done = 0; done < bytes[i]; done += most) {
            uint64_t left = bytes[i] - done;
            code = MPI_Bcast((char *)all + sum + done, (int)(left < most ? left : most), MPI_BYTE, i, comm);
            if (code) return code;
        }
    return 0;
}

/* Makes a team; it must stay where it is until its end. */
static inline int pario_mpi_team_begin(MPI_Comm comm, pario_mpi_team *it) {
    int rank, size;
    it->team = NULL;
    if (MPI_Comm_dup(comm, &it->comm) || MPI_Comm_rank(comm, &rank) || MPI_Comm_size(comm, &size)) return PARIO_ERR_IO;
    return pario_team_by_gathering(rank, size, pario_mpi_gather, it, &it->team);
}

/* Ends a team. */
static inline int pario_mpi_team_end(pario_mpi_team *it) {
    int code = pario_team_leave(it->team);
    it->team = NULL;
    return MPI_Comm_free(&it->comm) ? PARIO_ERR_IO : code;
}

#ifdef __cplusplus
}
#endif

#endif
