/* Members of a team as threads, for test programs: each calls a function with its team. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "check.h"
#include <pthread.h>

typedef struct {
    pario_client *client;
    pario_team *team;
    void (*work)(pario_client *client, pario_team *team);
} member;

static void *run_member(void *given) {
    member *mine = given;
    mine->work(mine->client, mine->team);
    return NULL;
}

/* Runs so many members, at most 8, to their end. */
static void run_members(pario_client *client, int size, void (*work)(pario_client *client, pario_team *team)) {
    pario_team *teams[8];
    pthread_t threads[8];
    member all[8];
    int i;
    OK(pario_team_threads(size, teams));
    for (i = 0; i < size; i++) {
        all[i].client = client;
        all[i].team = teams[i];
        all[i].work = work;
        CHECK(pthread_create(&threads[i], NULL, run_member, &all[i]) == 0);
    }
    for (i = 0; i < size; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        OK(pario_team_leave(teams[i]));
    }
}

#endif
