/* Data-parallel streams: everything that C does with them, by members that are threads. */
#define _GNU_SOURCE
#include "members.h"
#include <errno.h>

enum { VPS = 60 };

static pario_stream *open_stream(
    pario_client *client, pario_team *team, const char *path, const char *access, const char *shape,
    const char *distribution) {
    pario_stream_options how;
    pario_stream *stream;
    PARIO_INIT(how);
    how.shape = shape;
    how.distribution = distribution;
    OK(pario_stream_open(client, team, path, access, &how, &stream));
    return stream;
}

static size_t vps_of(pario_stream *stream, uint64_t *numbers) {
    pario_stream_info info;
    PARIO_INIT(info);
    OK(pario_stream_about(stream, &info));
    CHECK(info.vps == VPS && info.mine <= VPS);
    OK(pario_stream_vps(stream, numbers));
    return (size_t)info.mine;
}

static pario_stream_info counted(pario_stream *stream) {
    pario_stream_info info;
    PARIO_INIT(info);
    OK(pario_stream_about(stream, &info));
    return info;
}

/* --- What VPs write, by every way there is --- */

/* An elemental function, with the calls for one VP. */
static int write_one(pario_vp *vp, void *user) {
    uint64_t number, place;
    size_t local;
    const uint64_t *numbers = user;
    OK(pario_vp_about(vp, &number, &local));
    CHECK(numbers[local] == number);
    OK(pario_vp_puts(vp, "one "));
    OK(pario_vp_putc(vp, '1'));
    OK(pario_vp_printf(vp, " %d %s\n", (int)number, "printed"));
    OK(pario_vp_seek(vp, 0, PARIO_FROM_HERE, &place));
    CHECK(place == 8 + 24 + 2 + (uint64_t)snprintf(NULL, 0, "one 1 %d printed\n", (int)number));
    return 0;
}

/* And with a real FILE. */
static int print_one(pario_vp *vp, void *user) {
    FILE *file, *again;
    uint64_t number;
    (void)user;
    OK(pario_vp_about(vp, &number, NULL));
    OK(pario_vp_file(vp, &file));
    OK(pario_vp_file(vp, &again));
    CHECK(file == again);
    CHECK(fprintf(file, "%d %.1f\n", (int)number, (double)number / 2) > 0);
    CHECK(fputs("last line", file) >= 0 && putc('\n', file) == '\n');
    /* What is in the buffer of the file goes before what is written behind its back. */
    OK(pario_vp_puts(vp, "x"));
    CHECK(fputs("y", file) >= 0);
    return 0;
}

static int print_same_length(uint64_t vp, size_t local, FILE *to, void *user) {
    (void)local, (void)user;
    return fprintf(to, "VP %05d;", (int)vp) < 0;
}

static int print_some(uint64_t vp, size_t local, FILE *to, void *user) {
    CHECK(((uint64_t *)user)[local] == vp);
    return vp % 5 == 0 ? 0 : fprintf(to, "%d\n", (int)(vp * vp)) < 0;
}

static int refuses(uint64_t vp, size_t local, FILE *to, void *user) {
    (void)local, (void)to, (void)user;
    return vp == 7 ? 3 : 0;
}

