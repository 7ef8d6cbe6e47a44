/* Random programs: datatypes, views and operations of every kind, on a file of Pario and on a file of the host's
 * own MPI-IO, and by hand on an image of the file.
 *
 *   random [ROUNDS]       PARIO_SEED=N repeats a run, PARIO_ROUND=N one round of it
 *   CONFORMANCE_PREFIX    what names of Pario's files begin with
 *   CONFORMANCE_HOST      a directory for the host's files; without it only the image judges
 *   PARIO_HOST_ALONE=1    leaves Pario out; PARIO_VERBOSE=1 tells where the known bugs of the host show,
 *                         PARIO_TRACE=1 each operation before it begins
 *
 * The image decides. Every operation compares bytes of the file, all bytes of the buffer (those that nobody asked
 * for as well), the counts of the status, error classes, positions and sizes.
 *
 * Rounds are of two classes. In tame ones the host's own implementation does the same on a file of its own, and
 * whatever either does otherwise than the image fails, but for what `is_host_bug` names. The MPIs' own
 * implementations crash, hang or go wrong on some of what the standard allows: collective accesses of no elements,
 * reads at the end, memory in descending order, types that begin before or behind their origin. In the other
 * rounds all that happens, and the image judges alone.
 *
 * What the standard leaves open is not done: ranks write disjoint bytes or one after the other, memory that is
 * read into does not overlap, and after a short read nobody asks where the pointer is.
 */
#include "typemap.h"

enum { ARENA = 1 << 17, MIDDLE = ARENA / 2, IMAGE = 1 << 22, STEPS = 14, TAME_SIZE = 1 << 20 };

static unsigned char *image; /* the file, on every rank */
static long long image_size;
static unsigned long long seed;
static long round_number;
static int step_number, host_differs, operations, tame_rounds;
static char history[4000];

typedef struct {
    MPI_File files[2]; /* Pario's, the host's */
    int first, count; /* which of them take part */
    int tame;
    long long disp;
    Type *etype, *filetype;
    enum { ANY, SAME, DISJOINT } kind;
} Both;

static void note(const char *format, ...) {
    va_list arguments;
    size_t used = strlen(history);
    va_start(arguments, format);
    if (used < sizeof history)
        vsnprintf(history + used, sizeof history - used, format, arguments);
    va_end(arguments);
    if (getenv("PARIO_TRACE")) {
        printf("%d: PARIO_ROUND=%ld%s\n", rank, round_number, history + used);
        fflush(stdout);
    }
}

/* What the hosts do otherwise than the standard and this program knows of. */
enum { NEGATIVE_OFFSET = 1, OVERLAPPING_READ };
static int is_host_bug(int bug) {
#ifdef OPEN_MPI
    /* OMPIO does not look at offsets: a negative one goes to preadv(2), whose error it prints and forgets.
     * In a collective read of regions that overlap among ranks it leaves parts of a buffer as they were or zero
     * (seed 1, round 28 with 3 ranks). */
    return bug == NEGATIVE_OFFSET || bug == OVERLAPPING_READ;
#else
    (void)bug;
    return 0;
#endif
}

/* A deviation from the image, of Pario or of the host; `bug`: what it is if the host does it, or 0. */
static void differs_by(int bug, int who, const char *format, ...) {
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (who == 1 && is_host_bug(bug)) {
        if (getenv("PARIO_VERBOSE"))
            printf("# a bug of the host: PARIO_ROUND=%ld step %d rank %d: %s%s\n", round_number, step_number, rank, why, strrchr(history, '|'));
        host_differs++;
        return;
    }
    complain("random.c", 0, "PARIO_SEED=%llu PARIO_ROUND=%ld step %d: %s%s\n  %s", seed, round_number, step_number, who == 1 ? "the MPI's own implementation: " : "", why, history);
}
#define differs(who, ...) differs_by(0, who, __VA_ARGS__)

