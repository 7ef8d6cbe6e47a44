/* Arrays of Fortran, as pario.h takes memory: what stands between the module `pario` and the C interface.
 *
 * - An array comes with its descriptor (ISO_Fortran_binding.h), so sections are read and written where they lie, without a copy.
 *   Exceptions, which pack: the shared pointer and the end of the file, whose place is known only with the bytes.
 * - Neighbouring memory goes as bytes; other memory as a pattern. Patterns are kept by thread, by shape, for the next access.
 * - Nothing here keeps a reference to an array but operations beside the program, as pario.h says.
 *
 * Left to others: what verbs mean (pario.h), texts of Fortran (pario.f90).
 */
#include <ISO_Fortran_binding.h>
#include <stdlib.h>
#include <string.h>

#include "pario.h"

/* What an access is: add them up. The module has the same numbers. */
enum {
    WRITES = 1,
    BESIDE = 2,
    AT_POINTER = 4,
    AT_SHARED_POINTER = 8,
    AT_END = 16,
    TOGETHER = 32
};

/* Patterns kept by a thread. */
enum { KEPT = 8 };

/* The shape of memory: blocks of bytes, repeated with strides, innermost first. What is behind its levels means nothing. */
typedef struct shape {
    size_t block;
    int levels;
    int64_t count[CFI_MAX_RANK];
    int64_t stride[CFI_MAX_RANK];
} shape;

typedef struct kept_pattern {
    shape of;
    pario_pattern *pattern;
} kept_pattern;

static _Thread_local kept_pattern kept[KEPT];
static _Thread_local unsigned next_kept;

/* The shape of an array, and its bytes. 0 for an array whose last extent nobody knows. */
static int shape_of(const CFI_cdesc_t *array, shape *found, size_t *bytes) {
    found->levels = 0;
    found->block = array->elem_len;
    *bytes = array->elem_len;
    for (int i = 0; i < array->rank; i++) {
        CFI_index_t extent = array->dim[i].extent, stride = array->dim[i].sm;
        if (extent < 0)
            return 0;
        *bytes *= (size_t)extent;
        if (extent == 1)
            continue;
        if (found->levels == 0 && stride == (CFI_index_t)found->block) {
            found->block *= (size_t)extent;
            continue;
        }
        found->count[found->levels] = extent;
        found->stride[found->levels] = stride;
        found->levels++;
    }
    return 1;
}

/* Whether shapes are the same. */
static int is_same(const shape *one, const shape *other) {
    if (one->block != other->block || one->levels != other->levels)
        return 0;
    for (int i = 0; i < one->levels; i++)
        if (one->count[i] != other->count[i] || one->stride[i] != other->stride[i])
            return 0;
    return 1;
}

/* The pattern of a shape; it stays the thread's. */
static int pattern_of(const shape *of, pario_pattern **pattern) {
    for (int i = 0; i < KEPT; i++) {
        if (kept[i].pattern && is_same(&kept[i].of, of)) {
            *pattern = kept[i].pattern;
            return PARIO_OK;
        }
    }
    pario_pattern *inner = NULL;
    int code = pario_pattern_bytes((int64_t)of->block, &inner);
    for (int i = 0; code == PARIO_OK && i < of->levels; i++) {
        pario_pattern *outer = NULL;
        code = pario_pattern_hvector(of->count[i], 1, of->stride[i], inner, &outer);
        pario_pattern_free(inner);
        inner = outer;
    }
    if (code != PARIO_OK)
        return code;
    kept_pattern *place = &kept[next_kept++ % KEPT];
    if (place->pattern)
        pario_pattern_free(place->pattern);
    place->of = *of;
    place->pattern = inner;
    *pattern = inner;
    return PARIO_OK;
}

