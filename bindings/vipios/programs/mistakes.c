/* What a program may give wrong: codes, never a crash. */
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

static void null_and_made_up(int fid) {
    char byte = 0;
    int number, numbers[] = {0, -1, 7777777, INT_MAX, INT_MIN}, i;
    DESC(one, 0, 1, 1, 0, NULL, 0);
    for (i = 0; i < 5; i++) {
        int bad = numbers[i];
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(bad, &byte, 1, 0));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Write(bad, &byte, 1, 0));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Close(bad));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Seek(bad, 0, 0));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Seek_struct(bad, 0, 0, &one));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Iread(bad, &byte, 1, 0, &number));
        CHECK(number == -1);
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Iread_struct(bad, &byte, 1, &one, 0, 0, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read_struct(bad, &byte, 1, &one, 0, 0));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Write_struct(bad, &byte, 1, &one, 0, 0));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_set_size(bad, 0));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_get_size(bad, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_get_position(bad, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_get_count(bad, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_Wait(bad));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_Test(bad, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Request_get_count(bad, &number));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_sync(bad));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Set_atomic(bad, 1));
        CHECK(Vipios_IOState(bad)->error == VIPIOS_ERR_BAD_HANDLE && Vipios_IOState(bad)->handle == bad);
    }
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open(NULL, READ_WRITE, &number));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open("/x", READ_WRITE, NULL));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open("/\xff", READ_WRITE, &number));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Remove(NULL));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read(fid, NULL, 1, 0));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read(fid, &byte, -1, 0));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read(fid, &byte, 1, -2));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Write(fid, NULL, 5, 0));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Write64(fid, &byte, INT64_MAX, -2));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Write64(fid, &byte, 1, INT64_MAX));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Iwrite(fid, &byte, 1, 0, NULL));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_File_get_size(fid, NULL));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_File_set_size(fid, -1));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_File_get_count(fid, NULL));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_File_get_position(fid, NULL));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Insert(fid, NULL, 1, 0));
    YES(ViPIOS_Read(fid, NULL, 0, 0));
    CHECK(size_of(fid) == 0);
}

static void malformed(int fid) {
    char bytes[64];
    int number;
    Access_Desc none = {1, NULL, 0}, empty = {0, NULL, 0};
    DESC(negative, 0, -1, 1, 0, NULL, 0);
    DESC(count, 0, 1, -1, 0, NULL, 0);
    DESC(back, -5, 1, 1, 0, NULL, 0);
    DESC(large, INT_MAX, INT_MAX, INT_MAX, INT_MAX, NULL, INT_MAX);
    DESC(larger, 0, INT_MAX, INT_MAX, 0, &large, 0);
    DESC(itself, 0, 1, 1, 0, NULL, 0);
    DESC(first, 0, 1, 1, 0, NULL, 0);
    DESC(second, 0, 1, 1, 0, &first, 0);
    static basic_block chain_blocks[100][2];
    static Access_Desc chain[100];
    int i;
    itself_block.subtype = &itself;
    first_block.subtype = &second;
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, NULL, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &none, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &negative, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &count, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &back, 4, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &itself, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Write_struct(fid, bytes, 1, &first, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Fill_access_desc(&second, NULL, NULL));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, -1, &empty, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &empty, 0, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &empty, -1, 0));
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &empty, 0, -2));
    CHECK(ViPIOS_Fill_access_desc(&larger, NULL, NULL) < 0);
    CHECK(ViPIOS_Read_struct(fid, bytes, 1, &larger, 0, 0) < 0);
    FAILS(VIPIOS_ERR_TOO_LARGE, ViPIOS_Fill_access_desc(&large, NULL, NULL));
    empty.no_blocks = INT_MAX;
    empty.basics = &negative_block;
    FAILS(VIPIOS_ERR_TOO_LARGE, ViPIOS_Read_struct(fid, bytes, 1, &empty, 0, 0));
    empty.no_blocks = -1;
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Read_struct(fid, bytes, 1, &empty, 0, 0));
    /* Zero repetitions, zero counts and no blocks transfer nothing. */
    empty.no_blocks = 0;
    OK(ViPIOS_Read_struct(fid, NULL, 0, &empty, 0, 0));
    CHECK(count_of(fid) == 0);
    negative_block.repeat = 0;
    OK(ViPIOS_Write_struct(fid, NULL, 0, &negative, 0, -1));
    count_block.count = 0;
    OK(ViPIOS_Write_struct(fid, NULL, 0, &count, 0, -1));
    CHECK(position_of(fid) == 0 && size_of(fid) == 0);
    /* As many levels as there may be, then one more; both subtypes of a level are the same struct. */
    for (i = 0; i < 100; i++) {
        chain[i].no_blocks = 2;
        chain[i].basics = chain_blocks[i];
        chain[i].skip = 0;
        chain_blocks[i][0].repeat = chain_blocks[i][1].repeat = 1;
        chain_blocks[i][0].count = 1;
        chain_blocks[i][1].count = i < 40 ? 0 : 1;
        chain_blocks[i][0].subtype = chain_blocks[i][1].subtype = i + 1 < 64 ? &chain[i + 1] : NULL;
    }
    chain_blocks[63][1].count = 0;
    for (i = 0; i < 63; i++) chain_blocks[i][1].count = i > 55;
    OK(ViPIOS_Fill_access_desc(&chain[0], NULL, &number));
    CHECK(number == 1 << 7);
    chain_blocks[63][0].subtype = &chain[64];
    FAILS(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Fill_access_desc(&chain[0], NULL, NULL));
}