/* The file offset of byte k of what a view shows. */
static long long file_offset(const Both *both, long long k) {
    const Type *type = both->filetype;
    long long tile = k / type->bytes, rest = k % type->bytes;
    int i;
    for (i = 0; i < type->count; i++) {
        if (rest < type->items[i].bytes)
            return both->disp + tile * type->extent + type->items[i].at + rest;
        rest -= type->items[i].bytes;
    }
    return -1;
}

/* Offsets in the arena of all bytes of `count` of a memory type, in order. */
static long long memory_bytes(const Type *type, int count, long long *at) {
    long long used = 0;
    int c, k, b;
    for (c = 0; c < count; c++)
        for (k = 0; k < type->count; k++)
            for (b = 0; b < type->items[k].bytes; b++)
                at[used++] = MIDDLE + c * type->extent + type->items[k].at + b;
    return used;
}

static int overlaps(const long long *at, long long count) {
    static unsigned char taken[ARENA];
    long long i;
    memset(taken, 0, sizeof taken);
    for (i = 0; i < count; i++)
        if (taken[at[i]]++)
            return 1;
    return 0;
}

static void sync_both(Both *both) {
    int w;
    for (w = both->first; w < both->count; w++)
        MPI_File_sync(both->files[w]);
    barrier();
    for (w = both->first; w < both->count; w++)
        MPI_File_sync(both->files[w]);
}

