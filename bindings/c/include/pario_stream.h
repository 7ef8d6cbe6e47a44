/* Data-parallel streams: every virtual processor (VP) of a program has a stream of bytes of its own, inside one parallel file. A
 * part of pario.h, which includes it.
 *
 *     pario_stream *stream;
 *     pario_stream_options how;
 *     PARIO_INIT(how);
 *     how.shape = "[256][128]";
 *     if (pario_stream_open(client, team, "/s", "w", &how, &stream)
 *         || pario_stream_write(stream, NULL, values, 0, sizeof(double))
 *         || pario_stream_elemental(stream, negative, print_one, NULL)
 *         || pario_stream_close(stream))
 *         fprintf(stderr, "%s\n", pario_last_error());
 *
 * - All members of the team call the same functions in the same order, each for the VPs that it emulates. Their order in lists and
 *   in memory is that of pario_stream_vps.
 * - `active` has a byte for each VP of the member: 0 for those that take no part (where). A null pointer is all (everywhere),
 *   which is faster than a list of ones.
 * - `stride` is the distance of VPs in memory in bytes; 0 means that their bytes touch each other.
 * - What was written is in the file after pario_stream_flush or pario_stream_close; pario_disconnect does not close streams.
 */
#ifndef PARIO_STREAM_H
#define PARIO_STREAM_H

#include "pario.h"
#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Modes, from the fastest to the most general. */
enum {
    PARIO_NB = 0,
    PARIO_CB = 1,
    PARIO_IB = 2
};

/* How a stream file is opened. shape is such as "[256][128]", or null for that of the file; distribution is such as "(cyclic, *)",
 * or null for a block of VPs for each member; layout is how a new file is cut into subfiles. Sizes of blocks and superblocks,
 * pointers of directory entries, buffers for reading and the memory that buffers may take are chosen where they are 0. at_least
 * is the fastest mode that is taken, for comparisons. pad is read where a file of another program ends within a row of blocks. */
typedef struct pario_stream_options {
    size_t size;
    const char *shape;
    const char *distribution;
    const char *layout;
    uint64_t nb_block;
    uint64_t cb_block;
    uint64_t ib_block;
    uint64_t superblock;
    uint64_t pointers;
    uint64_t read_buffers;
    uint64_t memory_bytes;
    int at_least;
    int pad;
} pario_stream_options;

/* VPs in all and of this member; parts of operations by mode, calls for single VPs, exchanges about modes, array transfers,
 * requests of independent buffering, and how often the file was brought up to date. */
typedef struct pario_stream_info {
    size_t size;
    uint64_t vps;
    uint64_t mine;
    uint64_t nb;
    uint64_t cb;
    uint64_t ib;
    uint64_t elemental;
    uint64_t reductions;
    uint64_t transfers;
    uint64_t superblock_writes;
    uint64_t small_writes;
    uint64_t reads;
    uint64_t commits;
} pario_stream_info;

/* Called once for each active VP; another answer than 0 ends the call for all VPs of the member. */
typedef int (*pario_elemental_function)(pario_vp *vp, void *user);

/* Prints what a VP writes, whose number and place at the member it is given; another answer than 0 is a failure. */
typedef int (*pario_print_function)(uint64_t vp, size_t local, FILE *to, void *user);

/* Takes bytes of a VP, behind which there is a zero; answers how many it took. */
typedef size_t (*pario_scan_function)(uint64_t vp, size_t local, const char *text, size_t bytes, void *user);

/* --- For all active VPs --- */

/* Opens a file by the modes of fopen: r, r+, w, w+, a, a+. */
PARIO_API int pario_stream_open(
    pario_client *client, pario_team *team, const char *path, const char *access, const pario_stream_options *options,
    pario_stream **stream);

/* Makes everything that was written so far what the file has. */
PARIO_API int pario_stream_flush(pario_stream *stream);

/* Flushes and closes; says whether all that was written is in the file. */
PARIO_API int pario_stream_close(pario_stream *stream);

