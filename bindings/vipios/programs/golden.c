/* The golden cases of the source through descriptors of C; then random nestings against a list of bytes. */
#define _GNU_SOURCE
#include "check.h"

static void is(Access_Desc *desc, int extent, int actual) {
    int found_extent = -1, found_actual = -1;
    OK(ViPIOS_Fill_access_desc(desc, &found_extent, &found_actual));
    CHECK(found_extent == extent && found_actual == actual);
}

static int place(const Access_Desc *desc, int offset) {
    int position = -1;
    OK(ViPIOS_Get_absolute_byte_position(desc, offset, &position));
    return position;
}

#define PLACES(desc, ...) \
    do { \
        const int those[] = {__VA_ARGS__}; \
        int at; \
        for (at = 0; at < (int)(sizeof those / sizeof *those); at++) CHECK(place(desc, at) == those[at]); \
    } while (0)

static void descriptors(void) {
    DESC(g1, 0, 3, 2, 1, NULL, 0);
    basic_block g2_blocks[2] = {{0, 3, 2, 1, NULL, 0, 0}, {7, 3, 5, 2, NULL, 0, 0}};
    Access_Desc g2 = {2, g2_blocks, 0};
    DESC(g3_inner, 0, 2, 5, 5, NULL, 0);
    DESC(g3, 0, 3, 2, 20, &g3_inner, 0);
    DESC(g4_inner, 0, 2, 5, 5, NULL, 0);
    DESC(g4, 0, 3, 2, 15, &g4_inner, 0);
    DESC(with_skip, 1, 3, 2, 3, NULL, 2);
    is(&g1, 8, 6);
    PLACES(&g1, 0, 1, 3, 4, 6, 7, 8, 9, 11);
    is(&g2, 34, 21);
    PLACES(&g2, 0, 1, 3, 4, 6, 7, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 29, 30, 31, 32, 33);
    is(&g3, 130, 60);
    CHECK(g3_block.sub_count == 15 && g3_block.sub_actual == 10 && g3_inner_block.sub_count == 1);
    CHECK(place(&g3, 23) == 53 && place(&g3, 143) == 313);
    is(&g4, 120, 60);
    PLACES(&g4, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 25, 26, 27, 28, 29, 45);
    CHECK(place(&g4, 59) == 119);
    /* The offset in front of each block, the gap between repetitions only, the skip once behind all. */
    is(&with_skip, 15, 6);
    PLACES(&with_skip, 1, 2, 6, 7, 11, 12, 16, 17);
}

/* What an access through a descriptor, once, reads of a file whose byte i is i. */
static void shows(int fid, const Access_Desc *desc, int actual, const int *first, int count) {
    int i;
    unsigned char read[2000];
    YES(ViPIOS_Seek(fid, 0, VIPIOS_SEEK_SET));
    OK(ViPIOS_Read_struct(fid, read, 0, desc, 0, -1));
    CHECK(count_of(fid) == actual && position_of(fid) == actual);
    for (i = 0; i < count; i++) CHECK(read[i] == (unsigned char)first[i]);
    for (i = 0; i < actual; i++) CHECK(read[i] == (unsigned char)place(desc, i));
}

