/* Arrays of doubles that change their distribution in the memory of the processes: Pario, MPI_Alltoallw with types that
 * were made before, and a copy in memory.
 *
 *   redistribute SYNC MIB TURNS PAIR...
 *
 * SYNC is a file for the barrier. MIB is the size of the whole array. A PAIR is two of rows, cols, blocks, cyc8, cyc1
 * with a slash between them, or x/z, z/x for pencils of three dimensions. For each of them a line:
 *
 *   PAIR RUN BYTES TARGET BEST MEDIAN FIRST
 *
 * RUN is the longest run of bytes that is one on both sides, times in seconds of all processes together. The target `pario` has its
 * source in memory of malloc, `common` in memory of pario_alloc. Every source is written again before each turn, and every target
 * is compared after the first and the last. together.h comes before this text.
 */
#include <dlfcn.h>

enum { MOST = 64, TARGETS = 4 };

typedef int (*Redistribute)(const void *, MPI_Datatype, void *, MPI_Datatype, MPI_Comm);
typedef int (*Allocate)(size_t, void **);

/* One dimension of a distribution: blocks of so many elements, dealt to so many processes. */
struct dimension {
    int size, block, processes;
};

struct distribution {
    int dims;
    struct dimension of[3];
};

static int coordinate(const struct distribution *d, int process, int dim) {
    for (int i = d->dims - 1; i > dim; i--) process /= d->of[i].processes;
    return process % d->of[dim].processes;
}

static int owns(const struct distribution *d, int process, int dim, int index) {
    const struct dimension *of = &d->of[dim];
    return index / of->block % of->processes == coordinate(d, process, dim);
}

/* Elements of a dimension that a process has. */
static int count_of(const struct distribution *d, int process, int dim) {
    int n = 0;
    for (int i = 0; i < d->of[dim].size; i++) n += owns(d, process, dim, i);
    return n;
}

static struct distribution named(const char *name, int edge) {
    struct distribution d = {2, {{edge, edge, 1}, {edge, edge, 1}, {edge, edge, 1}}};
    int half = size > 2 ? size / 2 : 1, two = size / half;
    struct dimension all = {edge, (edge + size - 1) / size, size};
    struct dimension first = {edge, (edge + two - 1) / two, two}, second = {edge, (edge + half - 1) / half, half};
    if (!strcmp(name, "rows")) d.of[0] = all;
    else if (!strcmp(name, "cols")) d.of[1] = all;
    else if (!strcmp(name, "blocks")) d.of[0] = first, d.of[1] = second;
    else if (!strcmp(name, "cyc8")) d.of[1] = (struct dimension){edge, 8, size};
    else if (!strcmp(name, "cyc1")) d.of[1] = (struct dimension){edge, 1, size};
    else if (!strcmp(name, "x")) d.dims = 3, d.of[0] = first, d.of[1] = second;
    else if (!strcmp(name, "z")) d.dims = 3, d.of[1] = second, d.of[2] = first;
    else fail("unknown distribution", 0);
    return d;
}

/* The part of a process as the filetype of a view. */
static MPI_Datatype filetype(const struct distribution *d, int process) {
    int sizes[3], kinds[3], blocks[3], grid[3];
    for (int i = 0; i < d->dims; i++) {
        sizes[i] = d->of[i].size, grid[i] = d->of[i].processes, blocks[i] = d->of[i].block;
        kinds[i] = MPI_DISTRIBUTE_CYCLIC;
        if (grid[i] == 1) kinds[i] = MPI_DISTRIBUTE_NONE, blocks[i] = MPI_DISTRIBUTE_DFLT_DARG;
        else if ((long)blocks[i] * grid[i] >= sizes[i]) kinds[i] = MPI_DISTRIBUTE_BLOCK;
    }
    MPI_Datatype type;
    check(MPI_Type_create_darray(size, process, d->dims, sizes, kinds, blocks, grid, MPI_ORDER_C, MPI_DOUBLE, &type), "darray");
    check(MPI_Type_commit(&type), "commit");
    return type;
}

