/* vip_func.h: the header of the source (A.2): vipios.h with the names of its sample programs and of its chapter 5.
 *
 * The conceptual calls of 5.1.1 are spelled Vipios_x, and return a handle, a count or a request; below 0 is a code (-VIPIOS_ERR_x).
 * Short names of flags (R, W, RW, READ, ...) may clash with those of a program: define VIP_NO_SHORT_NAMES before including this.
 */
#ifndef VIP_FUNC_H
#define VIP_FUNC_H

#include "vipios.h"

#ifndef VIP_NO_SHORT_NAMES
#define R VIPIOS_R
#define W VIPIOS_W
#define RW VIPIOS_RW
#define READ VIPIOS_R
#define WRITE VIPIOS_W
#define CREATE VIPIOS_CREATE
#define EXCLUSIVE VIPIOS_EXCLUSIVE
#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline int Vipios_Connect(int system_id) { return ViPIOS_Connect(system_id) ? 1 : -ViPIOS_Error_code(); }

static inline int Vipios_Disconnect(void) { return ViPIOS_Disconnect() ? 1 : -ViPIOS_Error_code(); }

/* The handle of a file. */
static inline int Vipios_Open(const char *filename, int flags) {
    int fid;
    return ViPIOS_Open(filename, flags, &fid) ? fid : -ViPIOS_Error_code();
}

static inline int Vipios_Close(int handle) { return ViPIOS_Close(handle) ? 1 : -ViPIOS_Error_code(); }

/* At the pointer: the bytes transferred. */
static inline int Vipios_Read(int handle, int bytes, void *buffer) {
    int count = 0, code;
    if (!ViPIOS_Read(handle, buffer, bytes, VIPIOS_AT_POINTER)) return -ViPIOS_Error_code();
    code = ViPIOS_File_get_count(handle, &count);
    return code < 0 ? code : count;
}

static inline int Vipios_Write(int handle, int bytes, const void *buffer) {
    int count = 0, code;
    if (!ViPIOS_Write(handle, buffer, bytes, VIPIOS_AT_POINTER)) return -ViPIOS_Error_code();
    code = ViPIOS_File_get_count(handle, &count);
    return code < 0 ? code : count;
}

/* At the pointer, beside the program: the number of the request. Vipios_IOState takes it. */
static inline int Vipios_Iread(int handle, int bytes, void *buffer) {
    int reqid;
    return ViPIOS_Iread(handle, buffer, bytes, VIPIOS_AT_POINTER, &reqid) ? reqid : -ViPIOS_Error_code();
}

static inline int Vipios_Iwrite(int handle, int bytes, const void *buffer) {
    int reqid;
    return ViPIOS_Iwrite(handle, buffer, bytes, VIPIOS_AT_POINTER, &reqid) ? reqid : -ViPIOS_Error_code();
}

static inline int Vipios_Seek(int handle, int offset, int base) {
    return ViPIOS_Seek(handle, offset, base) ? 1 : -ViPIOS_Error_code();
}

#ifdef __cplusplus
}
#endif

#endif
