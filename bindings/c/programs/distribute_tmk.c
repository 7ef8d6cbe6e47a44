/* What TreadMarks has beside barriers: variables that are distributed, locks, conditions, memory that any process allocates. */
#include <stdio.h>
#include <string.h>

#include "pario_tmk.h"

enum { ROUNDS = 50, TURN = 100, LENGTH = 40 };

static int *shared;
static char words[3][LENGTH];
static double last;

int main(int argc, char **argv)
{
    int failures = 0;
    Tmk_startup(argc, argv);
    int me = (int)Tmk_proc_id, all = (int)Tmk_nprocs;
    for (int round = 0; round < ROUNDS; round++) {
        /* Several variables, by another process every time. */
        if (me == round % all) {
            if (round == 0)
                shared = Tmk_malloc(4000);
            snprintf(words[round % 3], LENGTH, "round %d by %d", round, me);
            last = round * 0.5;
            Tmk_distribute(&shared, sizeof shared);
            Tmk_distribute(words[round % 3], LENGTH);
            Tmk_distribute(&last, sizeof last);
        }
        Tmk_barrier((unsigned)round);
        char expected[LENGTH];
        snprintf(expected, LENGTH, "round %d by %d", round, round % all);
        if (strcmp(expected, words[round % 3]) || last < round * 0.5 || last > round * 0.5 || !shared) {
            fprintf(stderr, "process %d: '%s' in place of '%s'\n", me, words[round % 3], expected);
            failures++;
        }
        Tmk_lock_acquire(1);
        shared[round]++;
        Tmk_lock_release(1);
        if (round % 7 == 0)
            Tmk_barrier(1000);
    }
    Tmk_barrier(1001);
    for (int round = 0; round < ROUNDS; round++)
        failures += shared[round] != all;

    /* One after the other, by number. */
    Tmk_lock_acquire(2);
    while (shared[TURN] != me)
        Tmk_lock_cond_wait(2, 5);
    shared[TURN] = me + 1;
    if (me % 2)
        Tmk_lock_cond_broadcast(2, 5);
    else
        for (int process = 0; process < all; process++)
            Tmk_lock_cond_signal(2, 5);
    Tmk_lock_release(2);
    Tmk_barrier(1002);
    failures += shared[TURN] != all;

    /* A list whose parts come from all processes, and whose pointers go through shared memory. */
    struct part {
        struct part *next;
        int of;
    };
    Tmk_lock_acquire(3);
    struct part *part = Tmk_malloc(sizeof *part);
    part->of = me;
    memcpy(&part->next, shared + 200, sizeof part->next);
    memcpy(shared + 200, &part, sizeof part);
    Tmk_lock_release(3);
    Tmk_barrier(1003);
    int sum = 0, count = 0;
    memcpy(&part, shared + 200, sizeof part);
    for (; part; part = part->next) {
        sum += part->of;
        count++;
    }
    failures += count != all || sum != all * (all - 1) / 2;
    printf("process %d: %s\n", me, failures ? "failed" : "all is well");
    fflush(stdout);
    Tmk_exit(failures ? 1 : 0);
}
