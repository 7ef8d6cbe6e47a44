/* The MPI yardstick of `pario bench kernels`: MPI_Pack and MPI_Unpack of a nested vector type.
 *
 * A line protocol on stdin and stdout, so that the benchmark can alternate with it:
 *
 *   setup <gather|scatter> <pages> <source bytes> <target bytes> <len> <packets> <source step>
 *         <target step> <levels> { <count> <stride> } (outermost first)        -> "ok"
 *   run <iterations>                                                         -> nanoseconds
 *
 * <pages> is "huge" for memory of one's own, or two files to map, "source:target".
 *
 * The strided side is one committed datatype; the packed side is contiguous. With packets, the
 * same type is packed at `source step` intervals, one call per packet.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void *map_huge(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    char *base = mmap(NULL, bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        exit(1);
    char *start = (char *)(((uintptr_t)base + page - 1) & ~(page - 1));
    madvise(start, (bytes + page - 1) / page * page, MADV_HUGEPAGE);
    memset(start, 1, bytes);
    return start;
}

static void *map_file(const char *path, size_t bytes)
{
    int file = open(path, O_RDWR);
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || start == MAP_FAILED)
        exit(1);
    close(file);
    return start;
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    static char line[4096];
    char *source = NULL, *target = NULL;
    size_t source_bytes = 0, target_bytes = 0;
    int scatter = 0;
    long long packets = 0, source_step = 0, target_step = 0, packed = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;

    MPI_Init(&argc, &argv);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        char *at = line;
        char *word = strsep(&at, " \n");
        if (!strcmp(word, "setup")) {
            scatter = !strcmp(strsep(&at, " "), "scatter");
            char *pages = strsep(&at, " ");
            size_t need_source = strtoull(strsep(&at, " "), NULL, 10);
            size_t need_target = strtoull(strsep(&at, " "), NULL, 10);
            long long len = atoll(strsep(&at, " "));
            packets = atoll(strsep(&at, " "));
            source_step = atoll(strsep(&at, " "));
            target_step = atoll(strsep(&at, " "));
            int levels = atoi(strsep(&at, " \n"));
            long long count[16], stride[16];
            packed = len;
            for (int i = 0; i < levels && i < 16; i++) {
                count[i] = atoll(strsep(&at, " "));
                stride[i] = atoll(strsep(&at, " \n"));
                packed *= count[i];
            }
            if (source) {
                munmap(source, source_bytes);
                munmap(target, target_bytes);
            }
            source_bytes = need_source;
            target_bytes = need_target;
            char *second = strchr(pages, ':');
            if (second) {
                *second++ = 0;
                source = map_file(pages, source_bytes);
                target = map_file(second, target_bytes);
            } else {
                source = map_huge(source_bytes);
                target = map_huge(target_bytes);
            }
            if (type != MPI_DATATYPE_NULL)
                MPI_Type_free(&type);
            MPI_Type_contiguous((int)len, MPI_BYTE, &type);
            for (int i = levels - 1; i >= 0; i--) {
                MPI_Datatype outer;
                MPI_Type_create_hvector((int)count[i], 1, (MPI_Aint)stride[i], type, &outer);
                MPI_Type_free(&type);
                type = outer;
            }
            MPI_Type_commit(&type);
            puts("ok");
        } else if (!strcmp(word, "run")) {
            long long iterations = atoll(at);
            long long start = now();
            for (long long i = 0; i < iterations; i++) {
                for (long long p = 0; p < packets; p++) {
                    int position = 0;
                    if (scatter)
                        MPI_Unpack(source + p * source_step, (int)packed, &position, target + p * target_step, 1, type,
                                   MPI_COMM_SELF);
                    else
                        MPI_Pack(source + p * source_step, 1, type, target + p * target_step, (int)packed, &position,
                                 MPI_COMM_SELF);
                }
            }
            printf("%lld\n", now() - start);
        } else {
            break;
        }
        fflush(stdout);
    }
    if (type != MPI_DATATYPE_NULL)
        MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
