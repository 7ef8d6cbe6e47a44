/* The names of the source: vip_func.h with the calls of chapter 5, and files as Unix programs use them. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <vip_func.h>
#include <vip_unix.h>

static void conceptual(void) {
    char read[20];
    int handle, request, flag;
    CHECK(Vipios_Connect(0) == TRUE && Vipios_Connect(0) == -VIPIOS_ERR_IN_USE);
    CHECK((handle = Vipios_Open("/concept", READ | WRITE | CREATE)) > 0 && R + W == RW);
    CHECK(Vipios_Open("/concept", RW | CREATE | EXCLUSIVE) == -VIPIOS_ERR_EXISTS);
    CHECK(Vipios_Write(handle, 10, "0123456789") == 10);
    CHECK(Vipios_Seek(handle, 4, VIPIOS_SEEK_SET) == TRUE);
    CHECK(Vipios_Read(handle, 20, read) == 6 && !memcmp(read, "456789", 6));
    CHECK(Vipios_IOState(handle)->is_end_of_file);
    CHECK(Vipios_Seek(handle, 0, VIPIOS_SEEK_SET) == TRUE);
    CHECK((request = Vipios_Iread(handle, 4, read)) > 0);
    OK(ViPIOS_File_Wait(request));
    CHECK(Vipios_IOState(request)->count == 4 && !memcmp(read, "0123", 4));
    CHECK((request = Vipios_Iwrite(handle, 2, "ab")) > 0);
    do OK(ViPIOS_File_Test(request, &flag));
    while (!flag);
    CHECK(Vipios_Close(handle) == TRUE && Vipios_Close(handle) == -VIPIOS_ERR_BAD_HANDLE);
    CHECK(Vipios_Read(handle, 1, read) == -VIPIOS_ERR_BAD_HANDLE);
    CHECK(Vipios_Disconnect() == TRUE);
}

#define ERRNO(number, call) (errno = 0, CHECK((call) == -1), CHECK(errno == (number)))

static void as_unix(void) {
    char read[20];
    int fd, other;
    /* Nothing is connected: the first call does it. */
    CHECK(vip_mkdir("/unix", 0755) == 0);
    ERRNO(EEXIST, vip_mkdir("/unix", 0755));
    ERRNO(ENOENT, vip_open("/unix/f", O_RDONLY, 0));
    CHECK((fd = vip_open("/unix/f", O_RDWR | O_CREAT | O_EXCL, 0644)) > 0);
    ERRNO(EEXIST, vip_open("/unix/f", O_RDWR | O_CREAT | O_EXCL, 0644));
    CHECK(vip_write(fd, "0123456789", 10) == 10 && vip_lseek(fd, 0, SEEK_CUR) == 10);
    CHECK(vip_pwrite(fd, "ab", 2, 12) == 2 && vip_fsize(fd) == 14 && vip_lseek(fd, -4, SEEK_END) == 10);
    CHECK(vip_read(fd, read, 20) == 4 && !memcmp(read, "\0\0ab", 4) && vip_read(fd, read, 20) == 0);
    CHECK(vip_pread(fd, read, 3, 8) == 3 && !memcmp(read, "89\0", 3));
    ERRNO(EINVAL, vip_lseek(fd, -1, SEEK_SET));
    ERRNO(EINVAL, vip_pread(fd, read, 1, -1));
    CHECK(vip_ftruncate(fd, 5) == 0 && vip_fsize(fd) == 5 && vip_fsync(fd) == 0);
    /* Descriptors are the numbers of the other calls. */
    YES(ViPIOS_Read(fd, read, 5, 0));
    CHECK(count_of(fd) == 5);
    /* Behind the end, wherever that is. */
    CHECK((other = vip_open("/unix/f", O_WRONLY | O_APPEND, 0)) > 0);
    CHECK(vip_write(other, "xy", 2) == 2 && vip_lseek(other, 0, SEEK_CUR) == 7);
    CHECK(vip_pwrite(fd, "z", 1, 9) == 1 && vip_write(other, "!", 1) == 1 && vip_fsize(fd) == 11);
    ERRNO(EACCES, vip_read(other, read, 1));
    CHECK(vip_close(other) == 0);
    CHECK((other = vip_open("/unix/f", O_RDWR | O_TRUNC, 0)) > 0 && vip_fsize(fd) == 0);
    CHECK(vip_close(other) == 0 && vip_close(fd) == 0);
    ERRNO(EBADF, vip_close(fd));
    ERRNO(EBADF, vip_read(fd, read, 1));
    CHECK(vip_rename("/unix/f", "/unix/g") == 0 && vip_unlink("/unix/g") == 0);
    ERRNO(ENOENT, vip_unlink("/unix/g"));
    CHECK(vip_rmdir("/unix") == 0);
    ERRNO(ENOENT, vip_rmdir("/unix"));
    YES(ViPIOS_Disconnect());
}

int main(int argc, char **argv) {
    begin(argc, argv);
    conceptual();
    as_unix();
    return end();
}
