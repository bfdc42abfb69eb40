/* check_release: a copy, so that the vendor is asked what it is, and then one of nothing. */
#include "guest_host.h"

static char here[64], there[64];

int main(void)
{
    limit();
    aclrtMemcpy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST);
    aclrtMemcpy(here, 64, there, 0, ACL_MEMCPY_HOST_TO_HOST);
    return 0;
}
