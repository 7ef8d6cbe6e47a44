/* Teams: of threads, of processes that meet by name, by a function of the program; what they do together. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 3, ROWS = 12, COLUMNS = 10 };

/* Rows are written together and columns read, through memory as it is and as it is described. */
static void transpose(pario_client *client, pario_team *team, const char *path) {
    int mine[ROWS / SIZE][COLUMNS], got[ROWS * COLUMNS], *spread = malloc(2 * sizeof got);
    char view[64];
    pario_open_options how;
    pario_file *file;
    pario_pattern *integer, *every_other;
    pario_request *requests[2];
    uint64_t moved, both[2];
    int rank, size, i, j, n;
    const int columns[SIZE] = {4, 4, 2};
    OK(pario_team_rank(team, &rank, &size));
    CHECK(size == SIZE && rank >= 0 && rank < SIZE);
    PARIO_INIT(how);
    how.flags = READ_WRITE;
    how.array = "i32[12,10]";
    how.layout = "(*, cyclic(3)) onto 2";
    OK(pario_open_all(client, team, path, &how, &file));
    for (i = 0; i < ROWS / SIZE; i++)
        for (j = 0; j < COLUMNS; j++) mine[i][j] = (rank * ROWS / SIZE + i) * COLUMNS + j;
    sprintf(view, "(block, *) onto 3 [%d]", rank);
    OK(pario_set_view_all(file, team, view));
    OK(pario_write_at_all(file, team, 0, mine, sizeof mine, &moved));
    CHECK(moved == sizeof mine);
    OK(pario_team_barrier(team));
    sprintf(view, "(*, block) onto 3 [%d]", rank);
    OK(pario_set_view_all(file, team, view));
    n = ROWS * columns[rank];
    OK(pario_read_at_all(file, team, 0, got, (size_t)n * sizeof *got, &moved));
    CHECK(moved == (size_t)n * sizeof *got);
    for (i = 0; i < n; i++) CHECK(got[i] == i / columns[rank] * COLUMNS + rank * 4 + i % columns[rank]);
    OK(pario_pattern_bytes(sizeof(int), &integer));
    OK(pario_pattern_vector(n, 1, 2, integer, &every_other));
    memset(spread, 0, 2 * sizeof got);
    OK(pario_read_pattern_at_all(file, team, 0, spread, every_other, 1, &moved));
    for (i = 0; i < n; i++) CHECK(spread[2 * i] == got[i] && spread[2 * i + 1] == 0);
    /* Beside the program, one after the other. */
    for (i = 0; i < n; i++) spread[2 * i] = -got[i];
    OK(pario_iwrite_pattern_at_all(file, team, 0, spread, every_other, 1, &requests[0]));
    OK(pario_iread_at_all(file, team, 0, got, (size_t)n * sizeof *got, &requests[1]));
    OK(pario_wait_all(2, requests, both));
    for (i = 0; i < n; i++) CHECK(got[i] == spread[2 * i]);
    /* One member has no memory: nobody waits for it. */
    if (rank == 1)
        FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_write_at_all(file, team, 0, NULL, 4, &moved));
    else
        (void)pario_write_at_all(file, team, 0, got, 4, &moved);
    OK(pario_pattern_free(every_other));
    OK(pario_pattern_free(integer));
    OK(pario_team_barrier(team));
    OK(pario_close(file));
    free(spread);
}

