/* Pario: parallel files for n-dimensional arrays. The C interface.
 *
 *     pario_client *client;
 *     pario_file *file;
 *     pario_open_options how;
 *     PARIO_INIT(how);
 *     how.flags = PARIO_READ | PARIO_WRITE | PARIO_CREATE;
 *     how.array = "f64[1024,1024]";
 *     if (pario_connect("dir:data", NULL, &client) || pario_open(client, "/matrix", &how, &file)
 *         || pario_set_view(file, 0, "(*, block) onto 4 [2]") || pario_write_at(file, 0, mine, bytes, NULL)
 *         || pario_close(file))
 *         fprintf(stderr, "%s\n", pario_last_error());
 *     pario_disconnect(client);
 *
 * Link with -lpario (pkg-config --cflags --libs pario).
 *
 * - Every function that can fail answers 0 or a code PARIO_ERR_*; pario_last_error says more, for the thread.
 * - Handles are numbers in the guise of pointers: what is closed, null or made up is refused with PARIO_ERR_BAD_HANDLE,
 *   whoever gives it, and so are handles of the parent process after a fork. Everything that was opened through a client
 *   is closed with it. All functions may be called by any thread; closing waits for calls that use the handle.
 * - Structs begin with their size: PARIO_INIT sets it, and all else to zero, which is the default. A null pointer to options
 *   is the same as all defaults.
 * - Texts are UTF-8. Those that a function gives are given back with pario_text_free.
 * - Places for results may be null where nothing is lost by it; handles and texts among them are null after a failure.
 */
#ifndef PARIO_H
#define PARIO_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PARIO_VERSION_MAJOR 0
#define PARIO_VERSION_MINOR 1
#define PARIO_VERSION_PATCH 0

#ifndef PARIO_API
#define PARIO_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Codes; a code never changes its number. */
enum {
    PARIO_OK = 0,
    PARIO_ERR_WRONG_VERSION = 1,
    PARIO_ERR_MALFORMED = 2,
    PARIO_ERR_TOO_LARGE = 3,
    PARIO_ERR_INVALID_ARGUMENT = 4,
    PARIO_ERR_UNSUPPORTED = 5,
    PARIO_ERR_NOT_FOUND = 6,
    PARIO_ERR_EXISTS = 7,
    PARIO_ERR_NOT_DIRECTORY = 8,
    PARIO_ERR_IS_DIRECTORY = 9,
    PARIO_ERR_NOT_EMPTY = 10,
    PARIO_ERR_PERMISSION_DENIED = 11,
    PARIO_ERR_UNAUTHENTICATED = 12,
    PARIO_ERR_BAD_CAPABILITY = 13,
    PARIO_ERR_EXPIRED_CAPABILITY = 14,
    PARIO_ERR_BAD_HANDLE = 15,
    PARIO_ERR_UNKNOWN_VIEW = 16,
    PARIO_ERR_STALE_LAYOUT = 17,
    PARIO_ERR_WRONG_INCARNATION = 18,
    PARIO_ERR_LOST = 19,
    PARIO_ERR_NO_SPACE = 20,
    PARIO_ERR_NO_MEMORY = 21,
    PARIO_ERR_QUOTA_EXCEEDED = 22,
    PARIO_ERR_BUSY = 23,
    PARIO_ERR_IO = 24,
    PARIO_ERR_CORRUPT = 25,
    PARIO_ERR_UNREACHABLE = 26,
    PARIO_ERR_TIMED_OUT = 27,
    PARIO_ERR_IN_USE = 28,
    PARIO_ERR_FENCED = 29,
    PARIO_ERR_SHUTTING_DOWN = 30,
    PARIO_ERR_INTERNAL = 31,
    PARIO_ERR_STALE_EPOCH = 32,
    PARIO_ERR_STALE_LEASE = 33,
    PARIO_ERR_FORGOTTEN = 34,
    PARIO_ERR_DAMAGED = 35
};

/* How a file is opened: add them up. */
enum {
    PARIO_READ = 1,
    PARIO_WRITE = 2,
    PARIO_APPEND = 4,
    PARIO_CREATE = 8,
    PARIO_EXCLUSIVE = 16,
    PARIO_TRUNCATE = 32,
    PARIO_UNIQUE = 64,
    PARIO_DELETE_ON_CLOSE = 128,
    PARIO_ATOMIC = 256
};