/* The shape of a file and how its writer dealt VPs to members; null texts for a file of another program. For one process. */
PARIO_API int pario_stream_record(pario_client *client, const char *path, char **shape, char **distribution);

/* How many VPs there are, and what was counted. */
PARIO_API int pario_stream_about(pario_stream *stream, pario_stream_info *info);

/* The numbers of this member's VPs. */
PARIO_API int pario_stream_vps(pario_stream *stream, uint64_t *numbers);

/* Writes as many bytes of every active VP. */
PARIO_API int pario_stream_write(
    pario_stream *stream, const uint8_t *active, const void *memory, size_t stride, size_t bytes);

/* Writes so many bytes of each active VP; the stride is given. */
PARIO_API int pario_stream_write_each(
    pario_stream *stream, const uint8_t *active, const void *memory, size_t stride, const size_t *bytes);

/* Reads up to as many bytes for every active VP: less at the end of its stream only. counts has how many. */
PARIO_API int pario_stream_read(
    pario_stream *stream, const uint8_t *active, void *memory, size_t stride, size_t bytes, uint64_t *counts);

/* Reads up to so many bytes for each active VP; the stride is given. */
PARIO_API int pario_stream_read_each(
    pario_stream *stream, const uint8_t *active, void *memory, size_t stride, const size_t *bytes, uint64_t *counts);

/* Begins to write; memory belongs to the request until it is complete (pario_wait, pario_test). */
PARIO_API int pario_stream_iwrite(
    pario_stream *stream, const uint8_t *active, const void *memory, size_t stride, size_t bytes, pario_request **request);

/* Begins to read; memory and counts belong to the request until it is complete. */
PARIO_API int pario_stream_iread(
    pario_stream *stream, const uint8_t *active, void *memory, size_t stride, size_t bytes, uint64_t *counts,
    pario_request **request);

/* Moves the active VPs: all to one place, by one distance, or to one distance from the end of each stream. */
PARIO_API int pario_stream_seek(pario_stream *stream, const uint8_t *active, int64_t offset, int whence);

/* Moves each active VP to a place of its own. */
PARIO_API int pario_stream_seek_each(pario_stream *stream, const uint8_t *active, const uint64_t *places);

/* Moves all VPs to the beginning. */
PARIO_API int pario_stream_rewind(pario_stream *stream);

/* Where each VP is. */
PARIO_API int pario_stream_tell(pario_stream *stream, uint64_t *places);

/* How many bytes each VP has. */
PARIO_API int pario_stream_lengths(pario_stream *stream, uint64_t *lengths);

/* Which VPs have come to their end with the last read (feof), and which had an operation that failed (ferror). */
PARIO_API int pario_stream_state(pario_stream *stream, uint8_t *at_end, uint8_t *has_failed);

/* Writes what a function prints for every active VP. Texts of one length go as fast as numbers do. */
PARIO_API int pario_stream_print(pario_stream *stream, const uint8_t *active, pario_print_function print, void *user);

/* Gives a function up to `most` bytes of every active VP, from where it is; the VP goes on behind those that the function took.
 * taken has how many each took. */
PARIO_API int pario_stream_scan(
    pario_stream *stream, const uint8_t *active, size_t most, pario_scan_function scan, void *user, uint64_t *taken);

/* Reads a line of every active VP, with its newline, into `stride` bytes each; a zero is behind it. counts has the lengths, 0 at the
 * end. */
PARIO_API int pario_stream_gets(
    pario_stream *stream, const uint8_t *active, void *lines, size_t stride, uint64_t *counts);

/* Writes a byte of every active VP. */
static inline int pario_stream_putc(pario_stream *stream, const uint8_t *active, const char *bytes) {
    return pario_stream_write(stream, active, bytes, 1, 1);
}

/* Reads a byte for every active VP; counts has 0 at the end. */
static inline int pario_stream_getc(pario_stream *stream, const uint8_t *active, char *bytes, uint64_t *counts) {
    return pario_stream_read(stream, active, bytes, 1, 1, counts);
}

/* Prints one of a list of texts. */
static inline int pario_stream_put_text(uint64_t vp, size_t local, FILE *to, void *user) {
    (void)vp;
    return fputs(((const char *const *)user)[local], to) < 0;
}

