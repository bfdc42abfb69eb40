/* The vendor's 3rd copy never comes back. */
#include "guest_host.h"

int main(void)
{
    limit();
    copies(2);
    aclrtMemcpy((void *)0x1111, 0x44, (const void *)0x2222, 0x33, ACL_MEMCPY_DEVICE_TO_HOST);
    return 3;
}