/* Copies an array to neighbouring bytes, or back. */
static void pack(const shape *of, int level, char *memory, char **packed, int is_back) {
    if (level == 0) {
        if (is_back)
            memcpy(memory, *packed, of->block);
        else
            memcpy(*packed, memory, of->block);
        *packed += of->block;
        return;
    }
    for (int64_t i = 0; i < of->count[level - 1]; i++)
        pack(of, level - 1, memory + i * of->stride[level - 1], packed, is_back);
}

/* Says why an array is refused: the library has the text. */
static int refuse(pario_file *file) {
    uint64_t moved;
    (void)moved;
    return pario_read_at(file, 0, NULL, (size_t)-1, &moved);
}

/* Accesses at the shared pointer and at the end of the file. */
static int access_packed(
    int verb, pario_file *file, const shape *of, char *base, size_t bytes, uint64_t *moved) {
    char *buffer = base, *at;
    int code;
    if (of->levels > 0 && bytes > 0) {
        buffer = malloc(bytes);
        if (!buffer)
            return PARIO_ERR_NO_MEMORY;
        at = buffer;
        if (verb & WRITES)
            pack(of, of->levels, base, &at, 0);
    }
    if (verb & AT_END) {
        uint64_t offset;
        code = pario_append(file, buffer, bytes, &offset);
        *moved = offset;
    } else if (verb & WRITES) {
        code = pario_write_shared(file, buffer, bytes, moved);
    } else {
        /* What is not read stays as it is. */
        at = buffer;
        if (buffer != base)
            pack(of, of->levels, base, &at, 0);
        code = pario_read_shared(file, buffer, bytes, moved);
        at = buffer;
        if (buffer != base && code == PARIO_OK)
            pack(of, of->levels, base, &at, 1);
    }
    if (buffer != base)
        free(buffer);
    return code;
}

/* Memory that is neighbouring bytes. */
static int access_bytes(
    int verb, pario_file *file, pario_team *team, uint64_t offset, void *base, size_t bytes, uint64_t *moved,
    pario_request **request) {
    switch (verb) {
    case 0: return pario_read_at(file, offset, base, bytes, moved);
    case WRITES: return pario_write_at(file, offset, base, bytes, moved);
    case BESIDE: return pario_iread_at(file, offset, base, bytes, request);
    case BESIDE | WRITES: return pario_iwrite_at(file, offset, base, bytes, request);
    case AT_POINTER: return pario_read(file, base, bytes, moved);
    case AT_POINTER | WRITES: return pario_write(file, base, bytes, moved);
    case AT_POINTER | BESIDE: return pario_iread(file, base, bytes, request);
    case AT_POINTER | BESIDE | WRITES: return pario_iwrite(file, base, bytes, request);
    case TOGETHER: return pario_read_at_all(file, team, offset, base, bytes, moved);
    case TOGETHER | WRITES: return pario_write_at_all(file, team, offset, base, bytes, moved);
    case TOGETHER | BESIDE: return pario_iread_at_all(file, team, offset, base, bytes, request);
    case TOGETHER | BESIDE | WRITES: return pario_iwrite_at_all(file, team, offset, base, bytes, request);
    default: return PARIO_ERR_INTERNAL;
    }
}

/* Memory that a pattern describes. */
static int access_pattern(
    int verb, pario_file *file, pario_team *team, uint64_t offset, void *base, pario_pattern *pattern, uint64_t *moved,
    pario_request **request) {
    switch (verb) {
    case 0: return pario_read_pattern_at(file, offset, base, pattern, 1, moved);
    case WRITES: return pario_write_pattern_at(file, offset, base, pattern, 1, moved);
    case BESIDE: return pario_iread_pattern_at(file, offset, base, pattern, 1, request);
    case BESIDE | WRITES: return pario_iwrite_pattern_at(file, offset, base, pattern, 1, request);
    case AT_POINTER: return pario_read_pattern(file, base, pattern, 1, moved);
    case AT_POINTER | WRITES: return pario_write_pattern(file, base, pattern, 1, moved);
    case AT_POINTER | BESIDE: return pario_iread_pattern(file, base, pattern, 1, request);
    case AT_POINTER | BESIDE | WRITES: return pario_iwrite_pattern(file, base, pattern, 1, request);
    case TOGETHER: return pario_read_pattern_at_all(file, team, offset, base, pattern, 1, moved);
    case TOGETHER | WRITES: return pario_write_pattern_at_all(file, team, offset, base, pattern, 1, moved);
    case TOGETHER | BESIDE: return pario_iread_pattern_at_all(file, team, offset, base, pattern, 1, request);
    case TOGETHER | BESIDE | WRITES: return pario_iwrite_pattern_at_all(file, team, offset, base, pattern, 1, request);
    default: return PARIO_ERR_INTERNAL;
    }
}

