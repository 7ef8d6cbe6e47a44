/* Makes MPICH give the processor away while it waits, as long as nothing moves.
 *
 * MPICH polls without end; with more ranks than processors every step then takes a time slice of the
 * kernel. Loaded with LD_PRELOAD, before the program: the transport's progress call passes here.
 * MPICH 4 and 5 both call UCX from another library, so the name can be taken; where no UCX is in the
 * process nothing changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

typedef unsigned (*Progress)(void *worker);

/* Under Python libucp arrives by dlopen with local scope, where RTLD_NEXT does not look. */
static int find(struct dl_phdr_info *info, size_t size, void *found) {
    void *library;
    (void)size;
    if (strstr(info->dlpi_name, "/libucp.so") == NULL)
        return 0;
    library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL)
        *(void **)found = dlsym(library, "ucp_worker_progress");
    return *(void **)found != NULL;
}

unsigned ucp_worker_progress(void *worker) {
    static Progress next;
    unsigned moved;
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (found == NULL)
            dl_iterate_phdr(find, &found);
        if (found == NULL)
            return 0;
        next = (Progress)found;
    }
    moved = next(worker);
    if (moved == 0)
        sched_yield();
    return moved;
}
