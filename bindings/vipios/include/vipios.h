/* vipios.h: the native calls of ViPIOS (Vienna Parallel Input Output System) on Pario.
 *
 *     #include <vipios.h>          cc program.c $(pkg-config --cflags --libs vipios)
 *
 * The names, arguments and meanings are those of the source, E. Schikuta and others: ViPIOS, the Vienna Parallel Input Output
 * System, appendix A. Where the source contradicts itself this header says what holds here ("Corrected" below). Calls with a 64
 * in their names are ours: the originals count in int, and so end at 2 GiB.
 *
 * Return values are those of the source, of two kinds:
 *   bool   true if it succeeded
 *   int    0 if it succeeded, else a code below 0: VIPIOS_ERR_x has the number -code
 * ViPIOS_Error_code() and ViPIOS_Error_text() tell what the last call of the thread that failed came to. No handle, closed, made up or
 * of a parent process, and no null pointer crashes a call. Threads may call at the same time.
 *
 * Every access is atomic: others see it whole or not at all (ViPIOS_Set_atomic(fid, 0) ends that for a file, and is faster). Several accesses are
 * not: there is no commit over several requests.
 *
 * Corrected, with the section of the source:
 *   A.1.2    there is no shutdown by any client: servers are ended by administrators only (the sample of A.2.2 does it)
 *   A.1.3    SEEK_END moves to the end plus the offset; Test and Wait do what their names say (their headings are swapped)
 *   A.2.2    ViPIOS_Read and ViPIOS_Write have four arguments (the sample gives three, and reads a name that was never set)
 *   A.2.2    skip is what is jumped over behind all blocks, and no displacement in front of them
 *   4.5.1    stride is the gap between two repetitions, and there is none behind the last one
 *   6.3.4    the position formula counts whole units of the subtype (blocks * sub_count): position 143 of its example is 313
 *   4.5      accesses go through the mapping function, writes too, and move the pointer
 *   6.3.4    each request has a number and a count of its own; any number of them may be outstanding on a file
 *   A, 6.3.3 there is no limit to descriptors (1024 bytes), files (10 + 5 + ...) and names (80 characters)
 */
#ifndef VIPIOS_H
#define VIPIOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VIPIOS_API __attribute__((visibility("default")))
#else
#define VIPIOS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Numbers ---- */

/* How a file is opened: one of the first three, and any of the others (5.1.1: READ, WRITE, CREATE, EXCLUSIVE). */
enum {
    VIPIOS_R = 1,
    VIPIOS_W = 2,
    VIPIOS_RW = 3,
    VIPIOS_CREATE = 4,
    VIPIOS_EXCLUSIVE = 8,
    VIPIOS_DELETE_ON_CLOSE = 16,
    VIPIOS_UNIQUE = 32
};

/* Where a seek counts from: the numbers of SEEK_SET, SEEK_CUR and SEEK_END of stdio.h. */
enum {
    VIPIOS_SEEK_SET = 0,
    VIPIOS_SEEK_CUR = 1,
    VIPIOS_SEEK_END = 2
};

/* The place that means: at the pointer of the file, which moves. */
enum {
    VIPIOS_AT_POINTER = -1
};