/* Reads or writes an array, of any type, kind and rank. */
int pario_f_access(
    int verb, pario_file *file, pario_team *team, uint64_t offset, CFI_cdesc_t *array, uint64_t *moved,
    pario_request **request) {
    shape of;
    size_t bytes;
    pario_pattern *pattern;
    *moved = 0;
    if (!shape_of(array, &of, &bytes))
        return refuse(file);
    if (verb & (AT_SHARED_POINTER | AT_END))
        return access_packed(verb, file, &of, array->base_addr, bytes, moved);
    if (of.levels == 0 || bytes == 0)
        return access_bytes(verb, file, team, offset, array->base_addr, bytes, moved, request);
    int code = pattern_of(&of, &pattern);
    /* The other members wait for this one: it takes part, and is refused there. */
    if (code != PARIO_OK)
        return verb & TOGETHER ? access_pattern(verb, file, team, offset, array->base_addr, NULL, moved, request) : code;
    return access_pattern(verb, file, team, offset, array->base_addr, pattern, moved, request);
}

/* Reads or writes what an element of a layout has of an array that lies whole in memory. */
int pario_f_access_part(
    int verb, pario_file *file, pario_team *team, uint64_t offset, CFI_cdesc_t *array, pario_layout *layout,
    uint64_t element, const char *array_text, uint64_t *moved) {
    shape of;
    size_t bytes;
    pario_pattern *pattern = NULL;
    *moved = 0;
    if (!shape_of(array, &of, &bytes))
        return refuse(file);
    int code = pario_pattern_of_layout(layout, element, array_text, &pattern);
    if (code != PARIO_OK && !(verb & TOGETHER))
        return code;
    char *copy = NULL, *base = array->base_addr, *at;
    if (of.levels > 0 && bytes > 0) {
        /* A whole array that lies with gaps: through a copy, as gaps and parts have no common short description. */
        at = copy = malloc(bytes);
        if (!copy) {
            pario_pattern_free(pattern);
            return PARIO_ERR_NO_MEMORY;
        }
        pack(&of, of.levels, base, &at, 0);
    }
    code = access_pattern(verb, file, team, offset, copy ? copy : base, pattern, moved, NULL);
    if (pattern)
        pario_pattern_free(pattern);
    if (copy && code == PARIO_OK && !(verb & WRITES)) {
        at = copy;
        pack(&of, of.levels, base, &at, 1);
    }
    free(copy);
    return code;
}

/* Bytes of an array; 0 for one whose last extent nobody knows. */
uint64_t pario_f_bytes(CFI_cdesc_t *array) {
    shape of;
    size_t bytes;
    return shape_of(array, &of, &bytes) ? bytes : 0;
}

/* Bytes of an entry of an array. */
uint64_t pario_f_element_bytes(CFI_cdesc_t *array) { return array->elem_len; }

