/* Two coupled programs: a simulation gives a field by rows, an analysis takes it by columns, step after step, without a file.
 *
 *     coupled URL simulation RANK SIZE &      as often as it has members, each with its rank
 *     coupled URL analysis RANK SIZE &
 *
 * With the URL alone it runs both in processes of its own, two and three, and is then also the test of the errors. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 60, COLUMNS = 42, STEPS = 5 };
static const char *const ARRAY = "f64[60,42]";

/* The part of a rank. */
static pario_view *part_of(const char *layout, int rank) {
    pario_layout *of;
    pario_view *part;
    OK(pario_layout_parse(layout, &of));
    OK(pario_view_of_layout(of, (uint64_t)rank, ARRAY, 0, &part));
    OK(pario_layout_free(of));
    return part;
}

static double value(int row, int column, int step) { return row * COLUMNS + column + step / 8.0; }

static void simulation(pario_client *client, pario_team *team, int rank, int size) {
    const int each = (ROWS + size - 1) / size, first = rank * each;
    const int mine = first + each > ROWS ? ROWS - first : each;
    double *field = malloc((size_t)mine * COLUMNS * sizeof *field);
    pario_channel_options how;
    pario_channel *out;
    pario_view *part;
    uint64_t bytes, turns;
    char layout[64];
    int step, i, j;
    sprintf(layout, "(block, *) onto %d", size);
    part = part_of(layout, rank);
    PARIO_INIT(how);
    how.buffering = PARIO_DOUBLE_BUFFERED;
    OK(pario_channel_source(client, team, "field", ARRAY, part, &how, &out));
    OK(pario_channel_about(out, &bytes, NULL, NULL));
    CHECK(bytes == (uint64_t)mine * COLUMNS * sizeof *field);
    for (step = 0; step < STEPS; step++) {
        for (i = 0; i < mine; i++)
            for (j = 0; j < COLUMNS; j++) field[i * COLUMNS + j] = value(first + i, j, step);
        /* The analysis may still read the step before. */
        OK(pario_channel_put(out, field, bytes));
    }
    OK(pario_channel_about(out, NULL, NULL, &turns));
    CHECK(turns == STEPS);
    OK(pario_channel_close(out));
    OK(pario_view_free(part));
    free(field);
}

static void analysis(pario_client *client, pario_team *team, int rank, int size) {
    const int mine = (COLUMNS - rank + size - 1) / size;
    double *field = malloc((size_t)mine * ROWS * sizeof *field);
    size_t bytes = (size_t)mine * ROWS * sizeof *field;
    pario_channel *in;
    pario_view *part;
    char layout[64];
    int step, i, j, has_come;
    sprintf(layout, "(*, cyclic) onto %d", size);
    part = part_of(layout, rank);
    OK(pario_channel_target(client, team, "field", ARRAY, part, NULL, &in));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_get(in, field, bytes - 1, &has_come));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_put(in, field, bytes));
    for (step = 0;; step++) {
        OK(pario_channel_get(in, field, bytes, &has_come));
        if (!has_come) break;
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < mine; j++) CHECK(field[i * mine + j] == value(i, rank + j * size, step));
    }
    CHECK(step == STEPS);
    OK(pario_channel_close(in));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_channel_close(in));
    OK(pario_view_free(part));
    free(field);
}

static int member(const char *program, int rank, int size) {
    pario_client *client = connect_here();
    pario_team *team;
    OK(pario_team_join(client, program, rank, size, &team));
    (strcmp(program, "simulation") ? analysis : simulation)(client, team, rank, size);
    OK(pario_team_leave(team));
    OK(pario_disconnect(client));
    return 0;
}

/* Programs that do not fit, and one that dies. */
static void errors(void) {
    pario_client *client;
    pario_team *alone;
    pario_view *part;
    pario_channel *channel;
    pario_channel_options how;
    pid_t child;
    int status, has_come;
    double field[ROWS * COLUMNS];
    PARIO_INIT(how);
    child = fork();
    CHECK(child >= 0);
    client = connect_here();
    OK(pario_team_alone(&alone));
    part = part_of("(block, *) onto 1", 0);
    if (child == 0) {
        /* First of another type, then one that is killed. */
        FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_source(client, alone, "odd", "i64[60,42]", part, NULL, &channel));
        CHECK(strstr(pario_last_error(), "the program that gives has i64[60,42], the one that takes f64[60,42]"));
        OK(pario_channel_source(client, alone, "dies", ARRAY, part, NULL, &channel));
        kill(getpid(), SIGKILL);
    }
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_target(client, alone, "odd", ARRAY, part, NULL, &channel));
    CHECK(strstr(pario_last_error(), "the program that gives has i64[60,42], the one that takes f64[60,42]"));
    OK(pario_channel_target(client, alone, "dies", ARRAY, part, NULL, &channel));
    FAILS(PARIO_ERR_UNREACHABLE, pario_channel_get(channel, field, sizeof field, &has_come));
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    FAILS(PARIO_ERR_UNREACHABLE, pario_channel_close(channel));
    how.timeout_ms = 50;
    FAILS(PARIO_ERR_TIMED_OUT, pario_channel_target(client, alone, "nobody", ARRAY, part, &how, &channel));
    how.buffering = PARIO_DOUBLE_BUFFERED;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_target(client, alone, "x", ARRAY, part, &how, &channel));
    how.buffering = 7;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_source(client, alone, "x", ARRAY, part, &how, &channel));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_source(client, alone, NULL, ARRAY, part, NULL, &channel));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_channel_source(client, alone, "x", "f64[", part, NULL, &channel));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_channel_source(client, alone, "x", ARRAY, NULL, NULL, &channel));
    FAILS(PARIO_ERR_BAD_HANDLE, pario_channel_put(channel, field, sizeof field));
    OK(pario_view_free(part));
    OK(pario_team_leave(alone));
    OK(pario_disconnect(client));
}

int main(int argc, char **argv) {
    static const struct {
        const char *program;
        int size;
    } both[] = {{"simulation", 2}, {"analysis", 3}};
    pid_t children[5];
    int i, rank, status, count = 0;
    begin(argc, argv);
    if (argc > 4) return member(argv[2], atoi(argv[3]), atoi(argv[4]));
    for (i = 0; i < 2; i++)
        for (rank = 0; rank < both[i].size; rank++) {
            children[count] = fork();
            CHECK(children[count] >= 0);
            if (children[count] == 0) exit(member(both[i].program, rank, both[i].size));
            count++;
        }
    for (i = 0; i < count; i++) {
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    errors();
    return end();
}
