/* New files through MPI_File_*: every process writes its transfers of a file that was not there, writes them again,
 * closes, opens and reads; Pario and the MPI library's own implementation, one after the other, and a copy in memory.
 *
 *   fresh SYNC PATTERN TRANSFER COUNT HOW PLEDGE SEED TARGET=PATH...
 *
 * SYNC is a file for the barrier. Each process has COUNT transfers of TRANSFER bytes, a multiple of 8; the PATTERN says where:
 *
 *   sequential    0 0 0 1 1 1     one after the other, each process a part of the file
 *   interleaved   0 1 0 1 0 1     the processes take turns
 *   random        1 0 0 1 1 0     drawn with SEED, and in any order
 *
 * HOW is indep or coll. PLEDGE is `none`, or `sync`: then a write ends with MPI_File_sync, and nothing but writes is
 * timed. The target `memcpy` has no path. A line for each step of each target, in seconds of all processes together:
 *
 *   TARGET open|new|again|close|reopen|reopened -|write|read SECONDS
 *
 * Memory of all transfers lies side by side, and every one has bytes of its own place and generation. What was
 * read is compared, the last write too, and the size of the file. Reopened files are read as the next process wrote
 * them, so that nobody reads what it still has at hand. together.h comes before this text.
 */
static const char *pattern;
static size_t transfer, count;
static MPI_Offset *own, *neighbours; /* where transfers are: of this process, of the next one */
static char *source, *copied;
static int together, pledged;

static uint64_t mixed(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t drawn;

static uint64_t draw(uint64_t below) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (drawn >> 33) % below;
}

/* Who has which transfers of the file, in order. */
static uint32_t *deal(void) {
    size_t all = count * size;
    uint32_t *order = malloc(all * sizeof *order);
    for (size_t i = 0; i < all; i++) order[i] = i;
    if (!strcmp(pattern, "random"))
        for (size_t i = all; i > 1; i--) {
            size_t j = draw(i);
            uint32_t other = order[j];
            order[j] = order[i - 1], order[i - 1] = other;
        }
    else if (strcmp(pattern, "sequential") && strcmp(pattern, "interleaved"))
        fail("unknown pattern", 0);
    return order;
}

static MPI_Offset *places_of(const uint32_t *order, int rank) {
    MPI_Offset *places = malloc(count * sizeof *places);
    for (size_t k = 0; k < count; k++) {
        size_t at = strcmp(pattern, "sequential") ? k * size + rank : rank * count + k;
        places[k] = (MPI_Offset)order[at] * transfer;
    }
    return places;
}

static uint64_t word(MPI_Offset place, int generation) {
    return mixed((uint64_t)place + ((uint64_t)generation << 56));
}

static void fill(int generation) {
    for (size_t k = 0; k < count; k++) {
        uint64_t *words = (uint64_t *)(source + k * transfer);
        for (size_t i = 0; i < transfer / 8; i++) words[i] = word(own[k] + 8 * i, generation);
    }
}

static void compare(const char *target, const char *step, const MPI_Offset *places, int generation) {
    for (size_t k = 0; k < count; k++) {
        uint64_t *words = (uint64_t *)(copied + k * transfer);
        for (size_t i = 0; i < transfer / 8; i++)
            if (words[i] != word(places[k] + 8 * i, generation)) {
                fprintf(stderr, "%s: %s: rank %d: wrong bytes at %lld\n", target, step, rank,
                        (long long)(places[k] + 8 * i));
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
}

static void say(const char *target, const char *step, const char *op, double seconds) {
    if (rank == 0) printf("%s %s %s %.9f\n", target, step, op, seconds);
}

static double moved(MPI_File file, const MPI_Offset *places, int writes) {
    begin_together();
    for (size_t k = 0; k < count; k++) {
        char *memory = (writes ? source : copied) + k * transfer;
        MPI_Status status;
        int code, bytes;
        if (writes)
            code = together ? MPI_File_write_at_all(file, places[k], memory, (int)transfer, MPI_BYTE, &status)
                            : MPI_File_write_at(file, places[k], memory, (int)transfer, MPI_BYTE, &status);
        else
            code = together ? MPI_File_read_at_all(file, places[k], memory, (int)transfer, MPI_BYTE, &status)
                            : MPI_File_read_at(file, places[k], memory, (int)transfer, MPI_BYTE, &status);
        check(code, writes ? "write" : "read");
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (bytes != (int)transfer) fail("a short access", 0);
    }
    if (writes && pledged) check(MPI_File_sync(file), "MPI_File_sync");
    return end_together();
}

static void write_and_say(const char *target, MPI_File file, const char *step, int generation) {
    fill(generation);
    say(target, step, "write", moved(file, own, 1));
}

/* Reads and compares; a step without a name is not told. */
static void read_and_say(const char *target, MPI_File file, const char *step, const MPI_Offset *places, int generation) {
    memset(copied, 0xa5, count * transfer);
    double seconds = moved(file, places, 0);
    if (step) say(target, step, "read", seconds);
    compare(target, step ? step : "the end", places, generation);
}

static void files(const char *target, const char *path) {
    MPI_File file;
    begin_together();
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file), path);
    say(target, "open", "-", end_together());
    write_and_say(target, file, "new", 1);
    if (!pledged) read_and_say(target, file, "new", own, 1);
    write_and_say(target, file, "again", 2);
    read_and_say(target, file, pledged ? NULL : "again", own, 2);
    begin_together();
    check(MPI_File_close(&file), "MPI_File_close");
    say(target, "close", "-", end_together());
    begin_together();
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file), path);
    say(target, "reopen", "-", end_together());
    if (!pledged) {
        read_and_say(target, file, "reopened", neighbours, 2);
        write_and_say(target, file, "reopened", 3);
    }
    read_and_say(target, file, NULL, own, pledged ? 2 : 3);
    MPI_Offset bytes;
    check(MPI_File_get_size(file, &bytes), "MPI_File_get_size");
    if (bytes != (MPI_Offset)(count * size * transfer)) fail("the size of the file is wrong", 0);
    check(MPI_File_close(&file), "MPI_File_close");
}

static void memory(const char *target) {
    fill(0);
    for (int turn = 0; turn < 2; turn++) {
        begin_together();
        for (size_t k = 0; k < count; k++) memcpy(copied + k * transfer, source + k * transfer, transfer);
        double seconds = end_together();
        if (turn) say(target, "again", "write", seconds);
    }
    compare(target, "copy", own, 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 9 || size > 64) fail("usage: fresh SYNC PATTERN TRANSFER COUNT HOW PLEDGE SEED TARGET=PATH...", 0);
    meet(argv[1]);
    pattern = argv[2];
    transfer = strtoul(argv[3], NULL, 10);
    count = strtoul(argv[4], NULL, 10);
    together = !strcmp(argv[5], "coll");
    pledged = !strcmp(argv[6], "sync");
    drawn = strtoul(argv[7], NULL, 10);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    uint32_t *order = deal();
    own = places_of(order, rank);
    neighbours = places_of(order, (rank + 1) % size);
    free(order);
    source = malloc(count * transfer);
    copied = malloc(count * transfer);
    /* both are there before anybody's time begins */
    memset(source, 1, count * transfer);
    memset(copied, 1, count * transfer);
    for (int i = 8; i < argc; i++) {
        char *equal = strchr(argv[i], '=');
        if (!equal) fail("a target is NAME=PATH", 0);
        *equal = 0;
        if (equal[1]) files(argv[i], equal + 1);
        else memory(argv[i]);
    }
    MPI_Finalize();
    return 0;
}