/* What a file holds that holds such an array: "f64[14,17]:fortran". shape replaces the extents if there is one. */
int pario_f_array_text(CFI_cdesc_t *array, int dimensions, const uint64_t *extents, char **text) {
    uint64_t own[CFI_MAX_RANK];
    int element = PARIO_BYTES;
    CFI_type_t type = array->type;
    if (type == CFI_type_int8_t) element = PARIO_I8;
    else if (type == CFI_type_int16_t) element = PARIO_I16;
    else if (type == CFI_type_int32_t) element = PARIO_I32;
    else if (type == CFI_type_int64_t) element = PARIO_I64;
    else if (type == CFI_type_float) element = PARIO_F32;
    else if (type == CFI_type_double) element = PARIO_F64;
    else if (type == CFI_type_float_Complex) element = PARIO_C64;
    else if (type == CFI_type_double_Complex) element = PARIO_C128;
    else if (type == CFI_type_Bool) element = PARIO_BOOL;
    if (dimensions < 0) {
        dimensions = array->rank;
        for (int i = 0; i < dimensions; i++)
            own[i] = array->dim[i].extent < 0 ? 0 : (uint64_t)array->dim[i].extent;
        extents = own;
    }
    return pario_array_text(element, array->elem_len, extents, (size_t)dimensions, PARIO_ORDER_FORTRAN, text);
}

/* Hints of a text such as "access_style=read_once,sequential;read_ahead=on"; the copy is to be freed. */
static char *hints_of(const char *text, pario_hint **hints, size_t *count) {
    size_t most = 1;
    *hints = NULL;
    *count = 0;
    if (!text || !*text)
        return NULL;
    for (const char *at = text; *at; at++)
        most += *at == ';';
    size_t length = strlen(text) + 1;
    char *copy = malloc(length);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    *hints = calloc(most, sizeof **hints);
    if (!*hints)
        return copy;
    for (char *at = copy, *end; at; at = end) {
        end = strchr(at, ';');
        if (end)
            *end++ = 0;
        while (*at == ' ')
            at++;
        if (!*at)
            continue;
        char *value = strchr(at, '=');
        if (value)
            *value++ = 0;
        (*hints)[*count].name = at;
        (*hints)[*count].value = value ? value : "";
        ++*count;
    }
    return copy;
}

/* A text that is given; null for an empty one. */
static const char *given(const char *text) { return text && *text ? text : NULL; }

int pario_f_connect(
    const char *url, const char *application, const char *hints, uint64_t rank, uint64_t processes, pario_client **client) {
    pario_connect_options how;
    pario_hint *list;
    PARIO_INIT(how);
    char *copy = hints_of(hints, &list, &how.hint_count);
    how.hints = list;
    how.application = given(application);
    how.rank = rank;
    how.processes = processes;
    int code = pario_connect(given(url), &how, client);
    free(list);
    free(copy);
    return code;
}

int pario_f_open(
    pario_client *client, pario_team *team, const char *path, int flags, const char *array, const char *layout,
    const char *hints, uint64_t clients, uint64_t shared_pointer, pario_file **file) {
    pario_open_options how;
    pario_hint *list;
    PARIO_INIT(how);
    char *copy = hints_of(hints, &list, &how.hint_count);
    how.hints = list;
    how.flags = flags;
    how.array = given(array);
    how.layout = given(layout);
    how.expected_clients = clients;
    how.shared_pointer = shared_pointer;
    int code = team ? pario_open_all(client, team, path, &how, file) : pario_open(client, path, &how, file);
    free(list);
    free(copy);
    return code;
}

int pario_f_create(
    pario_client *client, const char *path, const char *array, const char *layout, const char *hints, int *is_new) {
    pario_open_options how;
    pario_hint *list;
    PARIO_INIT(how);
    char *copy = hints_of(hints, &list, &how.hint_count);
    how.hints = list;
    how.array = given(array);
    how.layout = given(layout);
    int code = pario_create(client, path, &how, is_new);
    free(list);
    free(copy);
    return code;
}

int pario_f_set_hints(pario_file *file, pario_team *team, const char *hints) {
    pario_hint *list;
    size_t count;
    char *copy = hints_of(hints, &list, &count);
    int code = team ? pario_set_hints_all(file, team, list, count) : pario_set_hints(file, list, count);
    free(list);
    free(copy);
    return code;
}

