/* vip_unix.h: files as Unix programs use them (1.11 of the specification): descriptors, -1 and errno.
 *
 * Calls, arguments, results and errno are those of the functions without "vip_". A program that has not called ViPIOS_Connect is
 * connected by its first call, to what PARIO_URL names. A descriptor is the number of a file: the calls of vipios.h take it too.
 * What was opened here is not atomic; ViPIOS_Set_atomic makes it so.
 */
#ifndef VIP_UNIX_H
#define VIP_UNIX_H

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "vipios.h"

#ifdef __cplusplus
extern "C" {
#endif

/* flags: O_RDONLY, O_WRONLY or O_RDWR with O_CREAT, O_EXCL, O_TRUNC, O_APPEND. mode counts with O_CREAT. */
VIPIOS_API int vip_open(const char *path, int flags, int mode);
VIPIOS_API int vip_close(int fd);
VIPIOS_API ssize_t vip_read(int fd, void *buf, size_t bytes);
VIPIOS_API ssize_t vip_write(int fd, const void *buf, size_t bytes);
VIPIOS_API ssize_t vip_pread(int fd, void *buf, size_t bytes, int64_t offset);
VIPIOS_API ssize_t vip_pwrite(int fd, const void *buf, size_t bytes, int64_t offset);
VIPIOS_API int64_t vip_lseek(int fd, int64_t offset, int whence);
VIPIOS_API int vip_ftruncate(int fd, int64_t size);
VIPIOS_API int vip_fsync(int fd);
VIPIOS_API int vip_unlink(const char *path);
VIPIOS_API int vip_rename(const char *from, const char *to);
VIPIOS_API int vip_mkdir(const char *path, int mode);
VIPIOS_API int vip_rmdir(const char *path);

/* The bytes of a file, in place of fstat. */
VIPIOS_API int64_t vip_fsize(int fd);

#ifdef __cplusplus
}
#endif

#endif