/* Why a call failed: the numbers of pario.h. */
enum {
    VIPIOS_ERR_WRONG_VERSION = 1,
    VIPIOS_ERR_MALFORMED = 2,
    VIPIOS_ERR_TOO_LARGE = 3,
    VIPIOS_ERR_INVALID_ARGUMENT = 4,
    VIPIOS_ERR_UNSUPPORTED = 5,
    VIPIOS_ERR_NOT_FOUND = 6,
    VIPIOS_ERR_EXISTS = 7,
    VIPIOS_ERR_NOT_DIRECTORY = 8,
    VIPIOS_ERR_IS_DIRECTORY = 9,
    VIPIOS_ERR_NOT_EMPTY = 10,
    VIPIOS_ERR_PERMISSION_DENIED = 11,
    VIPIOS_ERR_UNAUTHENTICATED = 12,
    VIPIOS_ERR_BAD_CAPABILITY = 13,
    VIPIOS_ERR_EXPIRED_CAPABILITY = 14,
    VIPIOS_ERR_BAD_HANDLE = 15,
    VIPIOS_ERR_UNKNOWN_VIEW = 16,
    VIPIOS_ERR_STALE_LAYOUT = 17,
    VIPIOS_ERR_WRONG_INCARNATION = 18,
    VIPIOS_ERR_LOST = 19,
    VIPIOS_ERR_NO_SPACE = 20,
    VIPIOS_ERR_NO_MEMORY = 21,
    VIPIOS_ERR_QUOTA_EXCEEDED = 22,
    VIPIOS_ERR_BUSY = 23,
    VIPIOS_ERR_IO = 24,
    VIPIOS_ERR_CORRUPT = 25,
    VIPIOS_ERR_UNREACHABLE = 26,
    VIPIOS_ERR_TIMED_OUT = 27,
    VIPIOS_ERR_IN_USE = 28,
    VIPIOS_ERR_FENCED = 29,
    VIPIOS_ERR_SHUTTING_DOWN = 30,
    VIPIOS_ERR_INTERNAL = 31,
    VIPIOS_ERR_STALE_EPOCH = 32,
    VIPIOS_ERR_STALE_LEASE = 33,
    VIPIOS_ERR_FORGOTTEN = 34,
    VIPIOS_ERR_DAMAGED = 35
};

/* ---- Access descriptors ---- */

/* A descriptor moves a place in the file. For each block: it goes offset bytes on; then repeat times count units are
 * transferred, and between two repetitions, not behind the last, it goes stride bytes on. After all blocks it goes skip bytes on.
 * Then the pattern begins again.
 *
 *     offset 1, repeat 3, count 2, stride 3, skip 2
 *            .##...##...##..|.##...##...##..|       extent 15, accessible 6
 *
 * A unit is a byte if subtype is null, else the whole pattern of the subtype, holes and skip included. offset, stride and skip may be
 * negative: then bytes are read in another order, or again (a mapping function psi that repeats records); writing a byte
 * of the file twice in one access is refused. repeat, count and no_blocks are 0 or more; where one is 0 nothing is transferred.
 * A descriptor may be part of several others, but not of itself; at most 64 levels.
 *
 * sub_count and sub_actual are results: ViPIOS_Fill_access_desc stores them, and no call reads them. */
typedef struct Access_Desc Access_Desc;
typedef struct basic_block {
    int offset;
    int repeat;
    int count;
    int stride;
    Access_Desc *subtype;
    int sub_count;  /* bytes of a unit, holes included */
    int sub_actual; /* bytes of a unit that are transferred */
} basic_block;
struct Access_Desc {
    int no_blocks;
    basic_block *basics;
    int skip;
};

/* The same, counting in 64 bits. */
typedef struct Access_Desc64 Access_Desc64;
typedef struct basic_block64 {
    int64_t offset;
    int64_t repeat;
    int64_t count;
    int64_t stride;
    Access_Desc64 *subtype;
    int64_t sub_count;
    int64_t sub_actual;
} basic_block64;
struct Access_Desc64 {
    int64_t no_blocks;
    basic_block64 *basics;
    int64_t skip;
};

/* Stores sub_count and sub_actual of all blocks of a descriptor and of those in it, and tells how far it moves (extent) and how many
 * bytes it transfers (actual). Null pointers for what is not wanted. */
VIPIOS_API int ViPIOS_Fill_access_desc(Access_Desc *desc, int *extent, int *actual);
VIPIOS_API int ViPIOS_Fill_access_desc64(Access_Desc64 *desc, int64_t *extent, int64_t *actual);

/* Where byte `offset` of a descriptor lies, counting only bytes that are transferred; behind its end it begins again. */
VIPIOS_API int ViPIOS_Get_absolute_byte_position(const Access_Desc *desc, int offset, int *position);
VIPIOS_API int ViPIOS_Get_absolute_byte_position64(const Access_Desc64 *desc, int64_t offset, int64_t *position);

/* Writes a mapping function psi as a descriptor: records of so many bytes, counted from 1 as the model of 4.5 does, in any order and
 * repeated as wanted. `blocks` has room for as many blocks as there are records, and is what the descriptor points at. */
VIPIOS_API int ViPIOS_Describe_psi(int64_t record_bytes, int64_t count, const int64_t *records, basic_block64 *blocks,
                                   Access_Desc64 *desc);

