/* Layouts that change, hints, and what is told as JSON. */
#include "check.h"

enum { N = 1 << 20 };

static unsigned char bytes[N], got[N];

static int looks;

static int look(const pario_progress *progress, void *user) {
    CHECK(progress->size == sizeof *progress && progress->moved_bytes <= progress->total_bytes);
    CHECK(user == &looks);
    looks++;
    return 0;
}

static int ends(const pario_progress *progress, void *user) {
    (void)progress, (void)user;
    return 1;
}

static void told(char *json, const char *what) {
    CHECK(json && (*json == '{' || *json == '[') && strstr(json, what));
    pario_text_free(json);
}

static void moves(pario_client *client) {
    pario_file *file = open_here(client, "/moved", READ_WRITE, "u8[1024,1024]", "(block, *) onto 2");
    pario_layout *layout, *picked;
    pario_distribution how[2];
    pario_move_options slow;
    pario_progress progress;
    pario_move *move;
    const uint64_t grid[1] = {2}, servers[3] = {1, 0, 1}, lengths[2] = {256, 512}, blocks[5] = {0, 1, 1, 0, 1};
    char *text, *json;
    uint64_t moved;
    int i;
    for (i = 0; i < N; i++) bytes[i] = (unsigned char)(i * 31 + i / 1024);
    OK(pario_write_at(file, 0, bytes, N, NULL));
    memset(how, 0, sizeof how);
    how[1].kind = PARIO_BLOCK;
    OK(pario_layout_hpf(2, how, 1, grid, PARIO_ORDER_C, &layout));
    OK(pario_layout_text(layout, &text));
    CHECK(!strcmp(text, "(*, block) onto 2"));
    OK(pario_relayout(client, "/moved", text, NULL, &move));
    pario_text_free(text);
    PARIO_INIT(progress);
    OK(pario_relayout_wait(move, look, &looks, &progress));
    CHECK(looks > 0 && progress.state == PARIO_DONE && progress.is_over);
    OK(pario_relayout_free(move));
    OK(pario_read_at(file, 0, got, N, &moved));
    CHECK(moved == N && !memcmp(bytes, got, N));
    OK(pario_layout_report(client, "/moved", &json));
    told(json, "(*, block) onto 2");
    /* One that is slow is paused, goes on, and goes back. */
    PARIO_INIT(slow);
    slow.limit_bytes = 1 << 16;
    slow.window_bytes = 1 << 16;
    OK(pario_relayout(client, "/moved", "striped(4KiB) over 2", &slow, &move));
    OK(pario_relayout_wait(move, ends, NULL, NULL)); /* ends the wait only */
    OK(pario_relayout_pause(move));
    OK(pario_relayout_progress(move, &progress));
    CHECK(!progress.is_over && progress.limit_bytes == 1 << 16);
    OK(pario_relayout_why(move, &text));
    pario_text_free(text);
    OK(pario_relayout_resume(move));
    OK(pario_relayout_limit(move, 0));
    OK(pario_relayout_cancel(move));
    OK(pario_relayout_wait(move, NULL, NULL, &progress));
    CHECK(progress.state == PARIO_CANCELLED || progress.state == PARIO_DONE);
    OK(pario_relayout_free(move));
    OK(pario_follow_relayout(client, "/moved", &move));
    OK(pario_relayout_free(move));
    OK(pario_read_at(file, 0, got, N, &moved));
    CHECK(moved == N && !memcmp(bytes, got, N));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_relayout(client, "/moved", "(blok)", NULL, &move));
    OK(pario_close(file));
    OK(pario_layout_free(layout));
    /* The other constructors, by their notation. */
    OK(pario_layout_striped(1 << 20, 4, NULL, 2, &layout));
    OK(pario_layout_text(layout, &text));
    CHECK(!strcmp(text, "striped(1MiB) over 4 from 2"));
    pario_text_free(text);
    OK(pario_layout_pick(layout, 3, &picked));
    OK(pario_layout_text(picked, &text));
    CHECK(strstr(text, "[3]"));
    pario_text_free(text);
    OK(pario_layout_free(picked));
    OK(pario_layout_free(layout));
    OK(pario_layout_chunks(2, lengths, 0, NULL, &layout));
    OK(pario_layout_text(layout, &text));
    CHECK(!strcmp(text, "chunks(256,512)"));
    pario_text_free(text);
    OK(pario_layout_free(layout));
    OK(pario_layout_blocks(4096, 5, blocks, &layout));
    OK(pario_layout_elements(layout, NULL, &moved));
    CHECK(moved == 2);
    OK(pario_layout_free(layout));
    memset(how, 0, sizeof how);
    how[0].kind = PARIO_GEN_BLOCK;
    how[0].list = lengths;
    how[0].list_count = 2;
    OK(pario_layout_hpf(1, how, 1, grid, PARIO_ORDER_C, &layout));
    OK(pario_layout_elements(layout, "u8[768]", &moved));
    CHECK(moved == 2);
    OK(pario_layout_free(layout));
    OK(pario_layout_parse("(block) onto 3", &layout));
    OK(pario_layout_place(layout, servers, 3, &picked));
    OK(pario_layout_free(picked));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_layout_place(layout, servers, 2, &picked));
    OK(pario_layout_free(layout));
}