/* Writes a text of every active VP. */
static inline int pario_stream_puts(pario_stream *stream, const uint8_t *active, const char *const *texts) {
    union {
        const char *const *given;
        void *plain;
    } user;
    user.given = texts;
    return pario_stream_print(stream, active, pario_stream_put_text, user.plain);
}

/* --- For one VP, inside an elemental function --- */

/* Calls a function once for each active VP. It may do these things with the VP; no VP waits for another. */
PARIO_API int pario_stream_elemental(
    pario_stream *stream, const uint8_t *active, pario_elemental_function function, void *user);

/* The number of the VP, and its place at this member. */
PARIO_API int pario_vp_about(pario_vp *vp, uint64_t *number, size_t *local);

/* Writes bytes. */
PARIO_API int pario_vp_write(pario_vp *vp, const void *memory, size_t bytes);

/* Reads up to so many bytes. */
PARIO_API int pario_vp_read(pario_vp *vp, void *memory, size_t bytes, uint64_t *moved);

/* Moves the VP; place is where it is then. */
PARIO_API int pario_vp_seek(pario_vp *vp, int64_t offset, int whence, uint64_t *place);

/* Whether the last read came to the end. */
PARIO_API int pario_vp_eof(pario_vp *vp, int *at_end);

/* Reads a line, with its newline, into at most `room` bytes, the zero among them; an empty text at the end. */
PARIO_API int pario_vp_gets(pario_vp *vp, void *line, size_t room);

/* A FILE of stdio, for everything that takes one; the same each time. It is closed when the function returns, or by fclose. */
PARIO_API int pario_vp_file(pario_vp *vp, FILE **file);

#if defined(__GNUC__)
#define PARIO_FORMAT(kind, at, first) __attribute__((format(kind, at, first)))
#else
#define PARIO_FORMAT(kind, at, first)
#endif

/* Writes text by a format. */
static inline int pario_vp_vprintf(pario_vp *vp, const char *format, va_list values) PARIO_FORMAT(printf, 2, 0);
static inline int pario_vp_vprintf(pario_vp *vp, const char *format, va_list values) {
    FILE *file;
    int code = pario_vp_file(vp, &file);
    if (code != PARIO_OK) return code;
    return vfprintf(file, format, values) < 0 ? PARIO_ERR_IO : PARIO_OK;
}

/* Writes text by a format. */
static inline int pario_vp_printf(pario_vp *vp, const char *format, ...) PARIO_FORMAT(printf, 2, 3);
static inline int pario_vp_printf(pario_vp *vp, const char *format, ...) {
    va_list values;
    int code;
    va_start(values, format);
    code = pario_vp_vprintf(vp, format, values);
    va_end(values);
    return code;
}

/* Reads text by a format; found has what fscanf answers. */
static inline int pario_vp_scanf(pario_vp *vp, int *found, const char *format, ...) PARIO_FORMAT(scanf, 3, 4);
static inline int pario_vp_scanf(pario_vp *vp, int *found, const char *format, ...) {
    va_list values;
    FILE *file;
    int code = pario_vp_file(vp, &file);
    if (code != PARIO_OK) return code;
    va_start(values, format);
    *found = vfscanf(file, format, values);
    va_end(values);
    return ferror(file) ? PARIO_ERR_IO : PARIO_OK;
}

/* Writes a byte. */
static inline int pario_vp_putc(pario_vp *vp, char byte) {
    return pario_vp_write(vp, &byte, 1);
}

/* Reads a byte; EOF at the end. */
static inline int pario_vp_getc(pario_vp *vp, int *byte) {
    unsigned char read = 0;
    uint64_t moved;
    int code = pario_vp_read(vp, &read, 1, &moved);
    *byte = moved ? read : EOF;
    return code;
}

/* Writes a text. */
static inline int pario_vp_puts(pario_vp *vp, const char *text) {
    return pario_vp_write(vp, text, strlen(text));
}

#ifdef __cplusplus
}
#endif

#endif
