/* One of two coupled programs of MPI, each started by an mpiexec of its own, with as many processes as it likes:
 *
 *     mpiexec -n 3 coupled_mpi URL gives & mpiexec -n 2 coupled_mpi URL takes
 *
 * They may be of different MPI libraries: between them bytes go through Pario. */
#include "check.h"
#include <pario_mpi_team.h>

enum { ROWS = 50, COLUMNS = 37, STEPS = 4 };
static const char *const ARRAY = "i32[50,37]";

int main(int argc, char **argv) {
    pario_client *client;
    pario_mpi_team all;
    pario_channel_options how;
    pario_channel *channel;
    pario_view *part;
    int rank, size, level, gives, others, step, has_come, *field;
    char text[64];
    uint64_t bytes, i, at;
    begin(argc, argv);
    CHECK(argc > 2);
    gives = !strcmp(argv[2], "gives");
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level) == MPI_SUCCESS);
    client = connect_here();
    OK(pario_mpi_team_begin(MPI_COMM_WORLD, &all));
    OK(pario_team_rank(all.team, &rank, &size));
    sprintf(text, gives ? "(cyclic(4), *) onto %d [%d]" : "(*, block) onto %d [%d]", size, rank);
    OK(pario_view_parse(text, ARRAY, 0, &part));
    PARIO_INIT(how);
    if (gives) {
        how.buffering = PARIO_DOUBLE_BUFFERED;
        OK(pario_channel_source(client, all.team, "mpi", ARRAY, part, &how, &channel));
    } else
        OK(pario_channel_target(client, all.team, "mpi", ARRAY, part, &how, &channel));
    OK(pario_channel_about(channel, &bytes, &others, NULL));
    field = malloc(bytes);
    for (step = 0; step < STEPS; step++) {
        if (!gives) {
            memset(field, 0, bytes);
            OK(pario_channel_get(channel, field, bytes, &has_come));
            CHECK(has_come);
        }
        for (i = 0; i < bytes / sizeof *field; i++) {
            OK(pario_view_to_file(part, i * sizeof *field, &at));
            if (gives)
                field[i] = (int)(at / sizeof *field) * 10 + step;
            else
                CHECK(field[i] == (int)(at / sizeof *field) * 10 + step);
        }
        if (gives) OK(pario_channel_put(channel, field, bytes));
    }
    if (!gives) {
        OK(pario_channel_get(channel, field, bytes, &has_come));
        CHECK(!has_come);
    }
    OK(pario_channel_close(channel));
    OK(pario_view_free(part));
    OK(pario_mpi_team_end(&all));
    OK(pario_disconnect(client));
    free(field);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    if (rank == 0) printf("%d %s %d\n", size, gives ? "give" : "take", others);
    return rank == 0 ? end() : 0;
}