/* Gives an array of one member to all. */
int pario_f_broadcast(pario_team *team, int root, CFI_cdesc_t *array) {
    shape of;
    size_t bytes;
    if (!shape_of(array, &of, &bytes))
        return PARIO_ERR_INVALID_ARGUMENT;
    if (of.levels == 0 || bytes == 0)
        return pario_team_broadcast(team, root, array->base_addr, bytes);
    char *copy = malloc(bytes), *at = copy;
    if (!copy)
        return PARIO_ERR_NO_MEMORY;
    pack(&of, of.levels, array->base_addr, &at, 0);
    int code = pario_team_broadcast(team, root, copy, bytes);
    at = copy;
    if (code == PARIO_OK)
        pack(&of, of.levels, array->base_addr, &at, 1);
    free(copy);
    return code;
}

int pario_f_keep_hint(pario_client *client, const char *path, const char *name, const char *value) {
    pario_hint hint = {name, value};
    return pario_keep_hints(client, path, &hint, 1, NULL, 0);
}

/* Moves a file into another layout, and waits. */
int pario_f_relayout(pario_client *client, const char *path, const char *layout) {
    pario_move *move = NULL;
    int code = pario_relayout(client, path, layout, NULL, &move);
    if (code != PARIO_OK)
        return code;
    code = pario_relayout_wait(move, NULL, NULL, NULL);
    pario_relayout_free(move);
    return code;
}

/* Copies an array to neighbouring bytes, or back: all of it, or as much as there is. 0 if its last extent is not known. */
int pario_f_copy(CFI_cdesc_t *array, char *bytes, int is_back) {
    shape of;
    size_t count;
    if (!shape_of(array, &of, &count))
        return PARIO_ERR_INVALID_ARGUMENT;
    if (count > 0)
        pack(&of, of.levels, array->base_addr, &bytes, is_back);
    return PARIO_OK;
}

/* Copies entries that lie in one order to those in another: entry i of the array is entry order[i], from 0 on, of the bytes. */
int pario_f_permute(CFI_cdesc_t *array, char *bytes, const int64_t *order, int64_t count, int is_back) {
    shape of;
    size_t all, width = array->elem_len;
    if (!shape_of(array, &of, &all) || of.levels > 0 || all != (size_t)count * width)
        return PARIO_ERR_INVALID_ARGUMENT;
    char *own = array->base_addr;
    for (int64_t i = 0; i < count; i++) {
        if (is_back)
            memcpy(own + (size_t)i * width, bytes + (size_t)order[i] * width, width);
        else
            memcpy(bytes + (size_t)order[i] * width, own + (size_t)i * width, width);
    }
    return PARIO_OK;
}

/* A view of groups of blocks: each begins at a byte and has so many blocks of so many bytes, so many bytes from start to start. It is
 * repeated after `period` bytes, from a displacement on. */
int pario_f_view_of_groups(
    int64_t groups, const int64_t *start, const int64_t *block, const int64_t *count, const int64_t *stride,
    int64_t period, uint64_t displacement, pario_view **view) {
    pario_pattern **parts = calloc((size_t)groups + 1, sizeof *parts), *whole = NULL, *tile = NULL;
    int64_t *ones = calloc((size_t)groups + 1, sizeof *ones);
    int code = parts && ones ? PARIO_OK : PARIO_ERR_NO_MEMORY;
    for (int64_t i = 0; code == PARIO_OK && i < groups; i++) {
        pario_pattern *one = NULL;
        ones[i] = 1;
        code = pario_pattern_bytes(block[i], &one);
        if (code == PARIO_OK)
            code = pario_pattern_hvector(count[i], 1, stride[i], one, &parts[i]);
        if (one)
            pario_pattern_free(one);
    }
    if (code == PARIO_OK)
        code = pario_pattern_struct((size_t)groups, ones, start, parts, &whole);
    if (code == PARIO_OK)
        code = pario_pattern_resized(0, period, whole, &tile);
    if (code == PARIO_OK)
        code = pario_view_of_pattern(tile, displacement, view);
    if (whole)
        pario_pattern_free(whole);
    if (tile)
        pario_pattern_free(tile);
    for (int64_t i = 0; parts && i < groups; i++)
        if (parts[i])
            pario_pattern_free(parts[i]);
    free(parts);
    free(ones);
    return code;
}