/* What `mine` of this process has in common with `theirs` of another, in the packed memory of this one: a vector per
 * dimension where the places are regular, a list where not. Nothing in common is MPI_DATATYPE_NULL. */
static MPI_Datatype common_type(const struct distribution *mine, const struct distribution *theirs, int other) {
    MPI_Datatype type = MPI_DOUBLE;
    MPI_Aint step = sizeof(double);
    for (int dim = mine->dims - 1; dim >= 0; dim--) {
        int n = mine->of[dim].size, runs = 0, local = 0;
        int *lengths = malloc(n * sizeof *lengths);
        MPI_Aint *places = malloc(n * sizeof *places);
        for (int i = 0, last = -2; i < n; i++) {
            if (!owns(mine, rank, dim, i)) continue;
            if (owns(theirs, other, dim, i)) {
                if (last == local - 1) lengths[runs - 1]++;
                else lengths[runs] = 1, places[runs++] = local * step;
                last = local;
            }
            local++;
        }
        if (runs == 0) {
            free(lengths), free(places);
            return MPI_DATATYPE_NULL;
        }
        int regular = 1;
        for (int i = 1; i < runs; i++)
            regular &= lengths[i] == lengths[0] && places[i] - places[i - 1] == places[1] - places[0];
        MPI_Datatype element, made;
        check(MPI_Type_create_resized(type, 0, step, &element), "resized");
        if (regular) {
            MPI_Datatype vector;
            int one = 1;
            check(MPI_Type_create_hvector(runs, lengths[0], runs > 1 ? places[1] - places[0] : step, element, &vector), "hvector");
            check(MPI_Type_create_hindexed(1, &one, places, vector, &made), "hindexed");
        } else
            check(MPI_Type_create_hindexed(runs, lengths, places, element, &made), "hindexed");
        type = made;
        step *= local;
        free(lengths), free(places);
    }
    check(MPI_Type_commit(&type), "commit");
    return type;
}

/* The longest run of bytes that is one on both sides: along the last dimension, and on where whole rows are. */
static long common_run(const struct distribution *a, const struct distribution *b) {
    long run = sizeof(double);
    for (int dim = a->dims - 1; dim >= 0; dim--) {
        int longest = 0, now = 0, n = a->of[dim].size;
        for (int i = 0; i < n; i++) {
            int same = i > 0 && now > 0;
            for (int p = 0; same && p < size; p++)
                same = owns(a, p, dim, i) == owns(a, p, dim, i - 1) && owns(b, p, dim, i) == owns(b, p, dim, i - 1);
            now = same ? now + 1 : 1;
            if (now > longest) longest = now;
        }
        run *= longest;
        if (longest < n) break;
    }
    return run;
}

