/* Programs written for TreadMarks, and parallel files under their memory. Link with -lpario.
 *
 *     Tmk_startup(argc, argv);
 *     if (Tmk_proc_id == 0) {
 *         grid = Tmk_malloc(bytes);
 *         Tmk_distribute(&grid, sizeof grid);
 *         if ((file = PIO_open("/grid", O_RDONLY)) < 0 || PIO_read(file, (char *)grid, bytes) != bytes)
 *             fprintf(stderr, "%s\n", pario_last_error());
 *     }
 *     Tmk_barrier(0);
 *     ...
 *     Tmk_exit(0);
 *
 * - Processes come from a launcher of MPI programs (pario run -- mpiexec -n 4 ./program), or Tmk_startup starts them itself:
 *   PARIO_TMK_PROCESSES says how many. With PARIO_TMK_RANK as well, each is started by hand, on any host. PARIO_TMK_TEAM is the
 *   name under which they meet; programs that run at the same time on one service need different ones.
 * - PARIO_URL names the service or directory with the files. PARIO_TMK_MEBIBYTES is how much can be allocated (256).
 * - A program without data races, synchronised by these functions, sees one memory. Shared memory lies at the same address in
 *   all processes, so pointers into it may be stored in it.
 * - Numbers of locks and barriers are below 2^31.
 * - A function of TreadMarks that fails says why on standard error and ends the process; the others then end too. PIO functions
 *   return -1 and set errno; pario_last_error has the text.
 */
#ifndef PARIO_TMK_H
#define PARIO_TMK_H

#include "pario.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this process, from 0, and how many there are. */
PARIO_API unsigned pario_tmk_proc_id(void);
PARIO_API unsigned pario_tmk_nprocs(void);
#define Tmk_proc_id pario_tmk_proc_id()
#define Tmk_nprocs pario_tmk_nprocs()

/* Makes the shared memory; all processes call it before anything else. Tmk_exit leaves it together with all others, and ends the
 * process. */
PARIO_API void Tmk_startup(int argc, char **argv);
PARIO_API void Tmk_exit(int status);

/* Waits for all processes; they have to come to the same barrier. */
PARIO_API void Tmk_barrier(unsigned id);

/* Exclusive locks, and conditions of locks (both below 65536), of which one is held by the caller. */
PARIO_API void Tmk_lock_acquire(unsigned id);
PARIO_API void Tmk_lock_release(unsigned id);
PARIO_API void Tmk_lock_cond_wait(unsigned lock, unsigned condition);
PARIO_API void Tmk_lock_cond_signal(unsigned lock, unsigned condition);
PARIO_API void Tmk_lock_cond_broadcast(unsigned lock, unsigned condition);

/* Shared memory, by any process: whole pages, a null pointer if there is no room. New memory has zeros, freed and allocated again
 * any values. */
PARIO_API void *Tmk_malloc(size_t bytes);
PARIO_API void Tmk_free(void *memory);

/* Copies a global variable of the program, such as a pointer that Tmk_malloc gave, to all other processes. They have it when they
 * leave the next barrier. At most some 60000 bytes between two barriers. */
PARIO_API void Tmk_distribute(void *variable, int bytes);

/* Parallel files: one process calls, all read or write the pages that are at home there.
 *
 * flag is O_RDONLY; O_WRONLY | O_CREAT for a file that is not there yet; or O_WRONLY | O_TRUNC to replace one. A file is read and
 * written as a whole: reading gives how many bytes, at most nbytes, and nobody else may use that memory until a barrier.
 * Writing takes the place of the file when all of it is there. buff begins on a page, as what Tmk_malloc gives does. */
PARIO_API int PIO_open(const char *pathname, int flag);
PARIO_API int PIO_close(int pfd);
PARIO_API int PIO_read(int pfd, char *buff, int nbytes);
PARIO_API int PIO_write(int pfd, char *buff, int nbytes);

/* Keeps with a file which process used which of its blocks since it was read: the next run of this program has them there. */
PARIO_API int PIO_learn(int pfd);

/* Pages that this process has fetched from others so far. */
PARIO_API uint64_t pario_tmk_fetches(void);

#ifdef __cplusplus
}
#endif
#endif
