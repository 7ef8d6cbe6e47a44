/* The native calls: files, sizes, pointers, the end of a file, requests, states. */
#define _GNU_SOURCE
#include "check.h"

static void files(void) {
    char read[40];
    int fid, other, size;
    int64_t large;
    fid = open_here("/native", READ_WRITE);
    YES(ViPIOS_Write(fid, "0123456789", 10, -1));
    CHECK(count_of(fid) == 10 && position_of(fid) == 10 && size_of(fid) == 10);
    /* An explicit place leaves the pointer alone. */
    YES(ViPIOS_Write(fid, "ab", 2, 3));
    CHECK(position_of(fid) == 10);
    YES(ViPIOS_Read(fid, read, 4, 2));
    CHECK(count_of(fid) == 4 && !memcmp(read, "2ab5", 4) && position_of(fid) == 10);
    /* From the start, from here, from the end with an offset. */
    YES(ViPIOS_Seek(fid, 4, VIPIOS_SEEK_SET));
    YES(ViPIOS_Seek(fid, -1, VIPIOS_SEEK_CUR));
    YES(ViPIOS_Read(fid, read, 3, -1));
    CHECK(!memcmp(read, "ab5", 3) && position_of(fid) == 6);
    YES(ViPIOS_Seek(fid, -3, VIPIOS_SEEK_END));
    CHECK(position_of(fid) == 7);
    YES(ViPIOS_Seek(fid, 5, VIPIOS_SEEK_END));
    CHECK(position_of(fid) == 15);
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Seek(fid, -11, VIPIOS_SEEK_END));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Seek(fid, 0, 3));
    CHECK(position_of(fid) == 15);
    /* The end of the file: a short count and a flag, then nothing. */
    YES(ViPIOS_Seek(fid, 8, VIPIOS_SEEK_SET));
    YES(ViPIOS_Read(fid, read, 40, -1));
    CHECK(count_of(fid) == 2 && position_of(fid) == 10);
    CHECK(Vipios_IOState(fid)->is_end_of_file && Vipios_IOState(fid)->requested == 40 && Vipios_IOState(fid)->count == 2);
    YES(ViPIOS_Read(fid, read, 1, -1));
    CHECK(count_of(fid) == 0 && Vipios_IOState(fid)->is_end_of_file);
    YES(ViPIOS_Read(fid, read, 1, 0));
    CHECK(!Vipios_IOState(fid)->is_end_of_file && Vipios_IOState(fid)->error == 0 && Vipios_IOState(fid)->position == 10);
    /* Sizes, on every client. */
    OK(ViPIOS_File_set_size(fid, 4));
    OK(ViPIOS_File_set_size64(fid, 8));
    other = open_here("/native", VIPIOS_R);
    OK(ViPIOS_File_get_size64(other, &large));
    CHECK(large == 8 && size_of(fid) == 8);
    YES(ViPIOS_Read(other, read, 40, 0));
    CHECK(count_of(other) == 8 && !memcmp(read, "012a\0\0\0\0", 8));
    REFUSED(VIPIOS_ERR_PERMISSION_DENIED, ViPIOS_Write(other, "x", 1, 0));
    CHECK(Vipios_IOState(other)->error == VIPIOS_ERR_PERMISSION_DENIED && strlen(Vipios_IOState(other)->text) > 5);
    /* What does not fit into an int has its own calls. */
    OK(ViPIOS_File_set_size64(fid, INT64_C(5) << 30));
    FAILS(VIPIOS_ERR_TOO_LARGE, ViPIOS_File_get_size(fid, &size));
    OK(ViPIOS_File_get_size64(fid, &large));
    CHECK(large == INT64_C(5) << 30);
    YES(ViPIOS_Seek64(fid, (INT64_C(4) << 30) + 1, VIPIOS_SEEK_SET));
    YES(ViPIOS_Write64(fid, "far", 3, -1));
    FAILS(VIPIOS_ERR_TOO_LARGE, ViPIOS_File_get_position(fid, &size));
    OK(ViPIOS_File_get_position64(fid, &large));
    CHECK(large == (INT64_C(4) << 30) + 4);
    YES(ViPIOS_Read64(fid, read, 5, INT64_C(4) << 30));
    CHECK(!memcmp(read, "\0far\0", 5));
    OK(ViPIOS_File_get_count64(fid, &large));
    CHECK(large == 5);
    OK(ViPIOS_File_sync(fid));
    OK(ViPIOS_Set_atomic(fid, 0));
    YES(ViPIOS_Write(fid, "again", 5, 0));
    OK(ViPIOS_Set_atomic(fid, 1));
    /* Missing and open files are told apart. */
    REFUSED(VIPIOS_ERR_NOT_FOUND, ViPIOS_Remove("/missing"));
    REFUSED(VIPIOS_ERR_IN_USE, ViPIOS_Remove("/native"));
    YES(ViPIOS_Close(other));
    REFUSED(VIPIOS_ERR_IN_USE, ViPIOS_Remove("/native"));
    YES(ViPIOS_Close(fid));
    YES(ViPIOS_Remove("/native"));
    REFUSED(VIPIOS_ERR_NOT_FOUND, ViPIOS_Open("/native", VIPIOS_RW, &fid));
    CHECK(fid == -1);
    /* Modes. */
    fid = open_here("/native", READ_WRITE | VIPIOS_EXCLUSIVE);
    REFUSED(VIPIOS_ERR_EXISTS, ViPIOS_Open("/native", READ_WRITE | VIPIOS_EXCLUSIVE, &other));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open("/native", VIPIOS_R | VIPIOS_CREATE, &other));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open("/native", 0, &other));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Open("/native", 64, &other));
    REFUSED(VIPIOS_ERR_IN_USE, ViPIOS_Open("/native", VIPIOS_RW | VIPIOS_UNIQUE, &other));
    YES(ViPIOS_Close(fid));
    fid = open_here("/native", VIPIOS_W | VIPIOS_DELETE_ON_CLOSE);
    REFUSED(VIPIOS_ERR_PERMISSION_DENIED, ViPIOS_Read(fid, read, 1, 0));
    YES(ViPIOS_Close(fid));
    REFUSED(VIPIOS_ERR_NOT_FOUND, ViPIOS_Remove("/native"));
}