/* The values of a part in packed order: numbers of elements, changed by a generation. */
static void each(const struct distribution *d, double *memory, double generation, int compares) {
    size_t at = 0;
    int third = d->dims == 3 ? d->of[2].size : 1;
    for (int i = 0; i < d->of[0].size; i++) {
        if (!owns(d, rank, 0, i)) continue;
        for (int j = 0; j < d->of[1].size; j++) {
            if (!owns(d, rank, 1, j)) continue;
            for (int k = 0; k < third; k++) {
                if (d->dims == 3 && !owns(d, rank, 2, k)) continue;
                double value = ((double)i * d->of[1].size + j) * third + k + generation;
                if (!compares) memory[at] = value;
                else if (memory[at] != value) fail("wrong bytes", 0);
                at++;
            }
        }
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static Redistribute redistribute_to;
static Allocate allocate;
static Allocate give_back;

static void pair(const char *name, long mib, int turns) {
    char from[16], to[16];
    if (sscanf(name, "%15[^/]/%15s", from, to) != 2) fail("a pair is FROM/TO", 0);
    int three = !strcmp(from, "x") || !strcmp(from, "z");
    double elements = mib * 131072.0;
    int edge = 8;
    while (three ? (double)(edge + 8) * (edge + 8) * (edge + 8) <= elements : (double)(edge + 8) * (edge + 8) <= elements) edge += 8;
    struct distribution a = named(from, edge), b = named(to, edge);
    size_t have = 8, want = 8;
    for (int i = 0; i < a.dims; i++) have *= count_of(&a, rank, i), want *= count_of(&b, rank, i);
    size_t room = (have > want ? have : want) + 8;
    double *source = malloc(room), *target = malloc(room), *lent = NULL, *flat = malloc(room);
    check(allocate(room, (void **)&lent), "pario_alloc");
    memset(target, 0, room), memset(flat, 0, room), memset(source, 0, room), memset(lent, 0, room);
    MPI_Datatype source_type = filetype(&a, rank), target_type = filetype(&b, rank);
    MPI_Datatype sends[MOST], takes[MOST];
    int send_counts[MOST], take_counts[MOST], zeros[MOST] = {0};
    for (int r = 0; r < size; r++) {
        sends[r] = common_type(&a, &b, r), takes[r] = common_type(&b, &a, r);
        send_counts[r] = sends[r] != MPI_DATATYPE_NULL, take_counts[r] = takes[r] != MPI_DATATYPE_NULL;
        if (!send_counts[r]) sends[r] = MPI_BYTE;
        if (!take_counts[r]) takes[r] = MPI_BYTE;
    }
    const char *names[TARGETS] = {"pario", "common", "alltoallw", "memcpy"};
    double *times = malloc(sizeof *times * TARGETS * (turns + 1));
    for (int turn = 0; turn <= turns; turn++)
        for (int i = 0; i < TARGETS; i++) {
            int which = turn % 2 ? TARGETS - 1 - i : i;
            double *own = which == 1 ? lent : source;
            int looks = turn == 0 || turn == turns;
            double generation = turn * TARGETS + which;
            if (looks) memset(target, 0xa5, want);
            each(&a, own, generation, 0);
            begin_together();
            switch (which) {
            case 0:
            case 1: check(redistribute_to(own, source_type, target, target_type, MPI_COMM_WORLD), "pario_redistribute_to"); break;
            case 2: check(MPI_Alltoallw(own, send_counts, zeros, sends, target, take_counts, zeros, takes, MPI_COMM_WORLD), "alltoallw"); break;
            default: memcpy(flat, own, have);
            }
            times[which * (turns + 1) + turn] = end_together();
            if (looks && which < 3) each(&b, target, generation, 1);
        }
    if (rank == 0)
        for (int which = 0; which < TARGETS; which++) {
            double *own = times + which * (turns + 1), first = own[0];
            qsort(own + 1, turns, sizeof *own, ascending);
            printf("%s %ld %.0f %s %.9f %.9f %.9f\n", name, common_run(&a, &b), edge * (double)edge * (three ? edge : 1) * 8,
                   names[which], own[1], own[1 + turns / 2], first);
        }
    fflush(stdout);
    for (int r = 0; r < size; r++) {
        if (send_counts[r]) MPI_Type_free(&sends[r]);
        if (take_counts[r]) MPI_Type_free(&takes[r]);
    }
    MPI_Type_free(&source_type), MPI_Type_free(&target_type);
    check(((int (*)(void *))give_back)(lent), "pario_free");
    free(source), free(target), free(flat), free(times);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 5 || size > MOST) fail("usage: redistribute SYNC MIB TURNS PAIR...", 0);
    *(void **)&redistribute_to = dlsym(RTLD_DEFAULT, "pario_redistribute_to");
    *(void **)&allocate = dlsym(RTLD_DEFAULT, "pario_alloc");
    *(void **)&give_back = dlsym(RTLD_DEFAULT, "pario_free");
    if (!redistribute_to || !allocate || !give_back) fail("libpario_mpiio is not loaded", 0);
    meet(argv[1]);
    for (int i = 4; i < argc; i++) pair(argv[i], atol(argv[2]), atoi(argv[3]));
    MPI_Finalize();
    return 0;
}