/* An array that lies by rows goes by columns, in memory. */
static void redistribute(pario_team *team) {
    int rank, i;
    int from[ROWS / SIZE * COLUMNS], to[ROWS * 4], *both;
    uint64_t before, after;
    const int columns[SIZE] = {4, 4, 2};
    pario_layout *rows_of, *columns_of;
    pario_view *source, *target;
    pario_plan *plan;
    void *memory;
    OK(pario_team_rank(team, &rank, NULL));
    OK(pario_layout_parse("(block, *) onto 3", &rows_of));
    OK(pario_layout_parse("(*, block) onto 3", &columns_of));
    OK(pario_view_of_layout(rows_of, (uint64_t)rank, "i32[12,10]", 0, &source));
    OK(pario_view_of_layout(columns_of, (uint64_t)rank, "i32[12,10]", 0, &target));
    OK(pario_team_plan(team, source, target, ROWS * COLUMNS * sizeof(int), &plan));
    OK(pario_plan_bytes(plan, &before, &after));
    CHECK(before == sizeof from && after == (uint64_t)ROWS * (uint64_t)columns[rank] * sizeof(int));
    for (i = 0; i < ROWS / SIZE * COLUMNS; i++) from[i] = rank * ROWS / SIZE * COLUMNS + i;
    OK(pario_plan_run(plan, from, sizeof from, to, sizeof to));
    for (i = 0; i < ROWS * columns[rank]; i++)
        CHECK(to[i] == i / columns[rank] * COLUMNS + rank * 4 + i % columns[rank]);
    OK(pario_memory_new(sizeof to, &memory));
    both = memory;
    memcpy(both, from, sizeof from);
    OK(pario_plan_run_in_place(plan, both, sizeof to));
    CHECK(!memcmp(both, to, after));
    OK(pario_memory_free(memory));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_memory_free(memory));
    OK(pario_team_barrier(team));
    OK(pario_plan_free(plan));
    OK(pario_view_free(source));
    OK(pario_view_free(target));
    OK(pario_layout_free(rows_of));
    OK(pario_layout_free(columns_of));
}

static void exchanges(pario_team *team) {
    int rank, i;
    uint64_t sum[2], counts_out[SIZE], counts_in[SIZE];
    double most;
    int64_t least;
    char text[6] = "?????", all[SIZE], out[SIZE * SIZE], in[SIZE * SIZE];
    OK(pario_team_rank(team, &rank, NULL));
    sum[0] = (uint64_t)rank;
    sum[1] = 10;
    OK(pario_team_reduce_u64(team, sum, 2, PARIO_SUM));
    CHECK(sum[0] == 3 && sum[1] == 30);
    most = rank * 1.5;
    OK(pario_team_reduce_f64(team, &most, 1, PARIO_MAX));
    CHECK(most == 3.0);
    least = 5 - rank;
    OK(pario_team_reduce_i64(team, &least, 1, PARIO_MIN));
    CHECK(least == 3);
    if (rank == 2) strcpy(text, "hello");
    OK(pario_team_broadcast(team, 2, text, sizeof text));
    CHECK(!strcmp(text, "hello"));
    text[0] = (char)('a' + rank);
    OK(pario_team_gather_all(team, text, 1, all));
    CHECK(!memcmp(all, "abc", 3));
    /* Rank r has r + 1 bytes for everybody. */
    for (i = 0; i < SIZE; i++) {
        counts_out[i] = (uint64_t)rank + 1;
        counts_in[i] = (uint64_t)i + 1;
    }
    memset(out, '0' + rank, sizeof out);
    OK(pario_team_exchange(team, out, counts_out, in, counts_in));
    CHECK(!memcmp(in, "011222", 6));
}

static void messages(pario_team *team) {
    int rank;
    char *bytes;
    pario_message message;
    PARIO_INIT(message);
    OK(pario_team_rank(team, &rank, NULL));
    if (rank == 0) {
        OK(pario_team_send(team, 1, 7, "seven", 5));
        OK(pario_team_send(team, 1, 8, NULL, 0));
    } else if (rank == 1) {
        OK(pario_team_receive(team, 0, 8, &bytes, &message));
        CHECK(message.bytes == 0 && message.tag == 8 && message.from == 0 && message.has_come);
        pario_text_free(bytes);
        OK(pario_team_receive(team, PARIO_ANY_RANK, PARIO_ANY_TAG, &bytes, &message));
        CHECK(message.bytes == 5 && message.tag == 7 && !strcmp(bytes, "seven"));
        pario_text_free(bytes);
        OK(pario_team_try_receive(team, 0, PARIO_ANY_TAG, &bytes, &message));
        CHECK(bytes == NULL && !message.has_come);
    }
    OK(pario_team_barrier(team));
}

typedef struct {
    pario_client *client;
    pario_team *team;
    const char *path;
    int sends;
} work;

static void *member(void *given) {
    work *mine = given;
    transpose(mine->client, mine->team, mine->path);
    redistribute(mine->team);
    exchanges(mine->team);
    if (mine->sends) messages(mine->team);
    return NULL;
}

