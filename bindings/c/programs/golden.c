/* The golden cases of ViPIOS through patterns, views and layouts; then random nestings against a list of bytes. */
#include "check.h"

static void close_to(pario_pattern *pattern, uint64_t size, int64_t length) {
    uint64_t bytes;
    int64_t start, extent;
    OK(pario_pattern_size(pattern, &bytes, &start, &extent));
    CHECK(bytes == size && extent == length && start == 0);
}

static void places(pario_pattern *pattern, const int64_t *expected, size_t count) {
    int64_t place;
    size_t i;
    for (i = 0; i < count; i++) {
        OK(pario_pattern_place(pattern, i, &place));
        CHECK(place == expected[i]);
    }
}

#define PLACES(pattern, ...) \
    do { \
        const int64_t those[] = {__VA_ARGS__}; \
        places(pattern, those, sizeof those / sizeof *those); \
    } while (0)

/* A descriptor: offset, repetitions of some of a unit with gaps between, and what is skipped at the end. */
static pario_pattern *descriptor(int64_t offset, int64_t repeat, int64_t count, int64_t gap, int64_t skip, pario_pattern *of) {
    pario_pattern *blocks, *placed, *whole;
    int64_t unit = 1, one = 1;
    if (of) OK(pario_pattern_size(of, NULL, NULL, &unit));
    OK(pario_pattern_hvector(repeat, count, count * unit + gap, of, &blocks));
    OK(pario_pattern_hindexed(1, &one, &offset, blocks, &placed));
    OK(pario_pattern_resized(0, offset + repeat * (count * unit + gap) - gap + skip, placed, &whole));
    OK(pario_pattern_free(blocks));
    OK(pario_pattern_free(placed));
    return whole;
}

static void vectors(void) {
    pario_pattern *g1, *second, *both, *inner, *outer, *two[2];
    const int64_t ones[2] = {1, 1}, at[2] = {0, 8};
    int64_t place;
    /* G1 */
    OK(pario_pattern_vector(3, 2, 3, NULL, &g1));
    close_to(g1, 6, 8);
    PLACES(g1, 0, 1, 3, 4, 6, 7);
    /* G2 */
    second = descriptor(7, 3, 5, 2, 0, NULL);
    two[0] = g1;
    two[1] = second;
    /* As in MPI, bounds that were set count before those that were not: they are set again. */
    OK(pario_pattern_struct(2, ones, at, two, &inner));
    OK(pario_pattern_resized(0, 34, inner, &both));
    OK(pario_pattern_free(inner));
    close_to(both, 21, 34);
    PLACES(both, 0, 1, 3, 4, 6, 7, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 29, 30, 31, 32, 33);
    /* G3 */
    inner = descriptor(0, 2, 5, 5, 0, NULL);
    outer = descriptor(0, 3, 2, 20, 0, inner);
    close_to(outer, 60, 130);
    OK(pario_pattern_place(outer, 23, &place));
    CHECK(place == 53);
    OK(pario_pattern_place(outer, 143, &place));
    CHECK(place == 313);
    OK(pario_pattern_free(outer));
    /* G4 */
    OK(pario_pattern_free(inner));
    OK(pario_pattern_vector(2, 5, 10, NULL, &inner));
    OK(pario_pattern_vector(3, 2, 3, inner, &outer));
    close_to(outer, 60, 120);
    PLACES(outer, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 25, 26, 27, 28, 29, 45);
    OK(pario_pattern_place(outer, 59, &place));
    CHECK(place == 119);
    OK(pario_pattern_free(outer));
    OK(pario_pattern_free(inner));
    OK(pario_pattern_free(both));
    OK(pario_pattern_free(second));
    OK(pario_pattern_free(g1));
}

