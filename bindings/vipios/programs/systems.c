/* Numbers of services, as VIPIOS_SYSTEMS has them. */
#define _GNU_SOURCE
#include "check.h"

static void use(int system, const char *byte) {
    int fid;
    YES(ViPIOS_Connect(system));
    fid = open_here("/which", READ_WRITE);
    YES(ViPIOS_Write(fid, byte, 1, 0));
    YES(ViPIOS_Disconnect());
}

int main(void) {
    use(7, "7");
    use(1, "1");
    use(0, "0");
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Connect(2));
    CHECK(strstr(ViPIOS_Error_text(), "does not have"));
    REFUSED(VIPIOS_ERR_INVALID_ARGUMENT, ViPIOS_Connect(-1));
    CHECK(setenv("VIPIOS_SYSTEMS", "/no/such/file", 1) == 0);
    REFUSED(VIPIOS_ERR_NOT_FOUND, ViPIOS_Connect(1));
    return end();
}
