/* An N x N array of elements through MPI_File_*, by every process its part: Pario and the MPI library's own
 * implementation on local file systems take turns in one run.
 *
 *   mpiio TURNS SYNC PATTERNS SIZES TARGET=PATH...
 *
 * SYNC is a file for a barrier between the processes of this host that sleeps. PATTERNS and SIZES are separated
 * by commas. The target `pwrite` is the yardstick without MPI-IO: every process one contiguous part. For each cell a
 * line per target and operation:
 *
 *   PATTERN OP HOW TYPE N TARGET CALLS TURNS BEST MEDIAN FIRST VIEW     (seconds per call of all processes)
 *
 * A turn is CALLS calls between two barriers; its time is from the first process that begins to the last that
 * ends. What was written is read back and compared, and in the end the files of all targets are. together.h comes before
 * this text.
 */
enum { MOST_TARGETS = 8, MOST_TURNS = 64 };

/* One cell of the table: who has what. */
struct part {
    MPI_Datatype filetype, etype;
    MPI_Datatype memory; /* one of it is the whole part */
    size_t bytes, memory_bytes;
    int type_bytes;
};

static struct part part_of(const char *pattern, int n) {
    struct part part = {.type_bytes = 1};
    int gsizes[3] = {n, n, 1}, distribs[3], dargs[3], psizes[3] = {1, 1, 1}, dims = 2;
    for (int i = 0; i < 3; i++) distribs[i] = MPI_DISTRIBUTE_BLOCK, dargs[i] = MPI_DISTRIBUTE_DFLT_DARG;
    int two[2] = {0, 0};
    MPI_Dims_create(size, 2, two);
    part.etype = MPI_BYTE;
    if (!strcmp(pattern, "rows") || !strcmp(pattern, "holes")) {
        psizes[0] = size;
    } else if (!strcmp(pattern, "cols")) {
        psizes[1] = size;
    } else if (!strcmp(pattern, "blocks")) {
        psizes[0] = two[0], psizes[1] = two[1];
    } else if (!strcmp(pattern, "cyc64") || !strcmp(pattern, "cyc1")) {
        psizes[0] = two[0], psizes[1] = two[1];
        distribs[0] = distribs[1] = MPI_DISTRIBUTE_CYCLIC;
        dargs[0] = dargs[1] = !strcmp(pattern, "cyc64") ? 64 : 1;
    } else if (!strcmp(pattern, "darray3d")) {
        /* the same bytes as a cube, or nearly one */
        int edge = 1;
        while ((long)edge * edge * edge < (long)n * n) edge *= 2;
        dims = 3;
        gsizes[0] = (int)((long)n * n / edge / edge), gsizes[1] = gsizes[2] = edge;
        int grid[3] = {0, 0, 0};
        MPI_Dims_create(size, 3, grid);
        for (int i = 0; i < 3; i++) psizes[i] = grid[i];
    } else {
        fail("unknown pattern", 0);
    }
    check(MPI_Type_create_darray(size, rank, dims, gsizes, distribs, dargs, psizes, MPI_ORDER_C,
                                 part.etype, &part.filetype), "MPI_Type_create_darray");
    check(MPI_Type_commit(&part.filetype), "MPI_Type_commit");
    int bytes;
    MPI_Type_size(part.filetype, &bytes);
    part.bytes = part.memory_bytes = bytes;
    if (!strcmp(pattern, "holes")) { /* every second element of 8 bytes in memory */
        check(MPI_Type_vector(bytes / 8, 8, 16, MPI_BYTE, &part.memory), "MPI_Type_vector");
        part.memory_bytes = 2 * (size_t)bytes;
    } else {
        check(MPI_Type_contiguous(bytes, MPI_BYTE, &part.memory), "MPI_Type_contiguous");
    }
    check(MPI_Type_commit(&part.memory), "MPI_Type_commit");
    return part;
}

struct target {
    const char *name, *path;
    MPI_File file;
    int fd;
    double view; /* seconds of MPI_File_set_view */
    double slow; /* what the last cell of this operation took per call, by operation and way */
};

static char *buffer, *copy;