/* ---- Connection ---- */

/* Connects this process. 0 is the service that PARIO_URL names, else the directory .pario, which processes serve themselves. Other numbers
 * are lines "NUMBER URL" of the file that VIPIOS_SYSTEMS names, else of ~/.config/vipios/systems or /etc/vipios/systems. */
VIPIOS_API bool ViPIOS_Connect(int system_id);

/* Closes all files once their requests are done, and ends the connection. */
VIPIOS_API bool ViPIOS_Disconnect(void);

/* Ends all server processes once everything is stored, and the connection. For administrators: whoever may not is refused, and the
 * service goes on. */
VIPIOS_API bool ViPIOS_Shutdown(void);

/* ---- Files ---- */

/* Opens a file, or creates it (VIPIOS_CREATE). fid is -1 if that fails. */
VIPIOS_API bool ViPIOS_Open(const char *filename, int flags, int *fid);

/* Closes a file once its requests are done. Every later call with its number fails. */
VIPIOS_API bool ViPIOS_Close(int fid);

/* Removes a file: VIPIOS_ERR_NOT_FOUND if there is none, VIPIOS_ERR_IN_USE while a program has it open. */
VIPIOS_API bool ViPIOS_Remove(const char *filename);

/* Cuts a file off, or extends it by zeros, to so many bytes. */
VIPIOS_API int ViPIOS_File_set_size(int fid, int size);
VIPIOS_API int ViPIOS_File_set_size64(int fid, int64_t size);

/* The bytes of a file. */
VIPIOS_API int ViPIOS_File_get_size(int fid, int *size);
VIPIOS_API int ViPIOS_File_get_size64(int fid, int64_t *size);

/* Makes what was written to a file durable. */
VIPIOS_API int ViPIOS_File_sync(int fid);

/* Whether accesses of this file are atomic; they are unless this is called with 0. */
VIPIOS_API int ViPIOS_Set_atomic(int fid, int is_atomic);

/* ---- Access ---- */

/* Reads or writes count bytes. With offset -1 at the pointer, which moves by the bytes transferred; else at byte `offset` of the file,
 * and the pointer stays. At the end of the file fewer bytes are read, perhaps none: ViPIOS_File_get_count and Vipios_IOState tell. */
VIPIOS_API bool ViPIOS_Read(int fid, void *buf, int count, int offset);
VIPIOS_API bool ViPIOS_Write(int fid, const void *buf, int count, int offset);
VIPIOS_API bool ViPIOS_Read64(int fid, void *buf, int64_t count, int64_t offset);
VIPIOS_API bool ViPIOS_Write64(int fid, const void *buf, int64_t count, int64_t offset);

/* Reads or writes len bytes through a descriptor that begins at byte `offset` of the file and is repeated as often as needed; 0 is
 * the descriptor once. `at` counts the bytes that the descriptor shows: -1 is the pointer, which moves by the bytes transferred; any
 * other place leaves it. The pointer is one number: bytes of the file for ViPIOS_Read, bytes shown by the descriptor here. */
VIPIOS_API int ViPIOS_Read_struct(int fid, void *buf, int len, const Access_Desc *desc, int offset, int at);
VIPIOS_API int ViPIOS_Write_struct(int fid, const void *buf, int len, const Access_Desc *desc, int offset, int at);
VIPIOS_API int ViPIOS_Read_struct64(int fid, void *buf, int64_t len, const Access_Desc64 *desc, int64_t offset, int64_t at);
VIPIOS_API int ViPIOS_Write_struct64(int fid, const void *buf, int64_t len, const Access_Desc64 *desc, int64_t offset, int64_t at);

/* INSERT of the model (4.5): bytes before place `offset` (-1: the pointer, which moves); what was there moves behind them. */
VIPIOS_API int ViPIOS_Insert(int fid, const void *buf, int count, int offset);
VIPIOS_API int ViPIOS_Insert64(int fid, const void *buf, int64_t count, int64_t offset);

/* ---- Requests ---- */

/* Begin an access and return at once. The pointer moves by all bytes asked for, at once. The memory belongs to the request until it is
 * done; the descriptor may be changed at once. reqid is -1 if the call fails. */
