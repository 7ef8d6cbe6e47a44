/* Datatypes made at random together with what they mean: the type map as the standard defines it.
 *
 * A Type holds its basic elements one by one, in the order of its map. Bounds are asked of the MPI, as the
 * rules about alignment are its own; displacements are computed here and never asked for, so a file that
 * both an MPI and Pario get wrong is noticed. Plain on purpose.
 */
#ifndef PARIO_TYPEMAP_H
#define PARIO_TYPEMAP_H

#include "check.h"

enum { MOST_ITEMS = 1500, WIDEST = 12000 };

/* What a type is for. MEMORY: anything. IN_FILE: displacements ascend and do not overlap, as file types demand.
 * TAME: as in a file, and of the constructors and arguments that the MPIs' own implementations get right. */
enum { MEMORY, IN_FILE, TAME };

typedef struct { long long at; int bytes; } Item;
typedef struct {
    MPI_Datatype handle;
    int is_basic;
    long long low, extent, bytes, from, to; /* from and to: bounds of the bytes themselves */
    int count;
    Item *items;
    char text[600];
} Type;

/* A generator of its own, so that a seed means the same everywhere. */
typedef struct { uint64_t state; } Random;
static uint64_t next_random(Random *random) {
    uint64_t z = (random->state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
static int below(Random *random, int limit) { return limit <= 0 ? 0 : (int)(next_random(random) % (uint64_t)limit); }
static int between(Random *random, int from, int to) { return from + below(random, to - from + 1); }
static int chance(Random *random, int percent) { return below(random, 100) < percent; }

static void say(Type *type, const char *format, ...) {
    va_list arguments;
    size_t used = strlen(type->text);
    va_start(arguments, format);
    vsnprintf(type->text + used, sizeof type->text - used, format, arguments);
    va_end(arguments);
}

static Type *new_type(void) {
    Type *type = calloc(1, sizeof *type);
    type->handle = MPI_DATATYPE_NULL;
    return type;
}

static void free_type(Type *type) {
    if (!type)
        return;
    if (!type->is_basic && type->handle != MPI_DATATYPE_NULL)
        MPI_Type_free(&type->handle);
    free(type->items);
    free(type);
}

static void add_item(Type *type, long long at, int bytes) {
    if (type->count % 64 == 0)
        type->items = realloc(type->items, (size_t)(type->count + 64) * sizeof(Item));
    type->items[type->count].at = at;
    type->items[type->count++].bytes = bytes;
}

/* Adds `count` of `old`, one extent apart, from a displacement on. */
static void add_block(Type *type, const Type *old, long long at, int count) {
    int i, k;
    for (i = 0; i < count; i++)
        for (k = 0; k < old->count; k++)
            add_item(type, at + i * old->extent + old->items[k].at, old->items[k].bytes);
}

static Type *finish(Type *type) {
    MPI_Aint low, extent;
    int k;
    MPI_Type_get_extent(type->handle, &low, &extent);
    type->low = low;
    type->extent = extent;
    type->bytes = 0;
    for (k = 0; k < type->count; k++) {
        const Item *item = &type->items[k];
        type->bytes += item->bytes;
        if (k == 0 || item->at < type->from)
            type->from = item->at;
        if (k == 0 || item->at + item->bytes > type->to)
            type->to = item->at + item->bytes;
    }
    return type;
}

static Type *basic(MPI_Datatype handle, const char *name) {
    Type *type = new_type();
    int bytes;
    MPI_Type_size(handle, &bytes);
    type->handle = handle;
    type->is_basic = 1;
    add_item(type, 0, bytes);
    say(type, "%s", name);
    return finish(type);
}

static Type *any_basic(Random *random) {
    switch (below(random, 6)) {
    case 0: return basic(MPI_CHAR, "char");
    case 1: return basic(MPI_SHORT, "short");
    case 2: return basic(MPI_DOUBLE, "double");
    case 3: return basic(MPI_FLOAT, "float");
    case 4: return basic(MPI_LONG_LONG, "longlong");
    default: return basic(MPI_INT, "int");
    }
}

/* Where blocks of a file type may begin: ascending, apart. For memory: anywhere. */
static void ascending_positions(Random *random, int n, const int *lengths, int *at, int in_file) {
    int i, next = in_file == TAME ? 0 : below(random, 4);
    for (i = 0; i < n; i++) {
        at[i] = next;
        next += lengths[i] + (in_file == TAME) + below(random, 4);
    }
}

/* The constructors of tame types: contiguous, vector, hvector, indexed, struct, subarray, darray, resized. */
static const int tame_kinds[] = {0, 1, 2, 3, 7, 8, 10, 11};

/* One constructor over `old`, chosen at random. Null if it would become too large. `old` stays the caller's. */
static Type *construct(Random *random, const Type *old, int in_file) {
    Type *type = new_type();
    int n = between(random, chance(random, 12) ? 0 : 1, 4), i, d, kind = below(random, 12);
    int lengths[8], at[8], code = MPI_SUCCESS;
    MPI_Aint bytes_at[8];
    MPI_Datatype olds[8];
    if (in_file == TAME) {
        kind = tame_kinds[below(random, (int)(sizeof tame_kinds / sizeof *tame_kinds))];
        n = between(random, 1, 4);
        /* ROMIO takes indexed blocks of a type with holes for blocks without. */
        if (kind == 3 && old->bytes != old->extent)
            kind = 7;
    }
    /* The old type's own width: blocks of it further apart than this do not touch. */
    long long step = old->extent > 0 ? old->extent : 1;
    for (i = 0; i < n; i++) {
        lengths[i] = between(random, in_file != TAME && chance(random, 10) ? 0 : 1, 3);
        olds[i] = old->handle;
    }
    if (in_file)
        ascending_positions(random, n, lengths, at, in_file);
    else
        for (i = 0; i < n; i++)
            at[i] = between(random, -6, 10);
    for (i = 0; i < n; i++)
        bytes_at[i] = at[i] * step + (in_file ? 0 : between(random, -3, 3) * (old->count ? old->items[0].bytes : 1));
    switch (kind) {
    case 0:
        n = between(random, in_file == TAME, 5);
        say(type, "contiguous(%d,%s)", n, old->text);
        code = MPI_Type_contiguous(n, old->handle, &type->handle);
        add_block(type, old, 0, n);
        break;
    case 1: {
        int length = between(random, 1, 3), stride = in_file ? length + below(random, 4) : between(random, -5, 6);
        say(type, "vector(%d,%d,%d,%s)", n, length, stride, old->text);
        code = MPI_Type_vector(n, length, stride, old->handle, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, (long long)i * stride * old->extent, length);
        break;
    }
    case 2: {
        int length = between(random, 1, 3);
        long long stride = in_file ? step * (length + below(random, 3)) : step * between(random, -4, 5);
        say(type, "hvector(%d,%d,%lld,%s)", n, length, stride, old->text);
        code = MPI_Type_create_hvector(n, length, (MPI_Aint)stride, old->handle, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, i * stride, length);
        break;
    }
    case 3:
        say(type, "indexed(");
        for (i = 0; i < n; i++)
            say(type, "%d@%d,", lengths[i], at[i]);
        say(type, "%s)", old->text);
        code = MPI_Type_indexed(n, lengths, at, old->handle, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, (long long)at[i] * old->extent, lengths[i]);
        break;
    case 4:
        say(type, "hindexed(");
        for (i = 0; i < n; i++)
            say(type, "%d@%lld,", lengths[i], (long long)bytes_at[i]);
        say(type, "%s)", old->text);
        code = MPI_Type_create_hindexed(n, lengths, bytes_at, old->handle, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, bytes_at[i], lengths[i]);
        break;
    case 5:
    case 6: {
        int length = between(random, 1, 2);
        for (i = 0; i < n; i++)
            lengths[i] = length;
        if (in_file)
            ascending_positions(random, n, lengths, at, in_file);
        for (i = 0; i < n; i++)
            bytes_at[i] = at[i] * step;
        say(type, kind == 5 ? "indexed_block(%d:" : "hindexed_block(%d:", length);
        for (i = 0; i < n; i++)
            say(type, "%lld,", kind == 5 ? (long long)at[i] : (long long)bytes_at[i]);
        say(type, "%s)", old->text);
        code = kind == 5 ? MPI_Type_create_indexed_block(n, length, at, old->handle, &type->handle)
                         : MPI_Type_create_hindexed_block(n, length, bytes_at, old->handle, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, kind == 5 ? at[i] * old->extent : (long long)bytes_at[i], length);
        break;
    }
    case 7:
        say(type, "struct(");
        for (i = 0; i < n; i++)
            say(type, "%d@%lld,", lengths[i], (long long)bytes_at[i]);
        say(type, "%s)", old->text);
        code = MPI_Type_create_struct(n, lengths, bytes_at, olds, &type->handle);
        for (i = 0; i < n; i++)
            add_block(type, old, bytes_at[i], lengths[i]);
        break;
    case 8:
    case 9: {
        int dims = between(random, 1, 3), sizes[3], parts[3], starts[3], order = below(random, 2), index[3], total = 1, left;
        for (d = 0; d < dims; d++) {
            sizes[d] = between(random, 1, 4);
            parts[d] = between(random, 1, sizes[d]);
            starts[d] = below(random, sizes[d] - parts[d] + 1);
            total *= sizes[d];
        }
        say(type, "subarray%c(", order ? 'F' : 'C');
        for (d = 0; d < dims; d++)
            say(type, "%d+%d/%d,", starts[d], parts[d], sizes[d]);
        say(type, "%s)", old->text);
        code = MPI_Type_create_subarray(dims, sizes, parts, starts, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, old->handle, &type->handle);
        for (i = 0; i < total; i++) {
            int inside = 1;
            left = i;
            for (d = 0; d < dims; d++) {
                int k = order ? d : dims - 1 - d;
                index[k] = left % sizes[k];
                left /= sizes[k];
                inside &= index[k] >= starts[k] && index[k] < starts[k] + parts[k];
            }
            if (inside)
                add_block(type, old, (long long)i * old->extent, 1);
        }
        break;
    }
    case 10: {
        int dims = between(random, 1, 2), sizes[2], kinds[2], arguments[2], grid[2], procs = 1, me, order = below(random, 2), total = 1, coordinates[2], left;
        for (d = 0; d < dims; d++) {
            sizes[d] = between(random, 1, 6);
            grid[d] = between(random, 1, 3);
            kinds[d] = below(random, 3);
            kinds[d] = kinds[d] == 0 ? MPI_DISTRIBUTE_BLOCK : kinds[d] == 1 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
            if (kinds[d] == MPI_DISTRIBUTE_NONE)
                grid[d] = 1;
            arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
            if (kinds[d] == MPI_DISTRIBUTE_CYCLIC && chance(random, 60))
                arguments[d] = between(random, 1, 3);
            if (kinds[d] == MPI_DISTRIBUTE_BLOCK && chance(random, 40))
                arguments[d] = (sizes[d] + grid[d] - 1) / grid[d] + below(random, 2);
            procs *= grid[d];
            total *= sizes[d];
        }
        me = below(random, procs);
        left = me;
        for (d = dims - 1; d >= 0; d--) {
            coordinates[d] = left % grid[d];
            left /= grid[d];
        }
        say(type, "darray%c(%d/%d:", order ? 'F' : 'C', me, procs);
        for (d = 0; d < dims; d++)
            say(type, "%d:%d:%d:%d,", sizes[d], kinds[d], arguments[d], grid[d]);
        say(type, "%s)", old->text);
        code = MPI_Type_create_darray(procs, me, dims, sizes, kinds, arguments, grid, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, old->handle, &type->handle);
        for (i = 0; i < total; i++) {
            int mine = 1;
            left = i;
            for (d = 0; d < dims; d++) {
                int k = order ? d : dims - 1 - d, x = left % sizes[k], block;
                left /= sizes[k];
                if (kinds[k] == MPI_DISTRIBUTE_BLOCK) {
                    block = arguments[k] == MPI_DISTRIBUTE_DFLT_DARG ? (sizes[k] + grid[k] - 1) / grid[k] : arguments[k];
                    mine &= x / block == coordinates[k];
                } else if (kinds[k] == MPI_DISTRIBUTE_CYCLIC) {
                    block = arguments[k] == MPI_DISTRIBUTE_DFLT_DARG ? 1 : arguments[k];
                    mine &= x / block % grid[k] == coordinates[k];
                }
            }
            if (mine)
                add_block(type, old, (long long)i * old->extent, 1);
        }
        break;
    }
    default: {
        /* Other bounds. In a file the next one begins behind this one. */
        long long unit = old->count ? old->items[0].bytes : 1;
        long long low = in_file == TAME ? 0 : in_file ? -unit * below(random, 2) : unit * between(random, -3, 3);
        long long extent = in_file ? (old->to > old->extent ? old->to : old->extent) - (chance(random, 50) ? low : 0) + unit * below(random, 4)
                                   : unit * between(random, 0, 12);
        if (in_file && extent < old->to - old->from)
            extent = old->to - old->from;
        say(type, "resized(%lld,%lld,%s)", low, extent, old->text);
        code = MPI_Type_create_resized(old->handle, (MPI_Aint)low, (MPI_Aint)extent, &type->handle);
        add_block(type, old, 0, 1);
        break;
    }
    }
    if (code != MPI_SUCCESS) { /* Open MPI makes no arrays of types that are empty */
        type->handle = MPI_DATATYPE_NULL;
        free_type(type);
        return NULL;
    }
    finish(type);
    if (type->count > MOST_ITEMS || (type->count && (type->from < -WIDEST || type->to > WIDEST)) || type->extent > WIDEST || type->extent < -WIDEST) {
        free_type(type);
        return NULL;
    }
    return type;
}

/* Whether a map ascends without overlap, tiled as well: what a file type must do. */
static int is_file_type(const Type *type) {
    long long end = 0;
    int k;
    if (type->count == 0 || type->extent <= 0)
        return 0;
    for (k = 0; k < type->count; k++) {
        if (type->items[k].at < end)
            return 0;
        end = type->items[k].at + type->items[k].bytes;
    }
    return type->extent >= type->to - type->from;
}

/* A type of some depth over `leaf`, which stays the caller's. */
static Type *random_type(Random *random, const Type *leaf, int in_file, int depth) {
    Type *type = NULL;
    const Type *old = leaf;
    int tries = 0, level = 0;
    while (level < depth && tries++ < 20) {
        Type *made = construct(random, old, in_file);
        if (made && in_file && !is_file_type(made)) {
            free_type(made);
            made = NULL;
        }
        if (!made)
            continue;
        free_type(type);
        old = type = made;
        level++;
    }
    if (!type) {
        type = new_type();
        MPI_Type_dup(leaf->handle, &type->handle);
        say(type, "dup(%s)", leaf->text);
        add_block(type, leaf, 0, 1);
        finish(type);
    }
    MPI_Type_commit(&type->handle);
    return type;
}

#endif