/* A switch that is not left alone (0). */
enum {
    PARIO_ON = 1,
    PARIO_OFF = 2
};

/* Where a pointer is moved from. */
enum {
    PARIO_FROM_START = 0,
    PARIO_FROM_HERE = 1,
    PARIO_FROM_END = 2
};

/* Kinds of names. */
enum {
    PARIO_DIRECTORY = 0,
    PARIO_FILE = 1
};

/* Which index of an array varies fastest: the last, or the first. */
enum {
    PARIO_ORDER_C = 0,
    PARIO_ORDER_FORTRAN = 1
};

/* Entries of arrays. */
enum {
    PARIO_NO_ELEMENT = 0,
    PARIO_BOOL = 1,
    PARIO_U8 = 2,
    PARIO_U16 = 3,
    PARIO_U32 = 4,
    PARIO_U64 = 5,
    PARIO_I8 = 6,
    PARIO_I16 = 7,
    PARIO_I32 = 8,
    PARIO_I64 = 9,
    PARIO_F16 = 10,
    PARIO_F32 = 11,
    PARIO_F64 = 12,
    PARIO_C64 = 13,
    PARIO_C128 = 14,
    PARIO_BYTES = 15
};

/* How a dimension is dealt out; block 0 is the default of its kind. */
enum {
    PARIO_COLLAPSED = 0,
    PARIO_BLOCK = 1,
    PARIO_CYCLIC = 2,
    PARIO_GEN_BLOCK = 3,
    PARIO_INDIRECT = 4
};

/* States of a move. */
enum {
    PARIO_MOVING = 0,
    PARIO_DONE = 1,
    PARIO_FAILED = 2,
    PARIO_PAUSED = 3,
    PARIO_WAITING = 4,
    PARIO_CANCELLING = 5,
    PARIO_CANCELLED = 6
};

/* What is made of two numbers. */
enum {
    PARIO_SUM = 0,
    PARIO_MIN = 1,
    PARIO_MAX = 2,
    PARIO_AND = 3,
    PARIO_OR = 4
};

/* Any rank of a team; as rank to join by, the next that is free. */
enum {
    PARIO_ANY_RANK = -1
};

/* What becomes of a time. */
enum {
    PARIO_KEEP_TIME = 0,
    PARIO_TIME_NOW = 1,
    PARIO_TIME_TO = 2
};

/* Makes all of a struct zero but its size. */
#define PARIO_INIT(it) (memset(&(it), 0, sizeof(it)), (void)((it).size = sizeof(it)))

/* Any tag of a message. */
#define PARIO_ANY_TAG UINT64_MAX

/* Handles. */
typedef struct pario_client pario_client;
typedef struct pario_file pario_file;
typedef struct pario_directory pario_directory;
typedef struct pario_layout pario_layout;
typedef struct pario_pattern pario_pattern;
typedef struct pario_view pario_view;
typedef struct pario_request pario_request;
typedef struct pario_team pario_team;
typedef struct pario_meeting pario_meeting;
typedef struct pario_move pario_move;
typedef struct pario_plan pario_plan;
typedef struct pario_channel pario_channel;
typedef struct pario_stream pario_stream;
typedef struct pario_vp pario_vp;

/* A hint of a program. */
typedef struct pario_hint {
    const char *name;
    const char *value;
} pario_hint;

/* How a program connects. */
typedef struct pario_connect_options {
    size_t size;
    const char *secret_file;
    const char *application;
    const pario_hint *hints;
    size_t hint_count;
    uint64_t timeout_ms;
    uint64_t rank;
    uint64_t processes;
    uint64_t servers;
    uint64_t memory_bytes;
    int direct;
    int checksums;
    int profile;
    int no_environment;
} pario_connect_options;

/* How a file is opened or created. */
typedef struct pario_open_options {
    size_t size;
    int flags;
    int mode;
    const char *array;
    const char *layout;
    const pario_hint *hints;
    size_t hint_count;
    const uint64_t *shape;
    size_t dimensions;
    int element;
    int order;
    uint64_t element_bytes;
    uint64_t shared_pointer;
    uint64_t expected_bytes;
    uint64_t expected_clients;
    uint64_t expected_access_bytes;
} pario_open_options;

/* What is known about a file or directory. */
typedef struct pario_stat_info {
    size_t size;
    uint64_t file;
    uint64_t bytes;
    uint64_t generation;
    int64_t accessed_ns;
    int64_t modified_ns;
    int64_t changed_ns;
    int kind;
    int mode;
    uint32_t owner;
    uint32_t group;
} pario_stat_info;