static void write_all(pario_client *client, pario_team *team) {
    uint64_t numbers[VPS], lengths[VPS], moved;
    uint8_t even[VPS], at_end[VPS], has_failed[VPS];
    size_t count, i, sizes[VPS];
    double values[VPS][3];
    char texts[VPS][8];
    const char *list[VPS];
    pario_request *request;
    pario_stream *stream = open_stream(client, team, "/s", "w+", "[6][10]", "(cyclic, *)");
    count = vps_of(stream, numbers);
    for (i = 0; i < count; i++) {
        values[i][0] = (double)numbers[i];
        values[i][1] = -values[i][0];
        values[i][2] = values[i][0] / 4;
        even[i] = numbers[i] % 2 == 0;
        sizes[i] = numbers[i] % 3;
        memset(texts[i], 'a' + (int)(numbers[i] % 26), sizeof texts[i]);
        list[i] = numbers[i] % 2 ? "odd\n" : "even line\n";
    }
    /* One member of a parallel array, then all of them, beside the program. */
    OK(pario_stream_write(stream, NULL, &values[0][1], sizeof values[0], sizeof(double)));
    OK(pario_stream_iwrite(stream, NULL, values, 0, sizeof values[0], &request));
    OK(pario_wait(&request, &moved));
    CHECK(moved == count * sizeof values[0]);
    CHECK(counted(stream).ib == 0 && counted(stream).cb >= 1);
    /* Sizes of each: 0, 1 or 2 bytes. */
    OK(pario_stream_write_each(stream, NULL, texts, sizeof texts[0], sizes));
    OK(pario_stream_lengths(stream, lengths));
    for (i = 0; i < count; i++) CHECK(lengths[i] == 32 + sizes[i]);
    CHECK(counted(stream).ib == 1);
    /* Back to the beginning of all, which every VP overwrites with its number. */
    OK(pario_stream_rewind(stream));
    OK(pario_stream_write(stream, NULL, values, sizeof values[0], sizeof(double)));
    OK(pario_stream_seek(stream, NULL, 0, PARIO_FROM_END));
    OK(pario_stream_print(stream, even, print_same_length, NULL));
    OK(pario_stream_puts(stream, NULL, list));
    OK(pario_stream_flush(stream));
    OK(pario_stream_lengths(stream, lengths));
    for (i = 0; i < count; i++) CHECK(lengths[i] == 32 + sizes[i] + (even[i] ? 9u + 10u : 4u));
    OK(pario_stream_state(stream, at_end, has_failed));
    for (i = 0; i < count; i++) CHECK(!has_failed[i]);
    OK(pario_stream_close(stream));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_stream_flush(stream));
    /* Elemental functions. */
    stream = open_stream(client, team, "/lines", "w+", "[60]", NULL);
    count = vps_of(stream, numbers);
    OK(pario_stream_write(stream, NULL, values, 8, 8));
    OK(pario_stream_write(stream, NULL, values, 24, 24));
    OK(pario_stream_write(stream, NULL, values, 2, 2));
    OK(pario_stream_elemental(stream, NULL, write_one, numbers));
    OK(pario_stream_elemental(stream, NULL, print_one, NULL));
    OK(pario_stream_close(stream));
    /* Texts of one length stay in the fast modes, others do not. */
    stream = open_stream(client, team, "/texts", "w", "[60]", NULL);
    count = vps_of(stream, numbers);
    OK(pario_stream_print(stream, NULL, print_same_length, NULL));
    CHECK(counted(stream).nb == 1 && counted(stream).ib == 0);
    OK(pario_stream_print(stream, NULL, print_some, numbers));
    CHECK(counted(stream).ib == 1);
    OK(pario_stream_close(stream));
}

/* --- What other members read --- */

static int read_one(pario_vp *vp, void *user) {
    char line[64], expected[64];
    uint64_t number, moved;
    int byte, at_end, of_line, found, lines;
    double half;
    FILE *file;
    (void)user;
    OK(pario_vp_about(vp, &number, NULL));
    OK(pario_vp_seek(vp, 34, PARIO_FROM_START, NULL));
    OK(pario_vp_gets(vp, line, sizeof line));
    snprintf(expected, sizeof expected, "one 1 %d printed\n", (int)number);
    CHECK(!strcmp(line, expected));
    /* stdio reads ahead, and the VP is where the program has read to. */
    OK(pario_vp_scanf(vp, &found, "%d %lf\n", &of_line, &half));
    CHECK(found == 2 && of_line == (int)number && half == (double)number / 2);
    OK(pario_vp_file(vp, &file));
    CHECK(fgets(line, sizeof line, file) && !strcmp(line, "last line\n"));
    OK(pario_vp_getc(vp, &byte));
    CHECK(byte == 'x');
    OK(pario_vp_read(vp, line, sizeof line, &moved));
    CHECK(moved == 1 && line[0] == 'y');
    OK(pario_vp_eof(vp, &at_end));
    CHECK(at_end);
    OK(pario_vp_getc(vp, &byte));
    CHECK(byte == EOF);
    /* The file sees the end, and places by its own calls. */
    CHECK(getc(file) == EOF && feof(file));
    CHECK(fseek(file, 34, SEEK_SET) == 0 && ftell(file) == 34);
    for (lines = 0; fgets(line, sizeof line, file); lines++) continue;
    CHECK(lines == 4);
    /* A program may close its file, and ask for another. */
    CHECK(fclose(file) == 0);
    OK(pario_vp_file(vp, &file));
    CHECK(getc(file) == 'y' || feof(file));
    return 0;
}