static void distributions(void) {
    pario_distribution how[3];
    const uint64_t grid[2] = {3, 4}, cube[3] = {2, 2, 2}, square[2] = {2, 2};
    const char *array = "i32[14,17] order f";
    const uint64_t first[3] = {6, 5, 3}, second[4] = {5, 5, 5, 2}, of_darray[4] = {30, 20, 24, 16};
    uint64_t bytes, number;
    pario_layout *layout;
    pario_pattern *integer, *inner, *outer, *part;
    pario_view *view, *same;
    char *text;
    int i;
    /* G5: coordinates (2,0); the element of the layout and the descriptor show the same bytes. */
    memset(how, 0, sizeof how);
    how[0].kind = PARIO_CYCLIC;
    how[0].block = 3;
    how[1].kind = PARIO_BLOCK;
    OK(pario_layout_hpf(2, how, 2, grid, PARIO_ORDER_C, &layout));
    OK(pario_layout_text(layout, &text));
    CHECK(!strcmp(text, "(cyclic(3), block) onto 3x4"));
    pario_text_free(text);
    OK(pario_array_text(PARIO_I32, 0, (const uint64_t[]){14, 17}, 2, PARIO_ORDER_FORTRAN, &text));
    array = text;
    inner = descriptor(24, 1, 12, 0, 20, NULL);
    outer = descriptor(0, 1, 5, 0, 672, inner);
    close_to(outer, 60, 14 * 17 * 4);
    PLACES(outer, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 80);
    OK(pario_view_of_layout(layout, 8, array, 0, &view));
    OK(pario_view_of_pattern(outer, 0, &same));
    for (i = 0; i < 120; i++) {
        uint64_t a, b;
        OK(pario_view_to_file(view, i, &a));
        OK(pario_view_to_file(same, i, &b));
        CHECK(a == b);
    }
    OK(pario_view_free(view));
    OK(pario_view_free(same));
    OK(pario_pattern_free(outer));
    OK(pario_pattern_free(inner));
    /* G6: coordinates (1,1). */
    {
        pario_pattern *blocks[2];
        const int64_t ones[2] = {1, 1}, at[2] = {0, 24};
        blocks[0] = descriptor(12, 1, 12, 0, 0, NULL);
        blocks[1] = descriptor(24, 1, 8, 0, 0, NULL);
        OK(pario_pattern_struct(2, ones, at, blocks, &inner));
        OK(pario_pattern_free(blocks[0]));
        OK(pario_pattern_free(blocks[1]));
    }
    outer = descriptor(280, 1, 5, 0, 392, inner);
    close_to(outer, 100, 952);
    OK(pario_view_of_layout(layout, 5, array, 0, &view));
    OK(pario_view_of_pattern(outer, 0, &same));
    for (i = 0; i < 200; i++) {
        uint64_t a, b;
        OK(pario_view_to_file(view, i, &a));
        OK(pario_view_to_file(same, i, &b));
        CHECK(a == b);
    }
    OK(pario_view_free(view));
    OK(pario_view_free(same));
    OK(pario_pattern_free(outer));
    OK(pario_pattern_free(inner));
    /* G7 */
    OK(pario_layout_elements(layout, array, &number));
    CHECK(number == 12);
    for (i = 0; i < 12; i++) {
        OK(pario_view_of_layout(layout, i, array, 0, &view));
        OK(pario_view_bytes(view, 952, &bytes));
        CHECK(bytes == 4 * first[i / 4] * second[i % 4]);
        OK(pario_view_free(view));
    }
    pario_text_free(text);
    OK(pario_layout_free(layout));
    /* G8, as a datatype and as a layout. */
    OK(pario_pattern_bytes(4, &integer));
    memset(how, 0, sizeof how);
    how[0].kind = how[1].kind = PARIO_CYCLIC;
    how[0].block = how[1].block = 2;
    OK(pario_layout_hpf(2, how, 2, square, PARIO_ORDER_C, &layout));
    for (i = 0; i < 4; i++) {
        const int64_t shape[2] = {9, 10}, arguments[2] = {2, 2}, processes[2] = {2, 2};
        const int kinds[2] = {PARIO_CYCLIC, PARIO_CYCLIC};
        OK(pario_pattern_darray(4, i, 2, shape, kinds, arguments, processes, PARIO_ORDER_C, integer, &part));
        close_to(part, 4 * of_darray[i], 9 * 10 * 4);
        OK(pario_pattern_free(part));
        OK(pario_view_of_layout(layout, i, "i32[9,10]", 0, &view));
        OK(pario_view_bytes(view, 360, &bytes));
        CHECK(bytes == 4 * of_darray[i]);
        OK(pario_view_free(view));
    }
    OK(pario_layout_free(layout));
    /* G9 */
    memset(how, 0, sizeof how);
    how[0].kind = PARIO_BLOCK;
    how[1].kind = how[2].kind = PARIO_CYCLIC;
    how[0].block = 2;
    how[1].block = 3;
    how[2].block = 2;
    OK(pario_layout_hpf(3, how, 3, cube, PARIO_ORDER_C, &layout));
    for (i = 0; i < 8; i++) {
        const uint64_t sizes[3][2] = {{2, 2}, {3, 2}, {4, 2}};
        OK(pario_view_of_layout(layout, i, "u8[4,5,6]", 0, &view));
        OK(pario_view_bytes(view, 120, &bytes));
        CHECK(bytes == sizes[0][i / 4] * sizes[1][i / 2 % 2] * sizes[2][i % 2]);
        OK(pario_view_free(view));
    }
    OK(pario_layout_free(layout));
    OK(pario_pattern_free(integer));
}