/* What array a file holds. */
typedef struct pario_array_info {
    size_t size;
    int element;
    int order;
    uint64_t element_bytes;
    uint64_t bytes;
    size_t dimensions;
    uint64_t shape[32];
} pario_array_info;

/* How one dimension of an array is dealt out. */
typedef struct pario_distribution {
    int kind;
    int reserved;
    uint64_t block;
    const uint64_t *list;
    size_t list_count;
} pario_distribution;

/* How a file is moved. */
typedef struct pario_move_options {
    size_t size;
    uint64_t limit_bytes;
    uint64_t window_bytes;
    uint64_t lanes;
    int in_place;
    int reserved;
} pario_move_options;

/* How far a move has come. */
typedef struct pario_progress {
    size_t size;
    uint64_t file;
    uint64_t generation;
    uint64_t moved_bytes;
    uint64_t total_bytes;
    uint64_t rate_bytes;
    uint64_t lanes;
    uint64_t limit_bytes;
    int state;
    int is_over;
} pario_progress;

/* A message of another member of a team. */
typedef struct pario_message {
    size_t size;
    uint64_t tag;
    uint64_t bytes;
    int from;
    int has_come;
} pario_message;

/* Hears how far a move has come; another answer than 0 ends the wait, not the move. */
typedef int (*pario_progress_function)(const pario_progress *progress, void *user);

/* Gathers bytes of all members of a team: mine has bytes[rank] of them, all gets those of all, by rank. Answers 0 for
 * success. It may be called by any thread, of which one is in it at a time. */
typedef int (*pario_gather_function)(void *user, const void *mine, const uint64_t *bytes, void *all);

/* --- Errors and the version --- */

/* Why the last call of this thread that failed did; valid until the next one that does. Never a null pointer. */
PARIO_API const char *pario_last_error(void);

/* Whether what failed last in this thread may succeed when it is called again. */
PARIO_API int pario_last_error_is_retryable(void);

/* What a code means, in one sentence; for any number. */
PARIO_API const char *pario_strerror(int code);

/* The errno of a code; EIO for a number that is none. */
PARIO_API int pario_to_errno(int code);

/* The version of the library, such as 0.1.0. */
PARIO_API const char *pario_version(void);

/* Gives back a text that a call has given. */
PARIO_API void pario_text_free(char *text);

/* --- Connecting --- */

/* Connects to what a URL names; to what PARIO_URL names if there is none. */
PARIO_API int pario_connect(const char *url, const pario_connect_options *options, pario_client **client);

/* Closes everything that was opened through a client, and the client. */
PARIO_API int pario_disconnect(pario_client *client);

/* The number of a client in its service. */
PARIO_API int pario_client_number(pario_client *client, uint64_t *number);

/* --- Names --- */

/* Removes the name of a file; its bytes go with its last handle. */
PARIO_API int pario_unlink(pario_client *client, const char *path);

/* Removes a file unless a client has it open. */
PARIO_API int pario_unlink_unless_open(pario_client *client, const char *path);

/* Removes an empty directory. */
PARIO_API int pario_rmdir(pario_client *client, const char *path);

/* Gives a file or directory another name; what has that name is replaced. */
PARIO_API int pario_rename(pario_client *client, const char *from, const char *to);

/* Creates a directory; mode 0 is the usual one. */
PARIO_API int pario_mkdir(pario_client *client, const char *path, int mode);

/* Creates a directory and those above it; one that exists is fine. */
PARIO_API int pario_mkdir_all(pario_client *client, const char *path, int mode);

/* Tells what is known about a file or directory, with the latest size. */
PARIO_API int pario_stat(pario_client *client, const char *path, pario_stat_info *info);

/* Whether there is a file or directory of this name. */
PARIO_API int pario_exists(pario_client *client, const char *path, int *exists);

/* Sets the permission bits. */
PARIO_API int pario_chmod(pario_client *client, const char *path, int mode);

/* Gives a file or directory to another owner or group; -1 leaves one as it is. */
PARIO_API int pario_chown(pario_client *client, const char *path, int64_t owner, int64_t group);

/* Sets the times of access and change. */
PARIO_API int pario_utimes(
    pario_client *client, const char *path, int accessed, int64_t accessed_ns, int modified, int64_t modified_ns);