#define MANY 200

/* Many requests of one file at the same time, each with its own count. */
static void requests(void) {
    static char bytes[MANY][100], read[MANY][100];
    int reqid[MANY], i, flag, count, fid = open_here("/requests", READ_WRITE);
    int64_t large;
    for (i = 0; i < MANY; i++) {
        memset(bytes[i], 'a' + i % 26, sizeof bytes[i]);
        YES(ViPIOS_Iwrite(fid, bytes[i], 100 - i % 7, i * 100, &reqid[i]));
        CHECK(reqid[i] > 0 && (i == 0 || reqid[i] != reqid[i - 1]));
    }
    for (i = MANY - 1; i >= 0; i--) {
        OK(ViPIOS_File_Wait(reqid[i]));
        OK(ViPIOS_Request_get_count(reqid[i], &count));
        CHECK(count == 100 - i % 7 && count_of(fid) == count);
    }
    CHECK(Vipios_IOState(fid)->outstanding == 0 && Vipios_IOState(fid)->is_done);
    /* At the pointer, which moves at the call: two in a row get what is in a row. */
    OK(ViPIOS_File_set_size(fid, MANY * 100 - 50));
    YES(ViPIOS_Seek(fid, 0, VIPIOS_SEEK_SET));
    for (i = 0; i < MANY; i++) {
        YES(ViPIOS_Iread(fid, read[i], 100, -1, &reqid[i]));
        CHECK(position_of(fid) == (i + 1) * 100);
    }
    for (i = 0; i < MANY; i++) {
        const ViPIOS_State *state;
        do OK(ViPIOS_File_Test(reqid[i], &flag));
        while (!flag);
        state = Vipios_IOState(reqid[i]);
        CHECK(state->handle == reqid[i] && state->is_done && state->requested == 100 && state->error == 0);
        CHECK(state->count == (i == MANY - 1 ? 50 : 100) && state->is_end_of_file == (i == MANY - 1));
        CHECK(!memcmp(read[i], bytes[i], i == MANY - 1 ? 50 : 100 - i % 7));
        /* What became of it can be asked again. */
        OK(ViPIOS_File_Wait(reqid[i]));
        OK(ViPIOS_Request_get_count64(reqid[i], &large));
        CHECK(large == state->count);
    }
    /* The count of a file is that of the request waited for last. */
    OK(ViPIOS_File_get_count(fid, &count));
    CHECK(count == 50);
    /* A request that fails tells it where it is waited for. */
    YES(ViPIOS_Close(fid));
    fid = open_here("/requests", VIPIOS_R);
    YES(ViPIOS_Iwrite(fid, bytes[0], 1, 0, &reqid[0]));
    FAILS(VIPIOS_ERR_PERMISSION_DENIED, ViPIOS_File_Wait(reqid[0]));
    FAILS(VIPIOS_ERR_PERMISSION_DENIED, ViPIOS_File_Test(reqid[0], &flag));
    CHECK(flag == 1 && Vipios_IOState(reqid[0])->error == VIPIOS_ERR_PERMISSION_DENIED);
    /* Closing waits for what is outstanding; then the outcome can be asked for. */
    for (i = 0; i < 20; i++) YES(ViPIOS_Iread64(fid, read[i], 100, i * 100, &reqid[i]));
    YES(ViPIOS_Close(fid));
    for (i = 0; i < 20; i++) {
        OK(ViPIOS_File_Test(reqid[i], &flag));
        CHECK(flag == 1);
    }
    YES(ViPIOS_Remove("/requests"));
}

/* Past the tables of the source, which grow by 5. */
static void many_files(void) {
    int fid[60], i;
    char path[40], byte;
    for (i = 0; i < 60; i++) {
        sprintf(path, "/many%d", i);
        fid[i] = open_here(path, READ_WRITE);
        byte = (char)i;
        YES(ViPIOS_Write(fid[i], &byte, 1, -1));
    }
    for (i = 0; i < 60; i += 2) YES(ViPIOS_Close(fid[i]));
    for (i = 1; i < 60; i += 2) {
        YES(ViPIOS_Read(fid[i], &byte, 1, 0));
        CHECK(byte == (char)i);
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid[i - 1], &byte, 1, 0));
    }
    /* Names of more than 80 characters. */
    {
        char name[200];
        memset(name, 'n', sizeof name);
        name[0] = '/';
        name[sizeof name - 1] = 0;
        i = open_here(name, READ_WRITE);
        YES(ViPIOS_Close(i));
    }
}

int main(int argc, char **argv) {
    int fid;
    begin(argc, argv);
    CHECK(ViPIOS_Error_code() == 0 && !strcmp(ViPIOS_Error_text(), "") && strlen(ViPIOS_Version()) > 2);
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Open("/early", READ_WRITE, &fid));
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Disconnect());
    YES(ViPIOS_Connect(0));
    REFUSED(VIPIOS_ERR_IN_USE, ViPIOS_Connect(0));
    files();
    requests();
    many_files();
    /* Disconnecting closes what is open. */
    YES(ViPIOS_Disconnect());
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Remove("/many1"));
    YES(ViPIOS_Connect(0));
    YES(ViPIOS_Remove("/many1"));
    YES(ViPIOS_Disconnect());
    return end();
}
