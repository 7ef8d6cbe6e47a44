/* A particle code: every cell of a grid is a virtual processor, and writes the particles that are in it, step by step. What it finds
 * wrong goes to a log, where it finds it. The file is read by another number of processes.
 *
 *     mpiexec -n 3 particles URL writes && mpiexec -n 2 particles URL reads       (compiled with -DOVER_MPI)
 *     particles URL writes 0 2 & particles URL writes 1 2                         (two processes that meet by name)
 *     particles URL                                                               (one process does both)
 */
#include "check.h"
#ifdef OVER_MPI
#include <pario_mpi_team.h>
#endif

enum { STEPS = 8, CELLS = 120 };

static uint64_t particles(uint64_t cell, uint64_t step) {
    return (cell * 7 + step * 3) % 5;
}

static double place(uint64_t cell, uint64_t step, uint64_t particle) {
    return (double)cell + (double)step / 16 + (double)particle / 256;
}

static pario_stream *open_stream(
    pario_client *client, pario_team *team, const char *path, const char *access, const char *shape,
    const char *distribution, uint64_t *cells, size_t *count) {
    pario_stream_options how;
    pario_stream_info info;
    pario_stream *stream;
    PARIO_INIT(how);
    how.shape = shape;
    how.distribution = distribution;
    OK(pario_stream_open(client, team, path, access, &how, &stream));
    PARIO_INIT(info);
    OK(pario_stream_about(stream, &info));
    *count = (size_t)info.mine;
    OK(pario_stream_vps(stream, cells));
    return stream;
}

static int write_cell(pario_vp *vp, void *user) {
    uint64_t cell, n, step = *(uint64_t *)user;
    double where;
    OK(pario_vp_about(vp, &cell, NULL));
    for (n = 0; n < particles(cell, step); n++) {
        where = place(cell, step, n);
        OK(pario_vp_write(vp, &where, sizeof where));
    }
    return 0;
}

static int log_cell(pario_vp *vp, void *user) {
    return pario_vp_printf(vp, "step %d: no particle left\n", (int)*(uint64_t *)user);
}

static void write_particles(pario_client *client, pario_team *team) {
    uint64_t cells[CELLS], counts[CELLS], step;
    uint8_t empty[CELLS];
    size_t count, i;
    pario_stream *log, *stream = open_stream(client, team, "/particles", "w", "[12][10]", "(block, *)", cells, &count);
    for (step = 0; step < STEPS; step++) {
        for (i = 0; i < count; i++) {
            counts[i] = particles(cells[i], step);
            empty[i] = counts[i] == 0;
        }
        /* How many there are is one number of every cell, so all cells go together; the particles are not. */
        OK(pario_stream_write(stream, NULL, counts, 0, sizeof counts[0]));
        OK(pario_stream_elemental(stream, NULL, write_cell, &step));
        /* The log is opened, printed to and closed where there is something to say. */
        log = open_stream(client, team, "/log", step ? "a" : "w", "[12][10]", "(block, *)", cells, &count);
        OK(pario_stream_elemental(log, empty, log_cell, &step));
        OK(pario_stream_close(log));
    }
    OK(pario_stream_close(stream));
}

static uint64_t found;

static int read_cell(pario_vp *vp, void *user) {
    uint64_t cell, count, step, n, moved;
    double where;
    (void)user;
    OK(pario_vp_about(vp, &cell, NULL));
    for (step = 0; step < STEPS; step++) {
        OK(pario_vp_read(vp, &count, sizeof count, &moved));
        CHECK(moved == sizeof count && count == particles(cell, step));
        for (n = 0; n < count; n++, found++) {
            OK(pario_vp_read(vp, &where, sizeof where, &moved));
            CHECK(moved == sizeof where && where == place(cell, step, n));
        }
    }
    return 0;
}

static int read_log(pario_vp *vp, void *user) {
    uint64_t cell;
    int step, of_log, got, at_end;
    char byte;
    (void)user;
    OK(pario_vp_about(vp, &cell, NULL));
    for (step = 0; step < STEPS; step++) {
        if (particles(cell, (uint64_t)step) > 0) continue;
        OK(pario_vp_scanf(vp, &got, "step %d: no particle left%c", &of_log, &byte));
        CHECK(got == 2 && of_log == step && byte == '\n');
    }
    OK(pario_vp_read(vp, &byte, 1, NULL));
    OK(pario_vp_eof(vp, &at_end));
    CHECK(at_end);
    return 0;
}

static void read_particles(pario_client *client, pario_team *team) {
    uint64_t cells[CELLS], all = 0, cell, step;
    size_t count;
    pario_stream *stream = open_stream(client, team, "/particles", "r", NULL, "(*, cyclic)", cells, &count);
    OK(pario_stream_elemental(stream, NULL, read_cell, NULL));
    OK(pario_stream_close(stream));
    OK(pario_team_reduce_u64(team, &found, 1, PARIO_SUM));
    for (cell = 0; cell < CELLS; cell++)
        for (step = 0; step < STEPS; step++) all += particles(cell, step);
    CHECK(found == all);
    stream = open_stream(client, team, "/log", "r", NULL, "(cyclic, *)", cells, &count);
    OK(pario_stream_elemental(stream, NULL, read_log, NULL));
    OK(pario_stream_close(stream));
}

int main(int argc, char **argv) {
    pario_client *client;
    pario_team *team;
    int rank, writes, reads;
#ifdef OVER_MPI
    int level;
    pario_mpi_team all;
#endif
    begin(argc, argv);
    writes = argc < 3 || !strcmp(argv[2], "writes");
    reads = argc < 3 || !strcmp(argv[2], "reads");
    client = connect_here();
#ifdef OVER_MPI
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level) == MPI_SUCCESS);
    OK(pario_mpi_team_begin(MPI_COMM_WORLD, &all));
    team = all.team;
#else
    if (argc > 4)
        OK(pario_team_join(client, argv[2], atoi(argv[3]), atoi(argv[4]), &team));
    else
        OK(pario_team_alone(&team));
#endif
    OK(pario_team_rank(team, &rank, NULL));
    if (writes) write_particles(client, team);
    if (reads) read_particles(client, team);
#ifdef OVER_MPI
    OK(pario_mpi_team_end(&all));
    CHECK(MPI_Finalize() == MPI_SUCCESS);
#else
    OK(pario_team_leave(team));
#endif
    OK(pario_disconnect(client));
    return rank == 0 ? end() : 0;
}