/* Begins to read the names in a directory. */
PARIO_API int pario_opendir(pario_client *client, const char *path, pario_directory **directory);

/* The next name in a directory; null behind the last. Attributes have the latest size, as pario_stat has. */
PARIO_API int pario_readdir(pario_directory *directory, char **name, pario_stat_info *info);

/* Ends the reading of a directory. */
PARIO_API int pario_closedir(pario_directory *directory);

/* The array and the layout of a file, as they were written. */
PARIO_API int pario_layout_of(pario_client *client, const char *path, char **array, char **layout);

/* --- Open files --- */

/* Opens a file. */
PARIO_API int pario_open(
    pario_client *client, const char *path, const pario_open_options *options, pario_file **file);

/* Opens one subfile of a file as a file: its bytes, from 0 on, with a local pointer; for operators of the service (root and
 * the user who runs it), and for flags of reading and writing. Once the file has another layout, every access answers
 * PARIO_ERR_STALE_LAYOUT. */
PARIO_API int pario_open_subfile(
    pario_client *client, const char *path, uint64_t index, const pario_open_options *options, pario_file **file);

/* Which subfile a file was opened as: its number, how many there are, the generation of the layout, its length. */
PARIO_API int pario_subfile_about(
    pario_file *file, uint64_t *index, uint64_t *count, uint64_t *generation, uint64_t *bytes);

/* Opens a file together with the other members of a team. */
PARIO_API int pario_open_all(
    pario_client *client, pario_team *team, const char *path, const pario_open_options *options, pario_file **file);

/* Creates a file without opening it. */
PARIO_API int pario_create(pario_client *client, const char *path, const pario_open_options *options, int *is_new);

/* Closes a file once operations on it that run beside the program are done. */
PARIO_API int pario_close(pario_file *file);

/* Whether a file was created by this opening. */
PARIO_API int pario_is_new(pario_file *file, int *is_new);

/* The array that a file holds; element PARIO_NO_ELEMENT if its creator has not said so. */
PARIO_API int pario_array(pario_file *file, pario_array_info *info);

/* Writes an array as the layout language has it: f64[4096,4096]. */
PARIO_API int pario_array_text(
    int element, uint64_t element_bytes, const uint64_t *shape, size_t dimensions, int order, char **text);

/* The size of a file. */
PARIO_API int pario_size(pario_file *file, uint64_t *bytes);

/* Sets the size; what is added reads as zeros. */
PARIO_API int pario_truncate(pario_file *file, uint64_t bytes);

/* Commits space for the bytes below a size, and grows the file to it. */
PARIO_API int pario_preallocate(pario_file *file, uint64_t bytes);

/* Makes bytes of the file zero from an offset on and gives their space back; the size stays. */
PARIO_API int pario_punch(pario_file *file, uint64_t offset, uint64_t bytes);

/* Space that a file takes at all its servers. */
PARIO_API int pario_allocated(pario_file *file, uint64_t *bytes);

/* Makes what was written durable, where the stores can. */
PARIO_API int pario_sync(pario_file *file, int *is_durable);

/* Enters or leaves atomic mode: reads and writes of several processes do not mix. */
PARIO_API int pario_set_atomic(pario_file *file, int is_atomic);

/* Whether a file is in atomic mode. */
PARIO_API int pario_is_atomic(pario_file *file, int *is_atomic);

/* Adds hints to an open file. */
PARIO_API int pario_set_hints(pario_file *file, const pario_hint *hints, size_t count);

/* Adds hints to a file that a team has open; all members give the same. */
PARIO_API int pario_set_hints_all(pario_file *file, pario_team *team, const pario_hint *hints, size_t count);

/* Keeps hints with a file or directory, for it and everything below. */
PARIO_API int pario_keep_hints(
    pario_client *client, const char *path, const pario_hint *hints, size_t count, const char *const *unset,
    size_t unset_count);

/* Says what is going to be read, in bytes of the view. */
PARIO_API int pario_will_read(pario_file *file, uint64_t offset, uint64_t bytes);

/* --- Layouts --- */

/* Reads a layout in the layout language. */
PARIO_API int pario_layout_parse(const char *text, pario_layout **layout);

/* Dimensions of an array dealt out over a grid of processors, as HPF does it. */
PARIO_API int pario_layout_hpf(
    size_t dimensions, const pario_distribution *distributions, size_t grid_dimensions, const uint64_t *grid,
    int grid_order, pario_layout **layout);

