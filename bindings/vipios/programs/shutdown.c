/* Ending the servers: refused to whoever is no administrator, and then everything goes on; what an administrator ends is over. The second
 * argument is "refused" or "done". */
#define _GNU_SOURCE
#include "check.h"

int main(int argc, char **argv) {
    char bytes[8];
    int fid;
    begin(argc, argv);
    CHECK(argc > 2);
    REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Shutdown());
    YES(ViPIOS_Connect(0));
    fid = open_here("/kept", VIPIOS_R);
    if (!strcmp(argv[2], "refused")) {
        REFUSED(VIPIOS_ERR_PERMISSION_DENIED, ViPIOS_Shutdown());
        CHECK(strstr(ViPIOS_Error_text(), "only root"));
        YES(ViPIOS_Read(fid, bytes, 8, 0));
        CHECK(count_of(fid) == 5 && !memcmp(bytes, "kept\n", 5));
        YES(ViPIOS_Close(fid));
        YES(ViPIOS_Disconnect());
    } else {
        YES(ViPIOS_Shutdown());
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Read(fid, bytes, 8, 0));
        REFUSED(VIPIOS_ERR_BAD_HANDLE, ViPIOS_Disconnect());
    }
    return end();
}