/* What all ranks wrote goes into everybody's image. */
static void merge(const long long *offsets, const unsigned char *bytes, long long count) {
    int mine = (int)count, i, *counts = malloc((size_t)size * sizeof(int)), *starts = malloc((size_t)size * sizeof(int)), total = 0;
    long long *all_offsets, k;
    unsigned char *all_bytes;
    MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (i = 0; i < size; i++) {
        starts[i] = total;
        total += counts[i];
    }
    all_offsets = malloc((size_t)total * sizeof *all_offsets + 1);
    all_bytes = malloc((size_t)total + 1);
    MPI_Allgatherv(offsets, mine, MPI_LONG_LONG, all_offsets, counts, starts, MPI_LONG_LONG, MPI_COMM_WORLD);
    MPI_Allgatherv(bytes, mine, MPI_BYTE, all_bytes, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
    for (k = 0; k < total; k++) {
        if (all_offsets[k] >= IMAGE)
            continue;
        image[all_offsets[k]] = all_bytes[k];
        if (all_offsets[k] >= image_size)
            image_size = all_offsets[k] + 1;
    }
    free(counts);
    free(starts);
    free(all_offsets);
    free(all_bytes);
}

static void set_view(Both *both, Random *shared, Random *own) {
    Type *leaf = chance(shared, 40) ? basic(MPI_BYTE, "byte") : any_basic(shared);
    int w, code, kind = below(shared, 3), in_file = both->tame ? TAME : IN_FILE, deepest = both->tame ? 2 : 3;
    both->kind = kind == 0 ? ANY : kind == 1 ? SAME : DISJOINT;
    free_type(both->etype);
    free_type(both->filetype);
    if (chance(shared, 25)) {
        both->etype = random_type(shared, leaf, in_file, 1);
        free_type(leaf);
    } else
        both->etype = leaf;
    if (both->kind == ANY) {
        both->filetype = random_type(own, both->etype, in_file, between(own, 1, deepest));
        both->disp = between(own, 0, 300);
    } else {
        both->filetype = random_type(shared, both->etype, in_file, between(shared, 1, deepest));
        both->disp = between(shared, 0, 300);
    }
    if (both->kind == DISJOINT && size > 1) {
        /* Tiles take turns: rank r has every size-th one. */
        Type *tile = both->filetype, *spread = new_type();
        long long width = tile->to > tile->extent ? tile->to : tile->extent;
        MPI_Type_create_resized(tile->handle, 0, (MPI_Aint)(width * size), &spread->handle);
        MPI_Type_commit(&spread->handle);
        add_block(spread, tile, 0, 1);
        say(spread, "resized(0,%lld,%s)", width * size, tile->text);
        finish(spread);
        free_type(tile);
        both->filetype = spread;
        both->disp += rank * width;
    }
    note(" | view %d: %lld %s of %s", both->kind, both->disp, both->filetype->text, both->etype->text);
    for (w = both->first; w < both->count; w++) {
        code = MPI_File_set_view(both->files[w], both->disp, both->etype->handle, both->filetype->handle, "native", MPI_INFO_NULL);
        if (code != MPI_SUCCESS)
            differs(w, "set_view: %s", text_of(code));
    }
}

/* The kinds of access. */
enum { AT, OWN, SHARED };
enum { BLOCKING, NONBLOCKING, COLLECTIVE, NB_COLLECTIVE, SPLIT };
static const char *const positions[] = {"at", "own", "shared"};
static const char *const ways[] = {"blocking", "nonblocking", "collective", "nb-collective", "split"};

#define PICK(read_call, write_call) (writes ? (write_call) : (read_call))
static int access_file(MPI_File f, int writes, int position, int way, MPI_Offset at, void *buf, int n, MPI_Datatype t, MPI_Status *s) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code, after;
    switch (position * 10 + way) {
    case AT * 10 + BLOCKING: return PICK(MPI_File_read_at(f, at, buf, n, t, s), MPI_File_write_at(f, at, buf, n, t, s));
    case AT * 10 + COLLECTIVE: return PICK(MPI_File_read_at_all(f, at, buf, n, t, s), MPI_File_write_at_all(f, at, buf, n, t, s));
    case AT * 10 + SPLIT:
        code = PICK(MPI_File_read_at_all_begin(f, at, buf, n, t), MPI_File_write_at_all_begin(f, at, buf, n, t));
        after = PICK(MPI_File_read_at_all_end(f, buf, s), MPI_File_write_at_all_end(f, buf, s));
        return code ? code : after;
    case OWN * 10 + BLOCKING: return PICK(MPI_File_read(f, buf, n, t, s), MPI_File_write(f, buf, n, t, s));
    case OWN * 10 + COLLECTIVE: return PICK(MPI_File_read_all(f, buf, n, t, s), MPI_File_write_all(f, buf, n, t, s));
    case OWN * 10 + SPLIT:
        code = PICK(MPI_File_read_all_begin(f, buf, n, t), MPI_File_write_all_begin(f, buf, n, t));
        after = PICK(MPI_File_read_all_end(f, buf, s), MPI_File_write_all_end(f, buf, s));
        return code ? code : after;
    case SHARED * 10 + BLOCKING: return PICK(MPI_File_read_shared(f, buf, n, t, s), MPI_File_write_shared(f, buf, n, t, s));
    case SHARED * 10 + COLLECTIVE:
    case SHARED * 10 + NB_COLLECTIVE: return PICK(MPI_File_read_ordered(f, buf, n, t, s), MPI_File_write_ordered(f, buf, n, t, s));
    case SHARED * 10 + SPLIT:
        code = PICK(MPI_File_read_ordered_begin(f, buf, n, t), MPI_File_write_ordered_begin(f, buf, n, t));
        after = PICK(MPI_File_read_ordered_end(f, buf, s), MPI_File_write_ordered_end(f, buf, s));
        return code ? code : after;
    case AT * 10 + NONBLOCKING: code = PICK(MPI_File_iread_at(f, at, buf, n, t, &request), MPI_File_iwrite_at(f, at, buf, n, t, &request)); break;
    case AT * 10 + NB_COLLECTIVE: code = PICK(MPI_File_iread_at_all(f, at, buf, n, t, &request), MPI_File_iwrite_at_all(f, at, buf, n, t, &request)); break;
    case OWN * 10 + NONBLOCKING: code = PICK(MPI_File_iread(f, buf, n, t, &request), MPI_File_iwrite(f, buf, n, t, &request)); break;
    case OWN * 10 + NB_COLLECTIVE: code = PICK(MPI_File_iread_all(f, buf, n, t, &request), MPI_File_iwrite_all(f, buf, n, t, &request)); break;
    default: code = PICK(MPI_File_iread_shared(f, buf, n, t, &request), MPI_File_iwrite_shared(f, buf, n, t, &request)); break;
    }
    if (code != MPI_SUCCESS)
        return code;
    return MPI_Wait(&request, s);
}