/* Blocks of a file dealt out in turn. */
PARIO_API int pario_layout_striped(
    uint64_t block_bytes, size_t count, const uint64_t *servers, uint64_t start, pario_layout **layout);

/* Chunks of an array, each an element; or dealt out over servers if there are any. */
PARIO_API int pario_layout_chunks(
    size_t dimensions, const uint64_t *lengths, size_t count, const uint64_t *servers, pario_layout **layout);

/* Blocks of a file, each with its element; the list begins again behind its end. */
PARIO_API int pario_layout_blocks(
    uint64_t block_bytes, size_t blocks, const uint64_t *elements, pario_layout **layout);

/* One element of a layout, as views name it. */
PARIO_API int pario_layout_pick(pario_layout *of, uint64_t element, pario_layout **layout);

/* A layout with the server of each element. */
PARIO_API int pario_layout_place(pario_layout *of, const uint64_t *servers, size_t count, pario_layout **layout);

/* The layout of an array by HPF directives: "!HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO PROCS(3,4)". Lines are ended by newlines.
 * Without ONTO so many processes are arranged in a grid; 0 if that is not known. */
PARIO_API int pario_layout_directives(
    const char *text, const char *array, size_t dimensions, const uint64_t *extents, uint64_t processes,
    pario_layout **layout);

/* The layout of an array by the run-time descriptor of an HPF compiler, and the array. */
PARIO_API int pario_layout_run_time(const int *descriptor, size_t count, pario_layout **layout, char **array);

/* Extents of what an element of a layout has of an array. */
PARIO_API int pario_layout_extents(
    pario_layout *layout, uint64_t element, const char *array, size_t dimensions, uint64_t *extents);

/* A layout in the layout language. */
PARIO_API int pario_layout_text(pario_layout *layout, char **text);

/* Elements of a layout on an array, or on plain bytes if there is none. */
PARIO_API int pario_layout_elements(pario_layout *layout, const char *array, uint64_t *elements);

/* Ends a layout; what was made of it stays. */
PARIO_API int pario_layout_free(pario_layout *layout);

/* --- Patterns ---
 *
 * Made as MPI makes datatypes; a null pattern to make one of is a byte. Lengths and counts are in patterns, what
 * ends in _bytes in bytes. Patterns, layouts and views belong to no client and may be shared by threads.
 */

/* So many neighbouring bytes. */
PARIO_API int pario_pattern_bytes(int64_t bytes, pario_pattern **pattern);

/* A pattern so many times, one after the other by its extent. */
PARIO_API int pario_pattern_contiguous(int64_t count, pario_pattern *of, pario_pattern **pattern);

/* Blocks of a pattern, from the start of one to the start of the next so many extents. */
PARIO_API int pario_pattern_vector(
    int64_t count, int64_t block, int64_t stride, pario_pattern *of, pario_pattern **pattern);

/* Blocks of a pattern, from the start of one to the start of the next so many bytes. */
PARIO_API int pario_pattern_hvector(
    int64_t count, int64_t block, int64_t stride_bytes, pario_pattern *of, pario_pattern **pattern);

/* Blocks of a pattern, each of its own length, at places counted in extents. */
PARIO_API int pario_pattern_indexed(
    size_t count, const int64_t *blocks, const int64_t *places, pario_pattern *of, pario_pattern **pattern);

/* Blocks of a pattern, each of its own length, at places counted in bytes. */
PARIO_API int pario_pattern_hindexed(
    size_t count, const int64_t *blocks, const int64_t *places_bytes, pario_pattern *of, pario_pattern **pattern);

/* Several patterns, each so many times, at places counted in bytes. */
PARIO_API int pario_pattern_struct(
    size_t count, const int64_t *blocks, const int64_t *places_bytes, pario_pattern *const *of,
    pario_pattern **pattern);

/* A rectangular part of an array of a pattern. */
PARIO_API int pario_pattern_subarray(
    size_t dimensions, const int64_t *shape, const int64_t *part, const int64_t *start, int order, pario_pattern *of,
    pario_pattern **pattern);

/* The part of one process in an array that is dealt out over a grid of processes, as MPI_Type_create_darray has it. */
PARIO_API int pario_pattern_darray(
    int64_t processes, int64_t rank, size_t dimensions, const int64_t *shape, const int *kinds,
    const int64_t *arguments, const int64_t *grid, int order, pario_pattern *of, pario_pattern **pattern);