/* --- Data-parallel streams --- */

/* Opens a stream file; how many VPs this member has. */
int pario_f_stream_open(
    pario_client *client, pario_team *team, const char *path, const char *access, const char *shape_text,
    const char *distribution, size_t *count, pario_stream **stream) {
    pario_stream_options how;
    pario_stream_info info;
    PARIO_INIT(how);
    how.shape = given(shape_text);
    how.distribution = given(distribution);
    *count = 0;
    int code = pario_stream_open(client, team, path, access, &how, stream);
    if (code != PARIO_OK) return code;
    PARIO_INIT(info);
    code = pario_stream_about(*stream, &info);
    *count = (size_t)info.mine;
    return code;
}

/* Bytes of an entry of the last dimension, which lie together, and how far such entries are from each other. Whether so many are there. */
static int vps_of(CFI_cdesc_t *array, size_t count, size_t *stride, size_t *bytes) {
    size_t together = array->elem_len;
    CFI_rank_t last = array->rank, at;
    *stride = *bytes = 0;
    if (last-- < 1) return 0;
    for (at = 0; at < last; at++) {
        if (array->dim[at].extent > 1 && array->dim[at].sm != (CFI_index_t)together) return 0;
        together *= (size_t)array->dim[at].extent;
    }
    *bytes = together;
    *stride = count > 1 ? (size_t)array->dim[last].sm : together;
    return array->dim[last].extent == (CFI_index_t)count && (CFI_index_t)*stride >= (CFI_index_t)together;
}

/* Writes an array whose last dimension counts VPs. What does not fit is refused by the library, which tells it to the others. */
int pario_f_stream_write(pario_stream *stream, const uint8_t *active, CFI_cdesc_t *array, size_t count) {
    size_t stride, bytes;
    int fits = vps_of(array, count, &stride, &bytes);
    return fits ? pario_stream_write(stream, active, array->base_addr, stride, bytes)
                : pario_stream_write(stream, active, NULL, 1, SIZE_MAX);
}

/* Reads an array whose last dimension counts VPs. */
int pario_f_stream_read(pario_stream *stream, const uint8_t *active, CFI_cdesc_t *array, size_t count, uint64_t *counts) {
    size_t stride, bytes;
    int fits = vps_of(array, count, &stride, &bytes);
    return fits ? pario_stream_read(stream, active, array->base_addr, stride, bytes, counts)
                : pario_stream_read(stream, active, NULL, 1, SIZE_MAX, counts);
}

/* Bytes of an array that lies together, or so many that they are refused. */
static size_t bytes_together(CFI_cdesc_t *array) {
    size_t bytes = array->elem_len;
    CFI_rank_t at;
    for (at = 0; at < array->rank; at++) {
        if (array->dim[at].extent > 1 && array->dim[at].sm != (CFI_index_t)bytes) return SIZE_MAX;
        bytes *= (size_t)array->dim[at].extent;
    }
    return bytes;
}

/* Writes an array of one VP. */
int pario_f_vp_write(pario_vp *vp, CFI_cdesc_t *array) {
    return pario_vp_write(vp, array->base_addr, bytes_together(array));
}

/* Reads an array of one VP. */
int pario_f_vp_read(pario_vp *vp, CFI_cdesc_t *array, uint64_t *moved) {
    return pario_vp_read(vp, array->base_addr, bytes_together(array), moved);
}
