/* The MPI yardstick of `pario bench kernels`: MPI_Pack and MPI_Unpack of a nested vector type.
 *
 * A line protocol on stdin and stdout, so that the benchmark can alternate with it:
 *
 *   setup <gather|scatter> <huge> <source bytes> <target bytes> <len> <packets> <source step>
 *         <target step> <levels> { <count> <stride> } (outermost first)        -> "ok"
 *   run <iterations>                                                         -> nanoseconds
 *
 * The strided side is one committed datatype; the packed side is contiguous. With packets, the
 * same type is packed at `source step` intervals, one call per packet.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void *map(size_t bytes, int huge)
{
    const size_t page = (size_t)2 << 20;
    bytes = (bytes + page - 1) / page * page;
    char *base = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        exit(1);
    char *start = (char *)(((uintptr_t)base + page - 1) & ~(page - 1));
    madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(start, 1, bytes);
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
    int scatter = 0, mapped_huge = -1;
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
            int huge = atoi(strsep(&at, " "));
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
            if (mapped_huge != huge || need_source > source_bytes || need_target > target_bytes) {
                if (source) {
                    munmap(source, source_bytes);
                    munmap(target, target_bytes);
                }
                source = map(source_bytes = need_source, huge);
                target = map(target_bytes = need_target, huge);
                mapped_huge = huge;
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