/* What an element of a layout has of an array that lies whole in memory, in the order of the element's bytes. */
PARIO_API int pario_pattern_of_layout(
    pario_layout *layout, uint64_t element, const char *array, pario_pattern **pattern);

/* A pattern with another beginning and extent. */
PARIO_API int pario_pattern_resized(int64_t begin, int64_t extent, pario_pattern *of, pario_pattern **pattern);

/* Bytes of a pattern, where it begins, and how far it is to the next. */
PARIO_API int pario_pattern_size(pario_pattern *pattern, uint64_t *bytes, int64_t *begin, int64_t *extent);

/* Where a byte of a pattern lies, counting only bytes that it has; behind its end it begins again. */
PARIO_API int pario_pattern_place(pario_pattern *pattern, uint64_t byte, int64_t *place);

/* Ends a pattern; what was made of it stays. */
PARIO_API int pario_pattern_free(pario_pattern *pattern);

/* --- Views ---
 *
 * A view is a set of bytes that recurs from its displacement on. array is a text such as "f64[4096,4096]", or null for
 * plain bytes.
 */

/* A view in the layout language, on an array or on plain bytes. */
PARIO_API int pario_view_parse(const char *text, const char *array, uint64_t displacement, pario_view **view);

/* A view of one element of a layout, on an array or on plain bytes. */
PARIO_API int pario_view_of_layout(
    pario_layout *layout, uint64_t element, const char *array, uint64_t displacement, pario_view **view);

/* A view of a pattern, again and again by its extent. */
PARIO_API int pario_view_of_pattern(pario_pattern *pattern, uint64_t displacement, pario_view **view);

/* The byte of a file that a byte of a view is. */
PARIO_API int pario_view_to_file(pario_view *view, uint64_t byte, uint64_t *offset);

/* The byte of a view that a byte of a file is, if it is one. */
PARIO_API int pario_file_to_view(pario_view *view, uint64_t offset, int *is_seen, uint64_t *byte);

/* Bytes of a view in a file of so many bytes. */
PARIO_API int pario_view_bytes(pario_view *view, uint64_t file_bytes, uint64_t *bytes);

/* Ends a view; files that show it go on doing so. */
PARIO_API int pario_view_free(pario_view *view);

/* Sets the view of a file in the layout language; the whole file for a null pointer. */
PARIO_API int pario_set_view(pario_file *file, uint64_t displacement, const char *text);

/* Sets the view of a file to one that was made. */
PARIO_API int pario_apply_view(pario_file *file, pario_view *view);

/* Sets the view of a file in the layout language while all other members of the team set theirs. */
PARIO_API int pario_set_view_all(pario_file *file, pario_team *team, const char *text);

/* Sets the view of a file to one that was made while all other members of the team set theirs. */
PARIO_API int pario_apply_view_all(pario_file *file, pario_team *team, pario_view *view);

/* --- Reading and writing ---
 *
 * Offsets are in bytes of the view. moved (may be null) is less than asked for only at the end of the file.
 */

/* Reads at an offset. */
PARIO_API int pario_read_at(pario_file *file, uint64_t offset, void *buffer, size_t bytes, uint64_t *moved);

/* Writes at an offset. */
PARIO_API int pario_write_at(pario_file *file, uint64_t offset, const void *buffer, size_t bytes, uint64_t *moved);

/* Reads at an offset into memory that a pattern describes. */
PARIO_API int pario_read_pattern_at(
    pario_file *file, uint64_t offset, void *base, pario_pattern *pattern, uint64_t count, uint64_t *moved);

/* Writes at an offset from memory that a pattern describes. */
PARIO_API int pario_write_pattern_at(
    pario_file *file, uint64_t offset, const void *base, pario_pattern *pattern, uint64_t count, uint64_t *moved);

/* Reads at the pointer of the file and moves it. */
PARIO_API int pario_read(pario_file *file, void *buffer, size_t bytes, uint64_t *moved);

/* Writes at the pointer of the file and moves it. */
PARIO_API int pario_write(pario_file *file, const void *buffer, size_t bytes, uint64_t *moved);

/* Reads at the pointer of the file into memory that a pattern describes, and moves it. */
PARIO_API int pario_read_pattern(
    pario_file *file, void *base, pario_pattern *pattern, uint64_t count, uint64_t *moved);

