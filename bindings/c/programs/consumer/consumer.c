/* A program of somebody else, built against what is installed. */
#include <pario.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static double mine[64][64], columns[64][16];
    pario_client *client = NULL;
    pario_file *file;
    pario_open_options how;
    (void)argc;
    PARIO_INIT(how);
    how.flags = PARIO_READ | PARIO_WRITE | PARIO_CREATE;
    how.array = "f64[64,64]";
    how.layout = "(block, *) onto 4";
    mine[5][33] = 2.5;
    if (pario_connect(argv[1], NULL, &client) || pario_open(client, "/matrix", &how, &file)
        || pario_write_at(file, 0, mine, sizeof mine, NULL) || pario_set_view(file, 0, "(*, block) onto 4 [2]")
        || pario_read_at(file, 0, columns, sizeof columns, NULL) || pario_close(file) || pario_disconnect(client)) {
        fprintf(stderr, "%s\n", pario_last_error());
        return 1;
    }
    puts(columns[5][1] == 2.5 ? "all is well" : "the wrong columns");
    return 0;
}
