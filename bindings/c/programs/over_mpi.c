/* A team of the processes of MPI: rows written together, columns read, and an array moved between memories. */
#include "check.h"
#include <pario_mpi_team.h>

int main(int argc, char **argv) {
    pario_client *client;
    pario_mpi_team all;
    pario_open_options how;
    pario_file *file;
    pario_view *rows, *columns;
    pario_plan *plan;
    int rank, size, i, level, mine[4 * 12], got[12 * 4], moved_here[12 * 4];
    char view[64];
    uint64_t moved;
    begin(argc, argv);
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level) == MPI_SUCCESS);
    client = connect_here();
    OK(pario_mpi_team_begin(MPI_COMM_WORLD, &all));
    OK(pario_team_rank(all.team, &rank, &size));
    CHECK(size == 3);
    PARIO_INIT(how);
    how.flags = READ_WRITE;
    how.array = "i32[12,12]";
    how.layout = "(*, block) onto 2";
    OK(pario_open_all(client, all.team, "/mpi", &how, &file));
    for (i = 0; i < 48; i++) mine[i] = rank * 48 + i;
    sprintf(view, "(block, *) onto 3 [%d]", rank);
    OK(pario_view_parse(view, "i32[12,12]", 0, &rows));
    OK(pario_apply_view_all(file, all.team, rows));
    OK(pario_write_at_all(file, all.team, 0, mine, sizeof mine, &moved));
    CHECK(moved == sizeof mine);
    OK(pario_team_barrier(all.team));
    sprintf(view, "(*, block) onto 3 [%d]", rank);
    OK(pario_view_parse(view, "i32[12,12]", 0, &columns));
    OK(pario_apply_view_all(file, all.team, columns));
    OK(pario_read_at_all(file, all.team, 0, got, sizeof got, &moved));
    for (i = 0; i < 48; i++) CHECK(got[i] == i / 4 * 12 + rank * 4 + i % 4);
    OK(pario_team_plan(all.team, rows, columns, 12 * 12 * sizeof(int), &plan));
    OK(pario_plan_run(plan, mine, sizeof mine, moved_here, sizeof moved_here));
    CHECK(!memcmp(moved_here, got, sizeof got));
    OK(pario_plan_free(plan));
    OK(pario_close(file));
    OK(pario_mpi_team_end(&all));
    OK(pario_disconnect(client));
    MPI_Finalize();
    return rank == 0 ? end() : 0;
}