static void accesses(void) {
    /* G5: coordinates (2,0) of A(14,17) INTEGER, (CYCLIC(3), BLOCK) onto 3x4. */
    DESC(g5_inner, 24, 1, 12, 0, NULL, 20);
    DESC(g5, 0, 1, 5, 0, &g5_inner, 672);
    const int g5_first[] = {24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 80, 81, 82, 83, 84, 85, 86, 87, 88};
    /* G6: coordinates (1,1). */
    basic_block g6_blocks[2] = {{12, 1, 12, 0, NULL, 0, 0}, {24, 1, 8, 0, NULL, 0, 0}};
    Access_Desc g6_inner = {2, g6_blocks, 0};
    DESC(g6, 280, 1, 5, 0, &g6_inner, 392);
    DESC(g10, 0, 10, 2 * 4, 8 * 4, NULL, 0);
    DESC(g11, 0, 25, 4, 4, NULL, 0);
    static int items[200], got[60];
    const int ten[10] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
    unsigned char bytes[1000];
    int i, fid = open_here("/golden", READ_WRITE);
    for (i = 0; i < 1000; i++) bytes[i] = (unsigned char)i;
    YES(ViPIOS_Write(fid, bytes, 1000, 0));
    is(&g5, 952, 60);
    shows(fid, &g5, 60, g5_first, 21);
    is(&g6, 952, 100);
    shows(fid, &g6, 100, NULL, 0);
    for (i = 0; i < 200; i++) items[i] = i;
    YES(ViPIOS_Write(fid, items, sizeof items, 0));
    YES(ViPIOS_Seek(fid, 0, VIPIOS_SEEK_SET));
    OK(ViPIOS_Read_struct(fid, got, 40, &g10, 0, -1));
    CHECK(!memcmp(got, ten, sizeof ten) && position_of(fid) == 40);
    /* A place counts what is shown, from the displacement on, and leaves the pointer alone. */
    OK(ViPIOS_Read_struct(fid, got, 8, &g10, 4, 8));
    CHECK(got[0] == 11 && got[1] == 12 && position_of(fid) == 40);
    OK(ViPIOS_Read_struct(fid, got, 100, &g11, 200, 0));
    for (i = 0; i < 25; i++) CHECK(got[i] == 50 + 2 * i);
    /* The pointer is in bytes shown; the end is behind the last of them. */
    YES(ViPIOS_Seek_struct(fid, 8, VIPIOS_SEEK_SET, &g10));
    YES(ViPIOS_Seek_struct(fid, 4, VIPIOS_SEEK_CUR, &g10));
    OK(ViPIOS_Read_struct(fid, got, 4, &g10, 0, -1));
    CHECK(got[0] == 11 && position_of(fid) == 16);
    OK(ViPIOS_File_set_size(fid, 11 * 4));
    YES(ViPIOS_Seek_struct(fid, -4, VIPIOS_SEEK_END, &g10));
    CHECK(position_of(fid) == 8);
    OK(ViPIOS_Read_struct(fid, got, 40, &g10, 0, -1));
    CHECK(count_of(fid) == 4 && got[0] == 10 && Vipios_IOState(fid)->is_end_of_file);
    YES(ViPIOS_Close(fid));
}

static uint64_t seed;

static int64_t below(int64_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)n);
}

#define MOST 3000

/* The bytes of a descriptor in their order, with its extent. */
typedef struct {
    int64_t places[MOST];
    int count;
    int64_t extent;
} bytes_listed;

static Access_Desc64 descs[8];
static basic_block64 blocks[8][3];
static int used;

/* A random descriptor; moves may go back if `back`. Too large ones are made again by the caller. */
static Access_Desc64 *random_descriptor(int depth, int back, bytes_listed *listed) {
    int mine = used++, n, b;
    int64_t at = 0;
    Access_Desc64 *desc = &descs[mine];
    desc->no_blocks = below(4);
    desc->basics = blocks[mine];
    desc->skip = below(6);
    listed->count = 0;
    for (b = 0; b < desc->no_blocks; b++) {
        basic_block64 *block = &blocks[mine][b];
        bytes_listed unit;
        int64_t r, c;
        memset(block, 0, sizeof *block);
        block->offset = below(7) - (back ? 3 : 0);
        block->repeat = below(4);
        block->count = below(4);
        block->stride = below(8) - (back ? 2 : 0);
        block->sub_count = block->sub_actual = 77; /* results, which no call reads */
        unit.count = 1;
        unit.extent = 1;
        unit.places[0] = 0;
        if (depth > 0 && used < 8 && below(2)) block->subtype = random_descriptor(depth - 1, back, &unit);
        at += block->offset;
        for (r = 0; r < block->repeat; r++) {
            if (r > 0) at += block->stride;
            for (c = 0; c < block->count; c++) {
                for (n = 0; n < unit.count; n++)
                    if (listed->count < MOST) listed->places[listed->count++] = at + unit.places[n];
                at += unit.extent;
            }
        }
    }
    listed->extent = at + desc->skip;
    return desc;
}

