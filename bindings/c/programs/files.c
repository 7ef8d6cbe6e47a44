/* Files: names, directories, arrays, views, pointers, sizes, modes, in one process. */
#include "check.h"

static void names(pario_client *client) {
    pario_stat_info info;
    pario_directory *directory;
    char *name;
    int exists, seen = 0;
    OK(pario_mkdir_all(client, "/d/e", 0));
    OK(pario_mkdir(client, "/d/f", 0750));
    FAILS(PARIO_ERR_EXISTS, pario_mkdir(client, "/d/f", 0));
    OK(pario_close(open_here(client, "/d/x", READ_WRITE, NULL, NULL)));
    OK(pario_rename(client, "/d/x", "/d/y"));
    OK(pario_exists(client, "/d/x", &exists));
    CHECK(!exists);
    PARIO_INIT(info);
    OK(pario_stat(client, "/d/f", &info));
    CHECK(info.kind == PARIO_DIRECTORY && info.mode == 0750 && info.size == sizeof info);
    FAILS(PARIO_ERR_NOT_FOUND, pario_stat(client, "/d/x", &info));
    OK(pario_chmod(client, "/d/y", 0600));
    OK(pario_utimes(client, "/d/y", PARIO_KEEP_TIME, 0, PARIO_TIME_TO, 1234567890));
    OK(pario_chown(client, "/d/y", -1, -1));
    OK(pario_stat(client, "/d/y", &info));
    CHECK(info.kind == PARIO_FILE && info.mode == 0600 && info.modified_ns == 1234567890);
    OK(pario_opendir(client, "/d", &directory));
    for (;;) {
        OK(pario_readdir(directory, &name, &info));
        if (!name) break;
        CHECK(strlen(name) == 1 && strchr("efy", *name));
        CHECK((info.kind == PARIO_FILE) == (*name == 'y'));
        pario_text_free(name);
        seen++;
    }
    CHECK(seen == 3);
    OK(pario_closedir(directory));
    FAILS(PARIO_ERR_NOT_EMPTY, pario_rmdir(client, "/d"));
    OK(pario_unlink(client, "/d/y"));
    FAILS(PARIO_ERR_NOT_FOUND, pario_unlink(client, "/d/y"));
    OK(pario_rmdir(client, "/d/e"));
}

static void arrays(pario_client *client) {
    static double matrix[48], got[48];
    const uint64_t shape[2] = {6, 8};
    pario_open_options how;
    pario_array_info array;
    pario_file *file;
    char *text, *layout;
    uint64_t moved, bytes;
    int is_new, i, j;
    PARIO_INIT(how);
    how.flags = READ_WRITE;
    how.element = PARIO_F64;
    how.shape = shape;
    how.dimensions = 2;
    how.layout = "(block, *) onto 2";
    OK(pario_open(client, "/matrix", &how, &file));
    OK(pario_is_new(file, &is_new));
    CHECK(is_new);
    PARIO_INIT(array);
    OK(pario_array(file, &array));
    CHECK(array.element == PARIO_F64 && array.element_bytes == 8 && array.dimensions == 2);
    CHECK(array.shape[0] == 6 && array.shape[1] == 8 && array.bytes == sizeof matrix);
    for (i = 0; i < 48; i++) matrix[i] = i;
    OK(pario_write_at(file, 0, matrix, sizeof matrix, &moved));
    CHECK(moved == sizeof matrix);
    /* By columns, the third quarter. */
    OK(pario_set_view(file, 0, "(*, block) onto 4 [2]"));
    OK(pario_read(file, got, 12 * sizeof *got, &moved));
    CHECK(moved == 12 * sizeof *got);
    for (i = 0; i < 6; i++)
        for (j = 0; j < 2; j++) CHECK(got[2 * i + j] == matrix[8 * i + 4 + j]);
    OK(pario_read(file, got, sizeof got, &moved));
    CHECK(moved == 0);
    OK(pario_set_view(file, 0, NULL));
    OK(pario_size(file, &bytes));
    CHECK(bytes == sizeof matrix);
    OK(pario_layout_of(client, "/matrix", &text, &layout));
    CHECK(!strcmp(text, "f64[6,8]") && !strcmp(layout, "(block, *) onto 2"));
    pario_text_free(text);
    pario_text_free(layout);
    OK(pario_array_text(PARIO_I16, 0, shape, 2, PARIO_ORDER_FORTRAN, &text));
    CHECK(strstr(text, "i16[6,8]"));
    pario_text_free(text);
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_set_view(file, 0, "(*, blok) onto 4 [2]"));
    CHECK(strstr(pario_last_error(), "character"));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_set_view(file, 0, "(*, block) onto 4"));
    OK(pario_close(file));
}

