/* The quick start of the source (A.2): a client that connects, writes a file through a strided descriptor, and reads it back.
 *
 *     cc quick_start.c $(pkg-config --cflags --libs vipios) -o vip_client
 *     PARIO_URL=dir:data ./vip_client                      # no server needed
 *
 * Corrected against the source: ViPIOS_Read and ViPIOS_Write have a place as fourth argument, the name of the second file is set, and a
 * client does not shut the servers down.
 */
#include <stdio.h>
#include <string.h>
#include <vip_func.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, ViPIOS_Error_text());
    return 1;
}

int main(void) {
    const char *in_name = "/quick_start", *out_name = "/quick_start.copy";
    char bytes[60], through[60], copy[60];
    int fid1, fid2, i, position, count, extent, actual;
    /* level1 = vector(2,5,10,BYTE): twice five bytes, five apart. level2 = vector(3,2,3,level1): three times two of them. */
    basic_block inner_block = {0, 2, 5, 5, NULL, 0, 0};
    Access_Desc inner = {1, &inner_block, 0};
    basic_block outer_block = {0, 3, 2, 15, &inner, 0, 0};
    Access_Desc view = {1, &outer_block, 0};

    if (!ViPIOS_Connect(0)) return failed("connect");
    if (ViPIOS_Fill_access_desc(&view, &extent, &actual) != 0) return failed("descriptor");
    printf("the view has %d bytes within %d\n", actual, extent);

    if (!ViPIOS_Open(in_name, RW | CREATE, &fid1)) return failed("open");
    for (i = 0; i < 60; i++) bytes[i] = (char)('!' + i);
    /* All of the view, at the pointer, which moves by what is accessible. */
    if (ViPIOS_Write_struct(fid1, bytes, 0, &view, 0, -1) != 0) return failed("write");
    ViPIOS_File_get_position(fid1, &position);
    printf("written, the pointer is at %d\n", position);
    /* Ten of the bytes shown, from the 23rd on, which is byte 48 of the file; the pointer stays. */
    ViPIOS_Get_absolute_byte_position(&view, 23, &position);
    if (ViPIOS_Read_struct(fid1, through, 10, &view, 0, 23) != 0) return failed("read");
    printf("byte 23 of the view is byte %d of the file: %.10s\n", position, through);

    /* As it is, to another file. */
    if (!ViPIOS_Open(out_name, RW | CREATE, &fid2)) return failed("open");
    for (i = 0; i < extent; i += count) {
        if (!ViPIOS_Read(fid1, copy, (int)sizeof copy, i)) return failed("read");
        ViPIOS_File_get_count(fid1, &count);
        if (count == 0 || !ViPIOS_Write(fid2, copy, count, VIPIOS_AT_POINTER)) return failed("copy");
    }
    if (ViPIOS_Read_struct(fid2, through, 0, &view, 0, 0) != 0) return failed("read");
    printf("the copy is %s\n", memcmp(bytes, through, sizeof bytes) ? "different" : "the same");

    if (!ViPIOS_Close(fid1) || !ViPIOS_Close(fid2)) return failed("close");
    if (!ViPIOS_Remove(in_name) || !ViPIOS_Remove(out_name)) return failed("remove");
    if (!ViPIOS_Disconnect()) return failed("disconnect");
    puts("all is well");
    return 0;
}