static void run(pario_client *client, pario_team **teams, const char *path, int sends) {
    pthread_t threads[SIZE];
    work all[SIZE];
    int i;
    for (i = 0; i < SIZE; i++) {
        all[i].client = client;
        all[i].team = teams[i];
        all[i].path = path;
        all[i].sends = sends;
        CHECK(pthread_create(&threads[i], NULL, member, &all[i]) == 0);
    }
    for (i = 0; i < SIZE; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        OK(pario_team_leave(teams[i]));
        FAILS(PARIO_ERR_BAD_HANDLE, pario_team_barrier(teams[i]));
    }
}

/* --- A team by a function of the program: here threads that meet at a barrier --- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int came, turn;
    const void *parts[SIZE];
} table = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {NULL}};

static void meet(void) {
    int turn;
    pthread_mutex_lock(&table.lock);
    turn = table.turn;
    if (++table.came == SIZE) {
        table.came = 0;
        table.turn++;
        pthread_cond_broadcast(&table.changed);
    }
    while (turn == table.turn) pthread_cond_wait(&table.changed, &table.lock);
    pthread_mutex_unlock(&table.lock);
}

static int gather(void *user, const void *mine, const uint64_t *bytes, void *all) {
    int rank = *(int *)user, i;
    char *to = all;
    table.parts[rank] = mine;
    meet();
    for (i = 0; i < SIZE; i++) {
        if (bytes[i]) memcpy(to, table.parts[i], bytes[i]);
        to += bytes[i];
    }
    meet();
    return 0;
}

static int fails(void *user, const void *mine, const uint64_t *bytes, void *all) {
    (void)user, (void)mine, (void)bytes, (void)all;
    return 5;
}

static void by_gathering(pario_client *client) {
    static int ranks[SIZE] = {0, 1, 2};
    pario_team *teams[SIZE], *none;
    int i;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_team_by_gathering(3, 3, gather, NULL, &none));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_team_by_gathering(0, 3, NULL, NULL, &none));
    OK(pario_team_by_gathering(0, 1, fails, NULL, &none));
    FAILS(PARIO_ERR_IO, pario_team_barrier(none));
    OK(pario_team_leave(none));
    for (i = 0; i < SIZE; i++) OK(pario_team_by_gathering(i, SIZE, gather, &ranks[i], &teams[i]));
    run(client, teams, "/gathered", 0);
}

/* --- Processes --- */

static int process(int rank) {
    pario_client *client = connect_here();
    pario_team *team, *pair;
    pario_meeting *meeting;
    char name[32], *bytes;
    int size;
    OK(pario_team_join(client, "three", rank, SIZE, &team));
    transpose(client, team, "/processes");
    redistribute(team);
    exchanges(team);
    messages(team);
    /* A team of two meets a team of one. */
    strcpy(name, rank < 2 ? "two" : "one");
    OK(pario_team_join(client, name, PARIO_ANY_RANK, rank < 2 ? 2 : 1, &pair));
    OK(pario_team_meet(pair, client, "meeting", &meeting));
    OK(pario_meeting_size(meeting, &size));
    CHECK(size == (rank < 2 ? 1 : 2));
    if (rank < 2)
        OK(pario_meeting_send(meeting, 0, 1, "hi", 2));
    else
        for (size = 0; size < 2; size++) {
            OK(pario_meeting_receive(meeting, size, 1, &bytes, NULL));
            CHECK(!strcmp(bytes, "hi"));
            pario_text_free(bytes);
        }
    OK(pario_team_barrier(team));
    OK(pario_meeting_end(meeting));
    OK(pario_team_leave(pair));
    OK(pario_team_leave(team));
    OK(pario_disconnect(client));
    return 0;
}

int main(int argc, char **argv) {
    pario_client *client;
    pario_team *teams[SIZE], *alone;
    pid_t children[SIZE];
    int i, status;
    begin(argc, argv);
    for (i = 0; i < SIZE; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) exit(process(i));
    }
    for (i = 0; i < SIZE; i++) {
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    client = connect_here();
    OK(pario_team_threads(SIZE, teams));
    run(client, teams, "/threads", 1);
    by_gathering(client);
    OK(pario_team_alone(&alone));
    OK(pario_team_barrier(alone));
    OK(pario_team_leave(alone));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_team_join(client, "x", 3, 3, &alone));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_team_join(client, "x", 0, 0, &alone));
    OK(pario_disconnect(client));
    return end();
}