/* Writes at the pointer of the file from memory that a pattern describes, and moves it. */
PARIO_API int pario_write_pattern(
    pario_file *file, const void *base, pario_pattern *pattern, uint64_t count, uint64_t *moved);

/* Reads at the shared pointer and moves it. */
PARIO_API int pario_read_shared(pario_file *file, void *buffer, size_t bytes, uint64_t *moved);

/* Writes at the shared pointer and moves it. */
PARIO_API int pario_write_shared(pario_file *file, const void *buffer, size_t bytes, uint64_t *moved);

/* Writes behind the end of the file, wherever that is by then. */
PARIO_API int pario_append(pario_file *file, const void *buffer, size_t bytes, uint64_t *offset);

/* Moves the pointer of the file, in bytes of the view. */
PARIO_API int pario_seek(pario_file *file, int64_t offset, int whence, uint64_t *position);

/* Moves the shared pointer, in bytes of the view. */
PARIO_API int pario_seek_shared(pario_file *file, int64_t offset, int whence, uint64_t *position);

/* Where the pointer of the file stands. */
PARIO_API int pario_tell(pario_file *file, uint64_t *position);

/* Where the shared pointer stands. */
PARIO_API int pario_tell_shared(pario_file *file, uint64_t *position);

/* --- Beside the program ---
 *
 * Memory belongs to the operation until pario_wait or pario_test has said that it is done, or the file is
 * closed. Then the request is gone and the variable is null. Eight operations run at once; more wait for their turn.
 */

/* Begins to read at an offset. */
PARIO_API int pario_iread_at(pario_file *file, uint64_t offset, void *buffer, size_t bytes, pario_request **request);

/* Begins to write at an offset. */
PARIO_API int pario_iwrite_at(
    pario_file *file, uint64_t offset, const void *buffer, size_t bytes, pario_request **request);

/* Begins to read at an offset into memory that a pattern describes. */
PARIO_API int pario_iread_pattern_at(
    pario_file *file, uint64_t offset, void *base, pario_pattern *pattern, uint64_t count, pario_request **request);

/* Begins to write at an offset from memory that a pattern describes. */
PARIO_API int pario_iwrite_pattern_at(
    pario_file *file, uint64_t offset, const void *base, pario_pattern *pattern, uint64_t count,
    pario_request **request);

/* Begins to read at the pointer of the file, which is behind the bytes at once. */
PARIO_API int pario_iread(pario_file *file, void *buffer, size_t bytes, pario_request **request);

/* Begins to write at the pointer of the file, which is behind the bytes at once. */
PARIO_API int pario_iwrite(pario_file *file, const void *buffer, size_t bytes, pario_request **request);

/* Begins to read at the pointer of the file into memory that a pattern describes; the pointer is behind the bytes at once. */
PARIO_API int pario_iread_pattern(
    pario_file *file, void *base, pario_pattern *pattern, uint64_t count, pario_request **request);

/* Begins to write at the pointer of the file from memory that a pattern describes; the pointer is behind the bytes at once. */
PARIO_API int pario_iwrite_pattern(
    pario_file *file, const void *base, pario_pattern *pattern, uint64_t count, pario_request **request);

/* Waits until a request is done: what came of it, and the bytes moved. */
PARIO_API int pario_wait(pario_request **request, uint64_t *moved);

/* Waits until all requests of a list are done; the first failure if there is one. */
PARIO_API int pario_wait_all(size_t count, pario_request **requests, uint64_t *moved);

/* Whether a request is done, without waiting; if so it is as if it had been waited for. */
PARIO_API int pario_test(pario_request **request, int *is_done, uint64_t *moved);

/* Takes a request back if it has not begun; it has to be waited for in any case. */
PARIO_API int pario_cancel(pario_request *request, int *is_cancelled);

/* Lets a request go, which goes on; its memory is free when the file is closed. */
PARIO_API int pario_request_free(pario_request *request);

/* --- Together --- */

/* Reads together. */
PARIO_API int pario_read_at_all(
    pario_file *file, pario_team *team, uint64_t offset, void *buffer, size_t bytes, uint64_t *moved);

/* Writes together. */
PARIO_API int pario_write_at_all(
    pario_file *file, pario_team *team, uint64_t offset, const void *buffer, size_t bytes, uint64_t *moved);

