/* Wrong use of pario_tmk.h: what can be answered is answered, and nothing crashes. The rest ends the process with a text; which, the
 * argument says. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pario_tmk.h"

static int failures;

static void refused(int line, int outcome, int number, const char *words)
{
    if (outcome == -1 && errno == number && strstr(pario_last_error(), words))
        return;
    fprintf(stderr, "line %d: %d, errno %d, %s\n", line, outcome, errno, pario_last_error());
    failures++;
}

#define REFUSED(call, number, words) (errno = 0, refused(__LINE__, (call), (number), (words)))

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    int there, made;
    char local[8] = "outside";
    REFUSED(PIO_open("/a", O_RDONLY), EINVAL, "Tmk_startup first");
    if (!strcmp(which, "early"))
        Tmk_barrier(0);
    Tmk_startup(argc, argv);
    if (!strcmp(which, "twice"))
        Tmk_startup(argc, argv);
    if (!strcmp(which, "release"))
        Tmk_lock_release(3);
    if (!strcmp(which, "free"))
        Tmk_free(local);
    if (!strcmp(which, "local"))
        Tmk_distribute(local, sizeof local);
    if (!strcmp(which, "number"))
        Tmk_barrier(1u << 31);
    if (!strcmp(which, "die")) {
        Tmk_barrier(7);
        if (Tmk_proc_id == 2)
            _Exit(3);
        Tmk_barrier(8);
    }

    char *memory = Tmk_malloc(10000), *more = Tmk_malloc(1);
    if (!memory || !more || memory == more || Tmk_malloc((size_t)1 << 40)) {
        fprintf(stderr, "no memory, or too much\n");
        failures++;
    }
    memset(memory, 7, 10000);
    REFUSED(PIO_open(NULL, O_RDONLY), EINVAL, "pathname");
    REFUSED(PIO_open("/a", O_RDWR), EINVAL, "read or written as a whole");
    REFUSED(PIO_open("/a", O_WRONLY), EINVAL, "O_CREAT");
    REFUSED(PIO_open("/a", O_RDONLY), ENOENT, "/a");
    REFUSED(PIO_close(0), EBADF, "not open");
    REFUSED(PIO_close(-1), EBADF, "not open");
    REFUSED(PIO_learn(5), EBADF, "not open");
    made = PIO_open("/a", O_WRONLY | O_CREAT);
    REFUSED(PIO_write(made, memory, 10001), EINVAL, "10001 are to be written");
    REFUSED(PIO_write(made, memory, -1), EINVAL, "nbytes");
    REFUSED(PIO_write(made, memory + 1, 10), EINVAL, "behind a page");
    REFUSED(PIO_write(made, local, 8), EINVAL, "Tmk_malloc");
    REFUSED(PIO_write(made, NULL, 8), EINVAL, "Tmk_malloc");
    REFUSED(PIO_read(made, memory, 8), EINVAL, "open it for reading");
    if (PIO_write(made, memory, 5000) != 5000 || PIO_close(made)) {
        fprintf(stderr, "write: %s\n", pario_last_error());
        failures++;
    }
    REFUSED(PIO_open("/a", O_WRONLY | O_CREAT), EEXIST, "/a is there");
    there = PIO_open("/a", O_RDONLY);
    memset(memory, 1, 10000);
    /* From the second page on, as a program with several matrices in one piece of memory does. */
    if (PIO_read(there, memory + 4096, 10000 - 4096) != 5000 || memory[4095] != 1 || memory[4096] != 7 ||
        memory[9095] != 7 || memory[9096] != 1) {
        fprintf(stderr, "read: %s\n", pario_last_error());
        failures++;
    }
    REFUSED(PIO_read(there, more, 5000), EINVAL, "has 1 bytes");
    if (PIO_close(there))
        failures++;
    Tmk_free(memory);
    Tmk_free(NULL);
    if (Tmk_malloc(9000) != memory) {
        fprintf(stderr, "what was freed is not used again\n");
        failures++;
    }
    if (!failures)
        printf("all is well\n");
    fflush(stdout);
    Tmk_exit(failures ? 1 : 0);
}