/* One subfile as a file: its bytes alone, until the file has another layout. */
static void subfiles(pario_client *client) {
    pario_file *file = open_here(client, "/subfiles", READ_WRITE, "u8[1024,1024]", "(cyclic, *) onto 2"), *one;
    pario_open_options how;
    pario_move *move;
    uint64_t index, count, generation, length, moved, at;
    int i;
    for (i = 0; i < N; i++) bytes[i] = (unsigned char)(i * 17 + i / 1024);
    OK(pario_write_at(file, 0, bytes, N, NULL));
    PARIO_INIT(how);
    how.flags = PARIO_READ | PARIO_WRITE;
    OK(pario_open_subfile(client, "/subfiles", 1, &how, &one));
    OK(pario_subfile_about(one, &index, &count, &generation, &length));
    CHECK(index == 1 && count == 2 && generation == 1 && length == N / 2);
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_subfile_about(file, NULL, NULL, NULL, NULL));
    /* The pointer is in bytes of the subfile. */
    OK(pario_seek(one, 1024, PARIO_FROM_START, &at));
    OK(pario_read(one, got, N, &moved));
    CHECK(moved == N / 2 - 1024);
    for (i = 0; i < (int)moved; i++) CHECK(got[i] == bytes[(i / 1024 * 2 + 3) * 1024 + i % 1024]);
    OK(pario_write_at(one, 10, "here", 4, NULL));
    OK(pario_read_at(file, 1024 + 8, got, 8, NULL));
    CHECK(!memcmp(got + 2, "here", 4) && got[0] == bytes[1032] && got[7] == bytes[1039]);
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_set_view(one, 0, "whole"));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_truncate(one, 5));
    OK(pario_relayout(client, "/subfiles", "(*, block) onto 2", NULL, &move));
    OK(pario_relayout_wait(move, NULL, NULL, NULL));
    OK(pario_relayout_free(move));
    FAILS(PARIO_ERR_STALE_LAYOUT, pario_read_at(one, 0, got, 8, NULL));
    FAILS(PARIO_ERR_STALE_LAYOUT, pario_write_at(one, 0, got, 8, NULL));
    OK(pario_close(one));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open_subfile(client, "/subfiles", 2, &how, &one));
    how.flags |= PARIO_CREATE;
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_open_subfile(client, "/subfiles", 0, &how, &one));
    OK(pario_close(file));
}

static void reports(pario_client *client) {
    pario_hint hints[2] = {{"access_style", "sequential"}, {"no_such_hint", "x"}};
    const char *unset[1] = {"access_style"};
    pario_file *file = open_here(client, "/told", READ_WRITE, "f64[64,64]", NULL);
    char *json;
    OK(pario_set_hints(file, hints, 2));
    OK(pario_hint_report(file, &json));
    told(json, "no_such_hint");
    OK(pario_write_at(file, 0, bytes, 32768, NULL));
    OK(pario_set_view(file, 0, "(*, block) onto 8 [3]"));
    OK(pario_read_at(file, 0, got, 4096, NULL));
    OK(pario_file_statistics(file, &json));
    told(json, "\"moved_bytes\":4096");
    OK(pario_close(file));
    OK(pario_keep_hints(client, "/told", hints, 1, NULL, 0));
    OK(pario_keep_hints(client, "/told", NULL, 0, unset, 1));
    OK(pario_statistics(client, &json));
    told(json, "\"servers\":[");
    OK(pario_profile(client, "/told", &json));
    told(json, "\"written_bytes\":32768");
    OK(pario_advise(client, "/told", 100, &json));
    told(json, "\"ranked\":[");
    OK(pario_explain(client, "/told", "(*, block) onto 8 [3]", &json));
    told(json, "\"view_bytes\":4096");
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_explain(client, "/told", "(*, block) onto 8", &json));
    OK(pario_clear_profile(client, "/told"));
    FAILS(PARIO_ERR_NOT_FOUND, pario_profile(client, "/nothing", &json));
    CHECK(json == NULL);
}

int main(int argc, char **argv) {
    pario_client *client;
    begin(argc, argv);
    client = connect_here();
    moves(client);
    subfiles(client);
    reports(client);
    OK(pario_disconnect(client));
    return end();
}