static int64_t place_of(const bytes_listed *listed, int64_t k) {
    return listed->places[k % listed->count] + k / listed->count * listed->extent;
}

static void random_nestings(int cases) {
    static bytes_listed listed;
    static unsigned char plain[60000], read[60000], memory[4 * MOST];
    int fid = open_here("/random", READ_WRITE), done, tries = 0, twice = 0, scattered = 0;
    for (done = 0; done < cases; tries++) {
        int64_t extent, actual, position, displacement, at, len, k, size;
        int back = below(3) == 0, fits = 1, repeats = 0, answer, forward = 1;
        Access_Desc64 *desc;
        used = 0;
        desc = random_descriptor(3, back, &listed);
        if (listed.count >= MOST) continue;
        CHECK(tries < 100 * cases);
        OK(ViPIOS_Fill_access_desc64(desc, &extent, &actual));
        CHECK(extent == listed.extent && actual == listed.count);
        displacement = below(40);
        if (listed.count == 0) {
            OK(ViPIOS_Read_struct64(fid, NULL, 0, desc, displacement, 0));
            FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Get_absolute_byte_position64(desc, 0, &position));
            FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct64(fid, memory, 1, desc, displacement, 0));
            continue;
        }
        for (k = 0; k < 3 * listed.count; k++) {
            OK(ViPIOS_Get_absolute_byte_position64(desc, k, &position));
            CHECK(position == place_of(&listed, k));
        }
        at = below(2 * listed.count);
        len = 1 + below(2 * listed.count);
        memset(read, 0, sizeof read);
        for (k = at; k < at + len; k++) {
            position = displacement + place_of(&listed, k);
            if (position < 0 || position >= (int64_t)sizeof plain - 100) fits = 0;
            else if (read[position]++) repeats = 1;
            if (k > at && place_of(&listed, k) < place_of(&listed, k - 1)) forward = 0;
        }
        if (!fits) continue;
        done++;
        twice += repeats;
        scattered += !forward;
        size = (int64_t)sizeof plain - below(20000);
        for (k = 0; k < size; k++) plain[k] = (unsigned char)below(256);
        OK(ViPIOS_File_set_size64(fid, size));
        YES(ViPIOS_Write64(fid, plain, size, 0));
        YES(ViPIOS_Seek64(fid, at, VIPIOS_SEEK_SET));
        memset(memory, 0xee, sizeof memory);
        OK(ViPIOS_Read_struct64(fid, memory, len, desc, displacement, below(2) ? -1 : at));
        OK(ViPIOS_File_get_count64(fid, &actual));
        for (k = 0; k < len; k++) {
            position = displacement + place_of(&listed, at + k);
            if (position >= size) break;
            CHECK(memory[k] == plain[position]);
        }
        CHECK(actual == k);
        for (; k < len && forward; k++) CHECK(memory[k] == 0xee);
        /* Written and read back: what lies between is as it was. */
        for (k = 0; k < len; k++) memory[k] = (unsigned char)below(256);
        answer = ViPIOS_Write_struct64(fid, memory, len, desc, displacement, at);
        if (repeats) {
            CHECK(answer == -VIPIOS_ERR_INVALID_ARGUMENT);
        } else {
            CHECK(answer == 0);
            for (k = 0; k < len; k++) {
                position = displacement + place_of(&listed, at + k);
                for (; size <= position; size++) plain[size] = 0;
                plain[position] = memory[k];
            }
        }
        YES(ViPIOS_Read64(fid, read, sizeof read, 0));
        OK(ViPIOS_File_get_count64(fid, &actual));
        CHECK(actual == size && !memcmp(read, plain, (size_t)size));
    }
    CHECK(cases < 50 || (twice > 0 && scattered > 0));
    YES(ViPIOS_Close(fid));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    seed = seed * 2 + 1;
    descriptors();
    YES(ViPIOS_Connect(0));
    accesses();
    random_nestings(argc > 3 ? atoi(argv[3]) : 60);
    YES(ViPIOS_Disconnect());
    return end();
}