static void accesses(pario_client *client) {
    static int items[200], got[100];
    const int ten[10] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
    pario_pattern *integer, *pattern;
    pario_view *view;
    pario_file *file = open_here(client, "/golden", READ_WRITE, NULL, "striped(64) over 2");
    uint64_t moved;
    int i;
    for (i = 0; i < 200; i++) items[i] = i;
    OK(pario_write_at(file, 0, items, sizeof items, NULL));
    OK(pario_pattern_bytes(sizeof(int), &integer));
    /* G10 */
    OK(pario_pattern_vector(10, 2, 10, integer, &pattern));
    OK(pario_view_of_pattern(pattern, 0, &view));
    OK(pario_apply_view(file, view));
    OK(pario_read(file, got, 10 * sizeof *got, &moved));
    CHECK(moved == 10 * sizeof *got && !memcmp(got, ten, sizeof ten));
    OK(pario_view_free(view));
    OK(pario_pattern_free(pattern));
    /* G11 */
    OK(pario_pattern_vector(25, 1, 2, integer, &pattern));
    OK(pario_view_of_pattern(pattern, 200, &view));
    OK(pario_apply_view(file, view));
    OK(pario_read(file, got, 25 * sizeof *got, &moved));
    for (i = 0; i < 25; i++) CHECK(got[i] == 50 + 2 * i);
    OK(pario_view_free(view));
    OK(pario_pattern_free(pattern));
    /* G12 */
    OK(pario_set_view(file, 0, NULL));
    OK(pario_pattern_vector(2, 5, 50, integer, &pattern));
    memset(got, 0xff, sizeof got);
    OK(pario_read_pattern_at(file, 100 * sizeof *got, got, pattern, 1, &moved));
    CHECK(moved == 10 * sizeof *got);
    for (i = 0; i < 100; i++) CHECK(got[i] == (i < 5 ? 100 + i : i >= 50 && i < 55 ? 55 + i : -1));
    OK(pario_write_pattern_at(file, 0, got, pattern, 1, &moved));
    OK(pario_read_at(file, 0, got, 12 * sizeof *got, NULL));
    for (i = 0; i < 12; i++) CHECK(got[i] == (i < 10 ? 100 + i : i));
    OK(pario_pattern_free(pattern));
    /* Memory that is gone through backwards, before and behind the place that is given. */
    OK(pario_pattern_hvector(5, 1, -2 * (int64_t)sizeof(int), integer, &pattern));
    memset(got, 0, sizeof got);
    OK(pario_read_pattern_at(file, 20 * sizeof *got, got + 8, pattern, 1, &moved));
    for (i = 0; i < 10; i++) CHECK(got[i] == (i % 2 ? 0 : 24 - i / 2));
    OK(pario_pattern_free(pattern));
    /* To be read into, no byte may be named twice. */
    OK(pario_pattern_hvector(3, 1, 2, integer, &pattern));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_read_pattern_at(file, 0, got, pattern, 1, NULL));
    OK(pario_write_pattern_at(file, 0, got, pattern, 1, &moved));
    CHECK(moved == 12);
    OK(pario_pattern_free(pattern));
    OK(pario_pattern_free(integer));
    OK(pario_close(file));
}

/* --- Random nestings --- */

static uint64_t seed;

static int64_t below(int64_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)n);
}