static size_t take_number(uint64_t vp, size_t local, const char *text, size_t bytes, void *user) {
    int number, length = 0;
    (void)local;
    CHECK(strlen(text) == bytes);
    CHECK(sscanf(text, "VP %d;%n", &number, &length) == 1 && number == (int)vp);
    ++*(int *)user;
    return (size_t)length;
}

static int reads_in_vain(pario_vp *vp, void *user) {
    pario_stream *stream = user;
    uint64_t number;
    OK(pario_vp_about(vp, &number, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_vp_write(vp, NULL, 5));
    FAILS(PARIO_ERR_BUSY, pario_stream_rewind(stream));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_vp_write((pario_vp *)stream, "x", 1));
    return number == 11 ? 42 : 0;
}

static void read_all(pario_client *client, pario_team *team) {
    uint64_t numbers[VPS], counts[VPS], places[VPS], at[VPS], moved, expected = 0;
    uint8_t at_end[VPS], odd[VPS];
    size_t count, i, sizes[VPS];
    double values[VPS][4];
    char lines[VPS][40], *shape, *distribution, text[40], bytes[VPS];
    int calls = 0;
    pario_request *request;
    /* The shape of the file, another distribution. */
    pario_stream *stream = open_stream(client, team, "/s", "r", NULL, "(*, block)");
    OK(pario_stream_record(client, "/s", &shape, &distribution));
    CHECK(!strcmp(shape, "[6][10]") && !strcmp(distribution, "(cyclic, *)"));
    pario_text_free(shape);
    pario_text_free(distribution);
    count = vps_of(stream, numbers);
    OK(pario_stream_iread(stream, NULL, values, 0, sizeof values[0], counts, &request));
    OK(pario_wait(&request, &moved));
    CHECK(moved == count * sizeof values[0]);
    for (i = 0; i < count; i++) {
        double number = (double)numbers[i];
        CHECK(counts[i] == sizeof values[i]);
        CHECK(values[i][0] == number && values[i][1] == number && values[i][2] == -number && values[i][3] == number / 4);
        sizes[i] = numbers[i] % 3;
        odd[i] = numbers[i] % 2 == 1;
        places[i] = 8 * (numbers[i] % 4);
    }
    memset(lines, 0, sizeof lines);
    OK(pario_stream_read_each(stream, NULL, lines, sizeof lines[0], sizes, counts));
    for (i = 0; i < count; i++) {
        char of_vp = (char)('a' + (int)(numbers[i] % 26));
        CHECK(counts[i] == sizes[i]);
        CHECK(sizes[i] < 1 || lines[i][0] == of_vp);
        CHECK(sizes[i] < 2 || lines[i][1] == of_vp);
    }
    OK(pario_stream_gets(stream, NULL, lines, sizeof lines[0], counts));
    for (i = 0; i < count; i++) {
        snprintf(text, sizeof text, odd[i] ? "odd\n" : "VP %05d;even line\n", (int)numbers[i]);
        CHECK(counts[i] == strlen(text) && !strcmp(lines[i], text));
    }
    OK(pario_stream_getc(stream, NULL, bytes, counts));
    OK(pario_stream_state(stream, at_end, NULL));
    for (i = 0; i < count; i++) CHECK(counts[i] == 0 && at_end[i]);
    /* Places of each, and of some. */
    OK(pario_stream_seek_each(stream, NULL, places));
    OK(pario_stream_read(stream, odd, values, sizeof values[0], sizeof(double), counts));
    OK(pario_stream_tell(stream, at));
    for (i = 0; i < count; i++) {
        CHECK(counts[i] == (odd[i] ? 8 : 0) && at[i] == places[i] + counts[i]);
    }
    /* Mistakes are told, and nothing is lost. */
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_write(stream, NULL, values, 8, 8));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_read(stream, NULL, values, 4, 8, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_read(stream, NULL, NULL, 8, 8, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_seek(stream, NULL, -1, PARIO_FROM_START));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_seek(stream, NULL, 0, 9));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_print(stream, NULL, NULL, NULL));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_elemental(stream, NULL, NULL, NULL));
    OK(pario_stream_rewind(stream));
    OK(pario_stream_read(stream, NULL, values, 0, 8, NULL));
    for (i = 0; i < count; i++) CHECK(((double *)values)[i] == (double)numbers[i]);
    OK(pario_stream_close(stream));
    stream = open_stream(client, team, "/lines", "r", NULL, "(cyclic(4))");
    count = vps_of(stream, numbers);
    OK(pario_stream_elemental(stream, NULL, read_one, NULL));
    OK(pario_stream_close(stream));
    stream = open_stream(client, team, "/texts", "r", NULL, "(cyclic)");
    count = vps_of(stream, numbers);
    OK(pario_stream_scan(stream, NULL, 9, take_number, &calls, counts));
    CHECK(calls == (int)count && counted(stream).ib == 0);
    for (i = 0; i < count; i++) CHECK(counts[i] == 9);
    OK(pario_stream_gets(stream, NULL, lines, sizeof lines[0], counts));
    for (i = 0; i < count; i++) {
        expected = numbers[i] * numbers[i];
        CHECK(numbers[i] % 5 == 0 ? counts[i] == 0 : strtoull(lines[i], NULL, 10) == expected);
    }
    OK(pario_stream_close(stream));
}