static void bytes_of_files(pario_client *client) {
    char got[64];
    uint64_t moved, at, bytes;
    int flag;
    pario_stat_info info;
    pario_file *file = open_here(client, "/bytes", READ_WRITE, NULL, "striped(16) over 2");
    pario_file *other;
    OK(pario_write(file, "hello, ", 7, &moved));
    OK(pario_write(file, "world", 5, NULL));
    OK(pario_tell(file, &at));
    CHECK(at == 12);
    OK(pario_seek(file, -5, PARIO_FROM_END, &at));
    CHECK(at == 7);
    OK(pario_read(file, got, sizeof got, &moved));
    CHECK(moved == 5 && !memcmp(got, "world", 5));
    OK(pario_seek(file, 3, PARIO_FROM_START, NULL));
    OK(pario_seek(file, 1, PARIO_FROM_HERE, &at));
    CHECK(at == 4);
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_seek(file, -9, PARIO_FROM_HERE, &at));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_seek(file, -1, PARIO_FROM_START, &at));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_seek(file, 0, 9, &at));
    /* At offsets the pointer stays. */
    OK(pario_write_at(file, 100, "x", 1, &moved));
    OK(pario_tell(file, &at));
    CHECK(at == 4);
    OK(pario_read_at(file, 95, got, 10, &moved));
    CHECK(moved == 6 && !memcmp(got, "\0\0\0\0\0x", 6));
    OK(pario_append(file, "end", 3, &at));
    CHECK(at == 101);
    OK(pario_truncate(file, 5));
    OK(pario_truncate(file, 8));
    OK(pario_read_at(file, 0, got, 10, &moved));
    CHECK(moved == 8 && !memcmp(got, "hello\0\0\0", 8));
    OK(pario_preallocate(file, 4096));
    OK(pario_preallocate(file, 10));
    OK(pario_size(file, &bytes));
    CHECK(bytes == 4096);
    OK(pario_allocated(file, &bytes));
    CHECK(bytes >= 4096);
    OK(pario_punch(file, 1, 3));
    OK(pario_punch(file, 2000, 1 << 20));
    OK(pario_punch(file, 8, 0));
    FAILS(PARIO_ERR_INVALID_ARGUMENT, pario_punch(file, 1, UINT64_MAX));
    OK(pario_read_at(file, 0, got, 10, &moved));
    CHECK(moved == 10 && !memcmp(got, "h\0\0\0o\0\0\0\0\0", 10));
    OK(pario_size(file, &bytes));
    CHECK(bytes == 4096);
    OK(pario_sync(file, &flag));
    OK(pario_set_atomic(file, 1));
    OK(pario_is_atomic(file, &flag));
    CHECK(flag);
    OK(pario_write_at(file, 0, "A", 1, NULL));
    OK(pario_set_atomic(file, 0));
    OK(pario_will_read(file, 0, 100));
    PARIO_INIT(info);
    OK(pario_stat(client, "/bytes", &info));
    CHECK(info.bytes == 4096);
    FAILS(PARIO_ERR_IN_USE, pario_unlink_unless_open(client, "/bytes"));
    OK(pario_close(file));
    /* Opening again cuts it off. */
    file = open_here(client, "/bytes", PARIO_WRITE | PARIO_TRUNCATE, NULL, NULL);
    OK(pario_size(file, &bytes));
    CHECK(bytes == 0);
    FAILS(PARIO_ERR_PERMISSION_DENIED, pario_read_at(file, 0, got, 1, NULL));
    OK(pario_close(file));
    file = open_here(client, "/bytes", PARIO_APPEND, NULL, NULL);
    OK(pario_write(file, "ab", 2, NULL));
    OK(pario_write_at(file, 0, "cd", 2, NULL));
    OK(pario_close(file));
    file = open_here(client, "/bytes", PARIO_READ, NULL, NULL);
    OK(pario_read_at(file, 0, got, 9, &moved));
    CHECK(moved == 4 && !memcmp(got, "abcd", 4));
    FAILS(PARIO_ERR_PERMISSION_DENIED, pario_write_at(file, 0, got, 1, NULL));
    OK(pario_close(file));
    {
        pario_open_options how;
        PARIO_INIT(how);
        how.flags = PARIO_READ | PARIO_CREATE | PARIO_EXCLUSIVE;
        FAILS(PARIO_ERR_EXISTS, pario_open(client, "/bytes", &how, &other));
        CHECK(other == NULL);
        OK(pario_create(client, "/new", NULL, &flag));
        CHECK(flag);
        OK(pario_create(client, "/new", NULL, &flag));
        CHECK(!flag);
    }
    file = open_here(client, "/gone", READ_WRITE | PARIO_DELETE_ON_CLOSE, NULL, NULL);
    OK(pario_close(file));
    OK(pario_exists(client, "/gone", &flag));
    CHECK(!flag);
}

static void shared_pointers(pario_client *client) {
    pario_open_options how;
    pario_file *one, *two;
    char got[8];
    uint64_t moved, at;
    PARIO_INIT(how);
    how.flags = READ_WRITE;
    how.shared_pointer = 7;
    OK(pario_open(client, "/shared", &how, &one));
    OK(pario_open(client, "/shared", &how, &two));
    OK(pario_write_shared(one, "abc", 3, &moved));
    OK(pario_write_shared(two, "def", 3, &moved));
    OK(pario_tell_shared(one, &at));
    CHECK(at == 6);
    OK(pario_seek_shared(two, 2, PARIO_FROM_START, &at));
    OK(pario_read_shared(one, got, 2, &moved));
    OK(pario_read_shared(two, got + 2, 2, &moved));
    CHECK(moved == 2 && !memcmp(got, "cdef", 4));
    OK(pario_close(one));
    OK(pario_close(two));
}

int main(int argc, char **argv) {
    pario_client *client;
    uint64_t number;
    begin(argc, argv);
    CHECK(!strcmp(pario_version(), "0.1.0"));
    client = connect_here();
    OK(pario_client_number(client, &number));
    names(client);
    arrays(client);
    bytes_of_files(client);
    shared_pointers(client);
    OK(pario_disconnect(client));
    return end();
}