/* Reads together into memory that a pattern describes. */
PARIO_API int pario_read_pattern_at_all(
    pario_file *file, pario_team *team, uint64_t offset, void *base, pario_pattern *pattern, uint64_t count,
    uint64_t *moved);

/* Writes together from memory that a pattern describes. */
PARIO_API int pario_write_pattern_at_all(
    pario_file *file, pario_team *team, uint64_t offset, const void *base, pario_pattern *pattern, uint64_t count,
    uint64_t *moved);

/* Begins to read together. */
PARIO_API int pario_iread_at_all(
    pario_file *file, pario_team *team, uint64_t offset, void *buffer, size_t bytes, pario_request **request);

/* Begins to write together. */
PARIO_API int pario_iwrite_at_all(
    pario_file *file, pario_team *team, uint64_t offset, const void *buffer, size_t bytes, pario_request **request);

/* Begins to read together into memory that a pattern describes. */
PARIO_API int pario_iread_pattern_at_all(
    pario_file *file, pario_team *team, uint64_t offset, void *base, pario_pattern *pattern, uint64_t count,
    pario_request **request);

/* Begins to write together from memory that a pattern describes. */
PARIO_API int pario_iwrite_pattern_at_all(
    pario_file *file, pario_team *team, uint64_t offset, const void *base, pario_pattern *pattern, uint64_t count,
    pario_request **request);

/* --- Moving files --- */

/* Begins to move a file into another layout. */
PARIO_API int pario_relayout(
    pario_client *client, const char *path, const char *layout, const pario_move_options *options,
    pario_move **relayout);

/* Begins to move the subfiles of a file to other servers. */
PARIO_API int pario_move_subfiles(
    pario_client *client, const char *path, const uint64_t *servers, size_t count, const pario_move_options *options,
    pario_move **relayout);

/* Follows a move that is under way, or was the last. */
PARIO_API int pario_follow_relayout(pario_client *client, const char *path, pario_move **relayout);

/* How far a move has come. */
PARIO_API int pario_relayout_progress(pario_move *relayout, pario_progress *progress);

/* Lets a move rest. */
PARIO_API int pario_relayout_pause(pario_move *relayout);

/* Lets a move go on. */
PARIO_API int pario_relayout_resume(pario_move *relayout);

/* Moves everything back. */
PARIO_API int pario_relayout_cancel(pario_move *relayout);

/* Lets a move take so many bytes a second at most; 0 is no limit. */
PARIO_API int pario_relayout_limit(pario_move *relayout, uint64_t bytes_per_second);

/* Waits until a move is over; the program's function hears how far it is, and may end the wait. */
PARIO_API int pario_relayout_wait(
    pario_move *relayout, pario_progress_function callback, void *user, pario_progress *progress);

/* Why a move failed, is paused or waits; an empty text if it does not. */
PARIO_API int pario_relayout_why(pario_move *relayout, char **text);

/* Stops following a move, which goes on. */
PARIO_API int pario_relayout_free(pario_move *relayout);

/* --- Reports, as JSON ---
 *
 * Texts to be given back with pario_text_free. Members are added in later versions.
 */

/* What was counted by a client and by the servers of its service. */
PARIO_API int pario_statistics(pario_client *client, char **json);

/* How the last access of a file went, and what was counted of its accesses. */
PARIO_API int pario_file_statistics(pario_file *file, char **json);

/* What became of the hints that an open file has heard of. */
PARIO_API int pario_hint_report(pario_file *file, char **json);

/* The layout of a file: how it is cut, which servers have which subfile, and why. */
PARIO_API int pario_layout_report(pario_client *client, const char *path, char **json);

/* What was observed of the use of a file. */
PARIO_API int pario_profile(pario_client *client, const char *path, char **json);

/* Forgets what was observed of a file. */
PARIO_API int pario_clear_profile(pario_client *client, const char *path);

/* Layouts that would suit what was observed of a file, best first; the search takes no longer than so many
 * milliseconds, or as long as it is worth for 0. */
PARIO_API int pario_advise(pario_client *client, const char *path, uint64_t budget_ms, char **json);

/* Where the bytes of a view of a file lie: which servers an access reaches, and how many bytes each has of it. What it
 * costs says the command pario explain. */
PARIO_API int pario_explain(pario_client *client, const char *path, const char *view, char **json);

#ifdef __cplusplus
}
#endif

#include "pario_teams.h"
#include "pario_stream.h"

#endif