static void closed(void) {
    char byte = 'c';
    int fid = open_here("/closed", READ_WRITE), again, i, reqid, kept;
    YES(ViPIOS_Iwrite(fid, &byte, 1, 0, &reqid));
    kept = reqid;
    YES(ViPIOS_Close(fid));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Close(fid));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid, &byte, 1, 0));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Iwrite(fid, &byte, 1, 0, &reqid));
    OK(ViPIOS_File_Wait(kept));
    for (i = 0; i < 30; i++) {
        again = open_here("/closed", VIPIOS_R);
        CHECK(again != fid && again != kept);
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid, &byte, 1, 0));
        YES(ViPIOS_Close(again));
    }
}

static void forked(int fid) {
    char byte;
    int status, reqid;
    pid_t child;
    YES(ViPIOS_Iread(fid, &byte, 1, 0, &reqid));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid, &byte, 1, 0));
        CHECK(strstr(ViPIOS_Error_text(), "fork"));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Close(fid));
        FAILS(VIPIOS_ERR_BAD_HANDLE, ViPIOS_File_Wait(reqid));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Disconnect());
        /* It connects anew, where others serve. */
        if (strncmp(getenv("PARIO_URL"), "dir:", 4) != 0) {
            int own;
            YES(ViPIOS_Connect(0));
            own = open_here("/child", READ_WRITE);
            CHECK(own != fid && own != reqid);
            YES(ViPIOS_Write(own, "c", 1, 0));
            YES(ViPIOS_Disconnect());
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(ViPIOS_File_Wait(reqid));
    YES(ViPIOS_Read(fid, &byte, 1, 0));
}

int main(int argc, char **argv) {
    static char bytes[1 << 20];
    int fid, reqid;
    begin(argc, argv);
    YES(ViPIOS_Connect(0));
    fid = open_here("/mistakes", READ_WRITE);
    null_and_made_up(fid);
    malformed(fid);
    closed();
    forked(fid);
    YES(ViPIOS_Iwrite(fid, bytes, sizeof bytes, 0, &reqid));
    YES(ViPIOS_Disconnect()); /* closes the file once its request is done */
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Disconnect());
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Close(fid));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Write(fid, bytes, 1, 0));
    OK(ViPIOS_File_Wait(reqid));
    return end();
}