static void call(struct target *target, struct part *part, int op, int together, char *memory) {
    if (target->fd >= 0) {
        off_t at = (off_t)rank * part->bytes;
        ssize_t n = op == 0 ? pwrite(target->fd, memory, part->bytes, at)
                            : pread(target->fd, memory, part->bytes, at);
        if (n != (ssize_t)part->bytes) fail("pwrite", 0);
        return;
    }
    MPI_Status status;
    int code;
    if (op == 0)
        code = together ? MPI_File_write_at_all(target->file, 0, memory, 1, part->memory, &status)
                        : MPI_File_write_at(target->file, 0, memory, 1, part->memory, &status);
    else
        code = together ? MPI_File_read_at_all(target->file, 0, memory, 1, part->memory, &status)
                        : MPI_File_read_at(target->file, 0, memory, 1, part->memory, &status);
    check(code, op == 0 ? "MPI_File_write_at" : "MPI_File_read_at");
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != (int)part->bytes) fail("a short access", 0);
}

/* One turn; seconds per call. */
static double turn(struct target *target, struct part *part, int op, int together, int calls) {
    char *memory = op == 0 ? buffer : copy;
    begin_together();
    for (int i = 0; i < calls; i++) call(target, part, op, together, memory);
    return end_together() / calls;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static unsigned char expected(size_t i, int n) { return (unsigned char)(i * 2654435761u >> 13) ^ (unsigned char)(n + rank * 37); }

static void compare(const char *pattern, struct part *part, const char *name) {
    int holes = !strcmp(pattern, "holes");
    for (size_t i = 0; i < part->bytes; i++) {
        size_t at = holes ? i / 8 * 16 + i % 8 : i;
        if (buffer[at] != copy[at]) {
            fprintf(stderr, "mpiio: %s %s: byte %zu of rank %d differs\n", pattern, name, i, rank);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

/* A number over the whole file, read by rank 0 without a view. */
static unsigned long checksum(struct target *target, size_t bytes) {
    unsigned long sum = 0;
    check(MPI_File_set_view(target->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "MPI_File_set_view");
    if (rank == 0) {
        char *whole = malloc(bytes);
        MPI_Status status;
        check(MPI_File_read_at(target->file, 0, whole, (int)bytes, MPI_BYTE, &status), "MPI_File_read_at");
        for (size_t i = 0; i < bytes; i++) sum = sum * 31 + (unsigned char)whole[i];
        free(whole);
    }
    MPI_Bcast(&sum, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
    return sum;
}

static void cell(const char *pattern, int n, int turns, struct target *targets, int count, double limit) {
    struct part part = part_of(pattern, n);
    buffer = malloc(part.memory_bytes);
    copy = malloc(part.memory_bytes);
    for (size_t i = 0; i < part.memory_bytes; i++) buffer[i] = expected(i, n), copy[i] = 0;
    static double slow[MOST_TARGETS][2][2]; /* seconds per byte when last seen */
    char skip[MOST_TARGETS] = {0}, written[MOST_TARGETS] = {0};
    for (int t = 0; t < count; t++) {
        struct target *target = &targets[t];
        target->fd = -1;
        if (!strcmp(target->name, "pwrite")) {
            if (rank == 0) close(open(target->path, O_RDWR | O_CREAT, 0600));
            all_here();
            target->fd = open(target->path, O_RDWR);
            if (target->fd < 0) fail(target->path, 0);
            continue;
        }
        char path[4096];
        snprintf(path, sizeof path, "%s-%s-%d", target->path, pattern, n);
        check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                            MPI_INFO_NULL, &target->file), path);
        all_here();
        double begin = now();
        check(MPI_File_set_view(target->file, 0, part.etype, part.filetype, "native", MPI_INFO_NULL), "MPI_File_set_view");
        double mine = now() - begin;
        MPI_Allreduce(&mine, &target->view, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        /* set again, as programs do for each time step: without what only the first one does */
        for (int again = 0; again < 4 && target->view < 1; again++) {
            all_here();
            begin = now();
            check(MPI_File_set_view(target->file, 0, part.etype, part.filetype, "native", MPI_INFO_NULL), "MPI_File_set_view");
            mine = now() - begin;
            double worst;
            MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (worst < target->view) target->view = worst;
        }
    }
    for (int together = 0; together < 2; together++) {
        for (int op = 0; op < 2; op++) {
            double times[MOST_TARGETS][MOST_TURNS], first[MOST_TARGETS];
            int calls[MOST_TARGETS], taken[MOST_TARGETS];
            for (int t = 0; t < count; t++) {
                taken[t] = 0;
                /* nothing to read where nothing was written */
                skip[t] = slow[t][op][together] * part.bytes > limit || (op == 1 && !written[t]);
                if (skip[t]) continue;
                written[t] |= op == 0;
                first[t] = turn(&targets[t], &part, op, together, 1);
                double warm = first[t] < limit / 4 ? turn(&targets[t], &part, op, together, 1) : first[t];
                slow[t][op][together] = warm / part.bytes;
                /* a turn is long against waking four processes on few processors */
                double wanted = 0.004 / warm;
                calls[t] = wanted < 1 ? 1 : wanted > 200 ? 200 : (int)wanted;
                MPI_Bcast(&calls[t], 1, MPI_INT, 0, MPI_COMM_WORLD);
                if (warm > limit / 4) times[t][taken[t]++] = warm;
            }
            for (int i = 0; i < turns; i++)
                for (int t = 0; t < count; t++) {
                    if (skip[t] || (taken[t] && slow[t][op][together] * part.bytes > limit / 4)) continue;
                    times[t][taken[t]++] = turn(&targets[t], &part, op, together, calls[t]);
                }
            for (int t = 0; t < count; t++) {
                if (skip[t]) continue;
                if (op == 1 && targets[t].fd < 0) {
                    memset(copy, 0, part.memory_bytes);
                    call(&targets[t], &part, op, together, copy);
                    compare(pattern, &part, targets[t].name);
                }
                qsort(times[t], taken[t], sizeof(double), ascending);
                if (rank == 0)
                    printf("%s %s %s %d %d %s %d %d %.9f %.9f %.9f %.9f\n", pattern, op ? "read" : "write",
                           together ? "coll" : "indep", part.type_bytes, n, targets[t].name, calls[t], taken[t],
                           times[t][0], times[t][taken[t] / 2], first[t], targets[t].view);
                fflush(stdout);
            }
        }
    }
    unsigned long sums = 0, sum;
    for (int t = 0; t < count; t++) {
        if (targets[t].fd >= 0) {
            close(targets[t].fd);
            continue;
        }
        if (written[t]) {
            sum = checksum(&targets[t], (size_t)n * n);
            if (sums && sum != sums) fail("the files of two targets differ", 0);
            sums = sum;
        }
        check(MPI_File_close(&targets[t].file), "MPI_File_close");
    }
    MPI_Type_free(&part.filetype);
    MPI_Type_free(&part.memory);
    free(buffer);
    free(copy);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 6 || size > 64) fail("usage: mpiio TURNS SYNC PATTERNS SIZES TARGET=PATH...", 0);
    int turns = atoi(argv[1]), count = 0;
    if (turns > MOST_TURNS - 1) turns = MOST_TURNS - 1;
    struct target targets[MOST_TARGETS];
    for (int i = 5; i < argc && count < MOST_TARGETS; i++) {
        char *equal = strchr(argv[i], '=');
        if (!equal) fail("a target is NAME=PATH", 0);
        *equal = 0;
        targets[count++] = (struct target){.name = argv[i], .path = equal + 1, .fd = -1};
    }
    meet(argv[2]);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    char *rest = NULL;
    for (char *n = strtok_r(argv[4], ",", &rest); n; n = strtok_r(NULL, ",", &rest)) {
        char patterns[256], *inner = NULL;
        snprintf(patterns, sizeof patterns, "%s", argv[3]);
        for (char *p = strtok_r(patterns, ",", &inner); p; p = strtok_r(NULL, ",", &inner))
            cell(p, atoi(n), turns, targets, count, 4.0);
    }
    MPI_Finalize();
    return 0;
}