static long long common(long long a, long long b) { return b ? common(b, a % b) : a; }

static void transfer(Both *both, Random *shared, Random *own) {
    static unsigned char arenas[3][ARENA];
    static long long at[ARENA];
    int writes = chance(shared, 55), position = below(shared, 3), way = below(shared, 5), w, code, idle = 0, turn, turns, count, k;
    long long total, unit, offset, moved, i, base[2] = {0, 0}, *targets;
    Type *leaf, *memory = NULL;
    unsigned char *sent;
    if (position == SHARED && both->kind != SAME)
        position = OWN; /* one pointer needs one view */
    if (both->tame && writes && both->kind != DISJOINT && position != SHARED)
        way = way % 2; /* alone, one after the other */
    /* A memory type that fits into the arena, with a whole number of etypes. */
    if (!both->etype->is_basic)
        leaf = basic(MPI_BYTE, "byte");
    else if (both->etype->bytes == 1)
        leaf = any_basic(own);
    else
        leaf = basic(both->etype->handle, both->etype->text);
    for (k = 0; k < 30; k++) {
        free_type(memory);
        memory = random_type(own, leaf, both->tame ? TAME : MEMORY, between(own, 1, both->tame ? 2 : 3));
        count = between(own, both->tame, 3);
        total = count * memory->bytes;
        unit = both->etype->bytes;
        if (total % unit) {
            count *= (int)(unit / common(unit, memory->bytes));
            total = count * memory->bytes;
        }
        if (total > 6000 || (both->tame && total == 0))
            continue;
        if (count && memory->count && (MIDDLE + memory->from + (memory->extent < 0 ? (count - 1) * memory->extent : 0) < 0
            || MIDDLE + memory->to + (memory->extent > 0 ? (count - 1) * memory->extent : 0) > ARENA))
            continue;
        memory_bytes(memory, count, at);
        if (writes || !overlaps(at, total))
            break;
    }
    if (k == 30) {
        free_type(memory);
        memory = random_type(own, leaf, MEMORY, 0);
        count = (int)(unit / common(unit, memory->bytes));
        total = memory_bytes(memory, count, at);
    }
    /* Writes of ranks that overlap go one by one: the others bring nothing. */
    turns = 1;
    if ((writes && both->kind != DISJOINT && position != SHARED) || (position == SHARED && (way == BLOCKING || way == NONBLOCKING)))
        turns = size;
    if (turns > 1 && way != BLOCKING && way != NONBLOCKING) {
        idle = rank != below(shared, size);
        turns = 1;
    }
    if (idle)
        count = 0, total = 0;
    offset = below(own, 40);
    operations++;
    note(" | %s %s %s at %lld: %d of %s", writes ? "write" : "read", positions[position], ways[way], offset, count, memory->text);
    for (turn = 0; turn < turns; turn++) {
        int active = turns == 1 || turn == rank;
        long long start = offset, expected = 0, got_size;
        for (w = both->first; active && w < both->count && position != AT; w++) {
            MPI_Offset where = -1;
            if (position == OWN) {
                MPI_File_get_position(both->files[w], &where);
                start = where;
            } else {
                MPI_File_get_position_shared(both->files[w], &where);
                start = where;
            }
            base[w] = where;
        }
        if (active && both->count - both->first == 2 && position != AT && base[0] != base[1])
            differs(1, "%s pointer is %lld, the host's %lld", positions[position], base[0], base[1]);
        if (position != AT)
            start = base[both->first];
        if (position == SHARED && turns == 1) {
            /* Ordered: ranks before this one come first. */
            long long mine = total / both->etype->bytes, before = 0;
            barrier(); /* nobody moves it before all have looked */
            MPI_Exscan(&mine, &before, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
            if (rank)
                start += before;
        }
        targets = malloc((size_t)total * sizeof *targets + 1);
        sent = malloc((size_t)total + 1);
        if (active) {
            for (i = 0; i < total; i++)
                targets[i] = file_offset(both, start * both->etype->bytes + i);
            for (w = 0; w < 3; w++)
                for (i = 0; i < ARENA; i++)
                    arenas[w][i] = writes ? pattern(i, (int)(seed + (unsigned long long)round_number * 100 + (unsigned)step_number * 7 + (unsigned)rank)) : 0xA5;
            for (i = 0; i < total; i++) {
                sent[i] = arenas[2][at[i]];
                if (!writes && targets[i] < image_size) {
                    arenas[2][at[i]] = image[targets[i]];
                    expected++;
                }
            }
            if (writes)
                expected = total;
            for (w = both->first; w < both->count; w++) {
                MPI_Status status;
                MPI_Offset where = -1;
                memset(&status, 0, sizeof status);
                code = access_file(both->files[w], writes, position, way, offset, arenas[w] + MIDDLE, count, memory->handle, &status);
                if (code != MPI_SUCCESS) {
                    differs(w, "%s: %s", writes ? "write" : "read", text_of(code));
                    continue;
                }
                moved = count_of(&status, MPI_BYTE);
                if (moved != expected)
                    differs(w, "status tells %lld bytes, not %lld", moved, expected);
                else if (memory->bytes > 0) {
                    int items = count_of(&status, memory->handle), elements = -1, wanted = expected % memory->bytes ? MPI_UNDEFINED : (int)(expected / memory->bytes);
                    if (items != wanted)
                        differs(w, "get_count is %d, not %d", items, wanted);
#ifdef OPEN_MPI /* MPICH's own stops the program for some constructors */
                    MPI_Get_elements(&status, memory->handle, &elements);
#else
                    MPI_Get_elements(&status, leaf->handle, &elements);
#endif
                    if (expected % leaf->bytes == 0 && elements != expected / leaf->bytes)
                        differs(w, "get_elements is %d, not %lld", elements, expected / leaf->bytes);
                }
                if (memcmp(arenas[w], arenas[2], ARENA) != 0) {
                    for (i = 0; arenas[w][i] == arenas[2][i]; i++) {}
                    differs_by(!writes && way >= COLLECTIVE && size > 1 && both->kind != DISJOINT ? OVERLAPPING_READ : 0, w, "byte %lld of the buffer is %d, not %d", i - MIDDLE, arenas[w][i], arenas[2][i]);
                }
                if (position == OWN && expected == total) {
                    MPI_File_get_position(both->files[w], &where);
                    if (where != start + total / both->etype->bytes)
                        differs(w, "position %lld, not %lld", (long long)where, start + total / both->etype->bytes);
                }
            }
        }
        if (writes) {
            sync_both(both);
            merge(targets, sent, active ? total : 0);
        }
        /* After a short read the pointers need not agree: put them somewhere. */
        if (!writes && position == OWN)
            for (w = both->first; w < both->count; w++)
                MPI_File_seek(both->files[w], (start + total / both->etype->bytes) % 50, MPI_SEEK_SET);
        free(targets);
        free(sent);
        if (position == SHARED) {
            barrier();
            if (!writes || way == NB_COLLECTIVE) {
                int to = below(shared, 30);
                for (w = both->first; w < both->count; w++)
                    MPI_File_seek_shared(both->files[w], to, MPI_SEEK_SET);
            }
        }
        barrier();
        (void)got_size;
    }
    free_type(memory);
    free_type(leaf);
}

static void control(Both *both, Random *shared, Random *own) {
    MPI_Offset value[2] = {0, 0};
    long long to, wanted;
    int w;
    operations++;
    switch (below(shared, 5)) {
    case 0:
        to = both->tame ? TAME_SIZE + below(shared, 1000) : below(shared, 1500);
        note(" | set_size %lld", to);
        for (w = both->first; w < both->count; w++)
            if (MPI_File_set_size(both->files[w], to) != MPI_SUCCESS)
                differs(w, "set_size failed");
        if (to < image_size)
            memset(image + to, 0, (size_t)(image_size - to));
        image_size = to;
        break;
    case 1:
        to = below(shared, 2500);
        note(" | preallocate %lld", to);
        for (w = both->first; w < both->count; w++)
            if (MPI_File_preallocate(both->files[w], to) != MPI_SUCCESS)
                differs(w, "preallocate failed");
        if (to > image_size)
            image_size = to;
        break;
    case 2:
        to = below(own, 60);
        note(" | byte_offset %lld", to);
        wanted = file_offset(both, to * both->etype->bytes);
        for (w = both->first; w < both->count; w++) {
            MPI_File_get_byte_offset(both->files[w], to, &value[w]);
            if (value[w] != wanted)
                differs(w, "byte offset %lld, not %lld", (long long)value[w], wanted);
        }
        break;
    case 3:
        to = below(own, 60);
        note(" | seek %lld", to);
        for (w = both->first; w < both->count; w++) {
            MPI_File_seek(both->files[w], to, MPI_SEEK_SET);
            MPI_File_seek(both->files[w], -(to / 2), MPI_SEEK_CUR);
            MPI_File_get_position(both->files[w], &value[w]);
            if (value[w] != to - to / 2)
                differs(w, "position %lld after a seek, not %lld", (long long)value[w], to - to / 2);
            if (MPI_File_seek(both->files[w], -5000, MPI_SEEK_CUR) == MPI_SUCCESS)
                differs(w, "a seek to before the file succeeded");
            MPI_File_seek(both->files[w], to, MPI_SEEK_SET);
        }
        break;
    default: {
        /* Errors: classes as the standard has them. */
        MPI_Status status;
        char byte;
        int kind = below(shared, 4), code, class_wanted = kind == 0 ? MPI_ERR_ARG : kind == 1 ? MPI_ERR_COUNT : MPI_ERR_TYPE;
        note(" | error %d", kind);
        for (w = both->first; w < both->count; w++) {
            code = kind == 0 ? MPI_File_read_at(both->files[w], -1, &byte, (int)both->etype->bytes, MPI_BYTE, &status)
                 : kind == 1 ? MPI_File_write_at(both->files[w], 0, &byte, -1, MPI_BYTE, &status)
                             : MPI_File_read_at(both->files[w], 0, &byte, 1, MPI_DATATYPE_NULL, &status);
            if (code == MPI_SUCCESS)
                differs_by(kind == 0 ? NEGATIVE_OFFSET : 0, w, "an access with a wrong argument succeeded");
            else if (class_of(code) != class_wanted)
                differs_by(kind == 0 ? NEGATIVE_OFFSET : 0, w, "error class %d, not %d: %s", class_of(code), class_wanted, text_of(code));
        }
    }
    }
    sync_both(both);
    for (w = both->first; w < both->count; w++) {
        MPI_File_get_size(both->files[w], &value[w]);
        if (value[w] != image_size)
            differs(w, "the file has %lld bytes, not %lld", (long long)value[w], image_size);
    }
    barrier();
}

static void compare_file(Both *both, const char *const *names) {
    int w;
    for (w = both->first; w < both->count; w++) {
        MPI_File file;
        MPI_Offset length = -1;
        MPI_Status status;
        unsigned char *bytes;
        long long i;
        if (MPI_File_open(MPI_COMM_SELF, names[w], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
            differs(w, "the file cannot be opened again");
            continue;
        }
        MPI_File_get_size(file, &length);
        if (length != image_size)
            differs(w, "at the end %lld bytes, not %lld", (long long)length, image_size);
        bytes = calloc(1, (size_t)image_size + 1);
        MPI_File_read_at(file, 0, bytes, (int)image_size, MPI_BYTE, &status);
        for (i = 0; i < image_size && bytes[i] == image[i]; i++) {}
        if (i < image_size)
            differs(w, "at the end byte %lld is %d, not %d", i, bytes[i], image[i]);
        free(bytes);
        MPI_File_close(&file);
    }
}

static void one_round(void) {
    Random shared = {seed * 1000003ull + (unsigned long long)round_number}, own;
    char names[2][600];
    const char *const both_names[2] = {names[0], names[1]}, *host = getenv("CONFORMANCE_HOST");
    Both both;
    int w, code;
    memset(&both, 0, sizeof both);
    next_random(&shared);
    own.state = next_random(&shared) ^ ((unsigned long long)rank + 1) * 0xD1B54A32D192ED03ull;
    both.tame = host && (getenv("PARIO_HOST_ALONE") || chance(&shared, 50));
    tame_rounds += both.tame;
    both.count = both.tame ? 2 : 1;
    both.first = both.tame && getenv("PARIO_HOST_ALONE");
    snprintf(names[0], sizeof names[0], "%s", file_name("random"));
    snprintf(names[1], sizeof names[1], "%s/random", host ? host : "");

    memset(image, 0, (size_t)image_size);
    image_size = 0;
    history[0] = 0;
    step_number = 0;
    if (rank == 0)
        for (w = both.first; w < both.count; w++)
            MPI_File_delete(names[w], MPI_INFO_NULL);
    barrier();
    for (w = both.first; w < both.count; w++) {
        code = MPI_File_open(MPI_COMM_WORLD, names[w], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &both.files[w]);
        if (code != MPI_SUCCESS) {
            differs(0, "open of %s: %s", names[w], text_of(code));
            return;
        }
    }
    if (chance(&shared, 30))
        for (w = both.first; w < both.count; w++)
            MPI_File_set_atomicity(both.files[w], 1);
    if (both.tame) {
        for (w = both.first; w < both.count; w++)
            MPI_File_set_size(both.files[w], TAME_SIZE);
        image_size = TAME_SIZE;
    }
    set_view(&both, &shared, &own);
    for (step_number = 1; step_number <= STEPS && !case_failed; step_number++) {
        int any, roll = below(&shared, 100);
        if (roll < 12)
            set_view(&both, &shared, &own);
        else if (roll < 30)
            control(&both, &shared, &own);
        else
            transfer(&both, &shared, &own);
        /* One that failed takes the others along. */
        MPI_Allreduce(&case_failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any)
            break;
    }
    for (w = both.first; w < both.count; w++)
        MPI_File_close(&both.files[w]);
    barrier();
    if (rank == 0)
        compare_file(&both, both_names);
    barrier();
    if (rank == 0)
        for (w = both.first; w < both.count; w++)
            MPI_File_delete(names[w], MPI_INFO_NULL);
    free_type(both.etype);
    free_type(both.filetype);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 100, first = 0;
    int failed = 0, differs_all = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    case_name = "random";
    image = calloc(1, IMAGE);
    seed = getenv("PARIO_SEED") ? strtoull(getenv("PARIO_SEED"), NULL, 10) : 1;
    if (getenv("PARIO_ROUND")) {
        first = atol(getenv("PARIO_ROUND"));
        rounds = first + 1;
    }
    if (rank == 0)
        printf("PARIO_SEED=%llu, %ld rounds of up to %d operations, %d ranks\n", seed, rounds - first, STEPS, size);
    for (round_number = first; round_number < rounds && !failed; round_number++) {
        one_round();
        MPI_Allreduce(&case_failed, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (case_failed) {
        printf("FAIL random: %s\n", case_why);
        fflush(stdout);
    }
    MPI_Reduce(&host_differs, &differs_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&operations, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d operations in %ld rounds, %d of them beside the MPI's own implementation, which showed known bugs in %d places\n", all, round_number - first, tame_rounds, differs_all);
        if (!failed)
            printf("ok random\n");
    }
    free(image);
    MPI_Finalize();
    return failed != 0;
}
