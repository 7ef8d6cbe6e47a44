/* Loaded before MPICH: where its progress finds nothing to do, the processor goes to whoever has. With more processes
 * than processors MPICH polls the time away otherwise.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker) {
    static unsigned (*next)(void *);
    if (!next) next = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned done = next(worker);
    if (!done) sched_yield();
    return done;
}