/* --- The error log of the source, and errors --- */

static int log_one(pario_vp *vp, void *user) {
    size_t local;
    OK(pario_vp_about(vp, NULL, &local));
    return pario_vp_printf(vp, "bad value %g\n", ((double *)user)[local]);
}

static void log_errors(pario_client *client, pario_team *team) {
    uint64_t numbers[VPS], counts[VPS];
    uint8_t negative[VPS];
    double values[VPS];
    char lines[VPS][40], text[40];
    size_t count, i;
    int step;
    pario_stream *stream;
    for (step = 0; step < 3; step++) {
        stream = open_stream(client, team, "/debug", "a", "[60]", NULL);
        count = vps_of(stream, numbers);
        for (i = 0; i < count; i++) {
            values[i] = (double)((int)(numbers[i] * 7 + (uint64_t)step * 3) % 11) - 3;
            negative[i] = values[i] < 0;
        }
        OK(pario_stream_elemental(stream, negative, log_one, values));
        OK(pario_stream_close(stream));
    }
    stream = open_stream(client, team, "/debug", "r", NULL, "(cyclic)");
    count = vps_of(stream, numbers);
    for (step = 0; step < 3; step++) {
        for (i = 0; i < count; i++) {
            values[i] = (double)((int)(numbers[i] * 7 + (uint64_t)step * 3) % 11) - 3;
            negative[i] = values[i] < 0;
        }
        OK(pario_stream_gets(stream, negative, lines, sizeof lines[0], counts));
        for (i = 0; i < count; i++) {
            if (!negative[i]) continue;
            snprintf(text, sizeof text, "bad value %g\n", values[i]);
            CHECK(!strcmp(lines[i], text));
        }
    }
    OK(pario_stream_gets(stream, NULL, lines, sizeof lines[0], counts));
    for (i = 0; i < count; i++) CHECK(counts[i] == 0);
    OK(pario_stream_close(stream));
}

static void mistakes(pario_client *client, pario_team *team) {
    pario_stream_options how;
    pario_stream *stream, *none;
    int rank, code;
    OK(pario_team_rank(team, &rank, NULL));
    PARIO_INIT(how);
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_open(client, team, "/nothing", "w", &how, &none));
    CHECK(none == NULL);
    how.shape = "[5][12]";
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_open(client, team, "/s", "r", &how, &none));
    CHECK(strstr(pario_last_error(), "[6][10]"));
    how.shape = "[60]";
    /* One member is wrong, and all hear of it. */
    how.at_least = rank == 1 ? 9 : PARIO_NB;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_open(client, team, "/s", "r", &how, &none));
    how.at_least = PARIO_NB;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_open(client, team, "/m", "rw", &how, &none));
    OK(pario_stream_open(client, team, "/m", "w+", &how, &stream));
    code = pario_stream_elemental(stream, NULL, reads_in_vain, stream);
    CHECK(code == PARIO_OK || (code == PARIO_ERR_INVALID_ARGUMENT && strstr(pario_last_error(), "answered 42 for VP 11")));
    /* A text that is refused at one member fails at all. */
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_stream_print(stream, NULL, refuses, NULL));
    OK(pario_stream_close(stream));
}

int main(int argc, char **argv) {
    pario_client *client;
    begin(argc, argv);
    client = connect_here();
    run_members(client, 3, write_all);
    run_members(client, 2, read_all);
    run_members(client, 4, read_all);
    run_members(client, 2, log_errors);
    run_members(client, 3, mistakes);
    OK(pario_disconnect(client));
    return end();
}
