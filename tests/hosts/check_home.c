/* check_home: what the library says to a question that it cannot answer. */
#include "guest_host.h"

int main(void)
{
    char version[128] = "";
    int code = aclsysGetVersionStr("runtime", version);
    printf("version %d%s\n", code, version);
    return 0;
}