/* The bytes of a pattern in their order, with its extent. */
typedef struct {
    int64_t places[4096];
    int count;
    int64_t extent;
} bytes_listed;

static pario_pattern *random_descriptor(int depth, bytes_listed *listed) {
    int64_t offset = below(5), repeat = 1 + below(3), count = 1 + below(3), gap = below(7), skip = below(5);
    pario_pattern *inner = NULL, *made;
    bytes_listed unit;
    int64_t at = offset, r, c;
    int i;
    unit.count = 1;
    unit.extent = 1;
    unit.places[0] = 0;
    if (depth > 0) inner = random_descriptor(depth - 1, &unit);
    made = descriptor(offset, repeat, count, gap, skip, inner);
    if (inner) OK(pario_pattern_free(inner));
    listed->count = 0;
    for (r = 0; r < repeat; r++, at += gap)
        for (c = 0; c < count; c++, at += unit.extent)
            for (i = 0; i < unit.count; i++) listed->places[listed->count++] = at + unit.places[i];
    listed->extent = at - gap + skip;
    return made;
}

static void random_nestings(pario_client *client, int cases) {
    static bytes_listed listed;
    static unsigned char plain[40000], got[40000], memory[20000];
    pario_file *file = open_here(client, "/random", READ_WRITE, NULL, "striped(7) over 3");
    int n, i;
    for (n = 0; n < cases; n++) {
        pario_pattern *pattern = random_descriptor((int)below(3), &listed);
        pario_view *view;
        int64_t displacement = below(50), place;
        uint64_t moved, seen, bytes = (uint64_t)listed.count;
        close_to(pattern, bytes, listed.extent);
        for (i = 0; i < 2 * listed.count; i++) {
            int64_t expected = listed.places[i % listed.count] + i / listed.count * listed.extent;
            OK(pario_pattern_place(pattern, (uint64_t)i, &place));
            CHECK(place == expected);
        }
        /* A file through it as a view, twice around, against plain memory. */
        memset(plain, 0, sizeof plain);
        for (i = 0; i < (int)sizeof plain; i++) plain[i] = (unsigned char)below(256);
        OK(pario_set_view(file, 0, NULL));
        OK(pario_write_at(file, 0, plain, sizeof plain, NULL));
        if (2 * listed.extent + displacement < (int64_t)sizeof plain && 2 * bytes < sizeof memory) {
            OK(pario_view_of_pattern(pattern, (uint64_t)displacement, &view));
            OK(pario_apply_view(file, view));
            for (i = 0; i < 2 * listed.count; i++) memory[i] = (unsigned char)below(256);
            OK(pario_write_at(file, 0, memory, 2 * bytes, &moved));
            CHECK(moved == 2 * bytes);
            for (i = 0; i < 2 * listed.count; i++) {
                place = displacement + listed.places[i % listed.count] + i / listed.count * listed.extent;
                plain[place] = memory[i];
                OK(pario_view_to_file(view, (uint64_t)i, &seen));
                CHECK((int64_t)seen == place);
            }
            OK(pario_view_free(view));
            OK(pario_set_view(file, 0, NULL));
            OK(pario_read_at(file, 0, got, sizeof got, &moved));
            CHECK(moved == sizeof got && !memcmp(got, plain, sizeof got));
        }
        /* Memory through it as a description. */
        if (listed.extent < (int64_t)sizeof memory) {
            memset(memory, 0xee, sizeof memory);
            OK(pario_read_pattern_at(file, 3, memory, pattern, 1, &moved));
            CHECK(moved == bytes);
            for (i = 0; i < listed.count; i++) {
                CHECK(memory[listed.places[i]] == plain[3 + i]);
                memory[listed.places[i]] = 0xee;
            }
            for (i = 0; i < (int)sizeof memory; i++) CHECK(memory[i] == 0xee);
        }
        OK(pario_pattern_free(pattern));
    }
    OK(pario_close(file));
}

int main(int argc, char **argv) {
    pario_client *client;
    begin(argc, argv);
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    seed = seed * 2 + 1;
    vectors();
    distributions();
    client = connect_here();
    accesses(client);
    random_nestings(client, argc > 3 ? atoi(argv[3]) : 30);
    OK(pario_disconnect(client));
    return end();
}