VIPIOS_API bool ViPIOS_Iread(int fid, void *buf, int count, int offset, int *reqid);
VIPIOS_API bool ViPIOS_Iwrite(int fid, const void *buf, int count, int offset, int *reqid);
VIPIOS_API bool ViPIOS_Iread64(int fid, void *buf, int64_t count, int64_t offset, int *reqid);
VIPIOS_API bool ViPIOS_Iwrite64(int fid, const void *buf, int64_t count, int64_t offset, int *reqid);
VIPIOS_API int ViPIOS_Iread_struct(int fid, void *buf, int len, const Access_Desc *desc, int offset, int at, int *reqid);
VIPIOS_API int ViPIOS_Iwrite_struct(int fid, const void *buf, int len, const Access_Desc *desc, int offset, int at, int *reqid);
VIPIOS_API int ViPIOS_Iread_struct64(int fid, void *buf, int64_t len, const Access_Desc64 *desc, int64_t offset, int64_t at,
                                     int *reqid);
VIPIOS_API int ViPIOS_Iwrite_struct64(int fid, const void *buf, int64_t len, const Access_Desc64 *desc, int64_t offset, int64_t at,
                                      int *reqid);

/* Whether a request is done, without waiting. The code is that of the request if it is. */
VIPIOS_API int ViPIOS_File_Test(int reqid, int *flag);

/* Waits until a request is done; the code is that of the request. What became of it can be asked again, until 65536 later ones were
 * waited for. */
VIPIOS_API int ViPIOS_File_Wait(int reqid);

/* The bytes that a request has transferred; VIPIOS_ERR_BUSY while it is not done. */
VIPIOS_API int ViPIOS_Request_get_count(int reqid, int *count);
VIPIOS_API int ViPIOS_Request_get_count64(int reqid, int64_t *count);

/* ---- Pointer and state ---- */

/* Moves the pointer, in bytes of the file; SEEK_END is the end plus offset. */
VIPIOS_API bool ViPIOS_Seek(int fid, int offset, int base);
VIPIOS_API bool ViPIOS_Seek64(int fid, int64_t offset, int base);

/* Moves the pointer, in bytes that a descriptor shows of the file from its beginning on; SEEK_END is behind the last such byte. */
VIPIOS_API bool ViPIOS_Seek_struct(int fid, int offset, int base, const Access_Desc *desc);
VIPIOS_API bool ViPIOS_Seek_struct64(int fid, int64_t offset, int base, const Access_Desc64 *desc);

/* Where the pointer is. */
VIPIOS_API int ViPIOS_File_get_position(int fid, int *pos);
VIPIOS_API int ViPIOS_File_get_position64(int fid, int64_t *pos);

/* The bytes that the last access of a file has transferred: the last that returned, or whose end was waited for or tested. */
VIPIOS_API int ViPIOS_File_get_count(int fid, int *count);
VIPIOS_API int ViPIOS_File_get_count64(int fid, int64_t *count);

/* The state of a file's last access, or of a request. */
typedef struct ViPIOS_State {
    int handle;             /* what was asked about */
    int error;              /* 0, or VIPIOS_ERR_x: of the access, or VIPIOS_ERR_BAD_HANDLE */
    int is_end_of_file;     /* fewer bytes than asked for were read, because the file ends there */
    int is_done;            /* no request of the file is outstanding; the request is done */
    int outstanding;        /* requests that are not done */
    int reserved;
    int64_t requested;      /* bytes asked for */
    int64_t count;          /* bytes transferred */
    int64_t position;       /* of the pointer; -1 for a request */
    char text[232];         /* of the error */
} ViPIOS_State;

/* The state of a file or request, which the client keeps: nothing is sent. Never a null pointer; the memory is overwritten by the next
 * such call of the thread. */
VIPIOS_API const ViPIOS_State *Vipios_IOState(int handle);

/* ---- Errors ---- */

/* Of the last call of this thread that failed: its number (0 before the first), and what was wrong. */
VIPIOS_API int ViPIOS_Error_code(void);
VIPIOS_API const char *ViPIOS_Error_text(void);

/* The version of the library, such as "0.1.0". */
VIPIOS_API const char *ViPIOS_Version(void);

#ifdef __cplusplus
}
#endif

#endif
