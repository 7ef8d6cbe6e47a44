/* Teams: processes and threads that work together, exchange bytes, and give arrays to each other and to other programs. A part
 * of pario.h, which includes it; what teams do with files stands there. */
#ifndef PARIO_TEAMS_H
#define PARIO_TEAMS_H

#include "pario.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When what a channel is given may be used again: once the other program has it, or once it is in one of two buffers. */
enum {
    PARIO_BLOCKING = 0,
    PARIO_DOUBLE_BUFFERED = 1
};

/* How a channel is opened. timeout_ms limits the wait for the other program, a minute if it is 0; buffering is said by the
 * program that gives. */
typedef struct pario_channel_options {
    size_t size;
    uint64_t timeout_ms;
    int buffering;
    int reserved;
} pario_channel_options;

/* --- Teams ---
 *
 * All members call the same of these in the same order; a message is for one of them.
 */

/* Joins a team by name; the rank is this one, or the next that is free. */
PARIO_API int pario_team_join(pario_client *client, const char *name, int rank, int size, pario_team **team);

/* A team of this process alone. */
PARIO_API int pario_team_alone(pario_team **team);

/* Members for so many threads of this process, by rank. */
PARIO_API int pario_team_threads(int size, pario_team **teams);

/* A member of a team that gathers bytes by a function of the program. */
PARIO_API int pario_team_by_gathering(
    int rank, int size, pario_gather_function gather, void *user, pario_team **team);

/* Leaves a team once what it does beside the program is done. */
PARIO_API int pario_team_leave(pario_team *team);

/* Rank of a member, and members in all. */
PARIO_API int pario_team_rank(pario_team *team, int *rank, int *size);

/* Waits until all members are here. */
PARIO_API int pario_team_barrier(pario_team *team);

/* Gives bytes of one member to all. */
PARIO_API int pario_team_broadcast(pario_team *team, int root, void *buffer, size_t bytes);

/* Gives bytes to all members, and gets as many of each, by rank. */
PARIO_API int pario_team_gather_all(pario_team *team, const void *mine, size_t bytes, void *all);

/* Gives each member its bytes, and gets those that each has for this one; parts lie one after the other, by rank. */
PARIO_API int pario_team_exchange(
    pario_team *team, const void *from, const uint64_t *from_bytes, void *to, const uint64_t *to_bytes);

/* Combines numbers of all members entry by entry, in their place. */
PARIO_API int pario_team_reduce_u64(pario_team *team, uint64_t *values, size_t count, int how);

/* Combines numbers of all members entry by entry, in their place. */
PARIO_API int pario_team_reduce_i64(pario_team *team, int64_t *values, size_t count, int how);

/* Combines numbers of all members entry by entry, in their place. */
PARIO_API int pario_team_reduce_f64(pario_team *team, double *values, size_t count, int how);

/* Sends a message to a member. */
PARIO_API int pario_team_send(pario_team *team, int to, uint64_t tag, const void *buffer, size_t bytes);

/* Waits for a message of a rank, or of any, with a tag, or with any. */
PARIO_API int pario_team_receive(pario_team *team, int from, uint64_t tag, char **bytes, pario_message *message);

/* The next message of a rank, or of any, if one has come. */
PARIO_API int pario_team_try_receive(pario_team *team, int from, uint64_t tag, char **bytes, pario_message *message);

/* Lets a team meet another that gives the same name; all members of both call it. */
PARIO_API int pario_team_meet(pario_team *team, pario_client *client, const char *name, pario_meeting **meeting);

/* Members of the other team. */
PARIO_API int pario_meeting_size(pario_meeting *meeting, int *other_size);

/* Sends a message to a rank of the other team. */
PARIO_API int pario_meeting_send(pario_meeting *meeting, int to, uint64_t tag, const void *buffer, size_t bytes);

/* Waits for a message of a rank of the other team, or of any. */
PARIO_API int pario_meeting_receive(
    pario_meeting *meeting, int from, uint64_t tag, char **bytes, pario_message *message);

/* The team of the members of both. */
PARIO_API int pario_meeting_team(pario_meeting *meeting, pario_team **team);

/* Ends a meeting; the teams go on. */
PARIO_API int pario_meeting_end(pario_meeting *meeting);

/* --- Arrays between the memories of a team --- */

/* Plans what all members have and want of an array of so many bytes. */
PARIO_API int pario_team_plan(
    pario_team *team, pario_view *source, pario_view *target, uint64_t array_bytes, pario_plan **plan);

/* Bytes of this member's part before and after. */
PARIO_API int pario_plan_bytes(pario_plan *plan, uint64_t *source_bytes, uint64_t *target_bytes);

/* Redistributes from one memory to another; all members call. */
PARIO_API int pario_plan_run(pario_plan *plan, const void *from, size_t from_bytes, void *to, size_t to_bytes);

/* Redistributes in place: source before, target after, with room for the longer one; all members call. */
PARIO_API int pario_plan_run_in_place(pario_plan *plan, void *memory, size_t bytes);

/* Ends a plan. */
PARIO_API int pario_plan_free(pario_plan *plan);

/* Memory that other processes of the same user and host read in place when it is redistributed. */
PARIO_API int pario_memory_new(size_t bytes, void **memory);

/* Gives back memory of pario_memory_new; a null pointer is fine. */
PARIO_API int pario_memory_free(void *memory);

/* --- Channels ---
 * An array goes from one program to another, turn after turn, and no file is stored. Each program has members, a layout and a
 * number of processes of its own. Both open the channel by the same name at the same service and plan once; all members call
 * the same functions in the same order. Parts are packed, in the order of the array. When a member of either program dies, or
 * a side ends without pario_channel_close, the calls of all others answer PARIO_ERR_UNREACHABLE; the channel is closed then and
 * may be opened again. */

/* Opens the side that gives an array such as "f64[64,48]" through a channel, this member the part that a view shows. Returns
 * when the program that takes has come. */
PARIO_API int pario_channel_source(
    pario_client *client, pario_team *team, const char *name, const char *array, pario_view *part,
    const pario_channel_options *options, pario_channel **channel);

/* Opens the side that takes. Returns when the program that gives has come. */
PARIO_API int pario_channel_target(
    pario_client *client, pario_team *team, const char *name, const char *array, pario_view *part,
    const pario_channel_options *options, pario_channel **channel);

/* Bytes of this member's part, members of the other program, and turns given or taken so far. */
PARIO_API int pario_channel_about(pario_channel *channel, uint64_t *part_bytes, int *other_size, uint64_t *turns);

/* Gives this member's part of the next turn. */
PARIO_API int pario_channel_put(pario_channel *channel, const void *from, size_t bytes);

/* Takes this member's part of the next turn; has_come is 0 if the other program has closed the channel. */
PARIO_API int pario_channel_get(pario_channel *channel, void *to, size_t bytes, int *has_come);

/* Closes a side. One that gives waits until the other has taken everything. */
PARIO_API int pario_channel_close(pario_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
