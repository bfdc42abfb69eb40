/* check_nested: copies in which the vendor makes another one. Says how often the vendor was asked what it is, and how
 * often meanwhile. */
#include "guest_host.h"
#include <dlfcn.h>

/* Not to be linked: the library to link to is the simulated one, which does not count. */
static int (*asked)(int what);
static char here[64], there[64];

int main(void)
{
    limit();
    asked = (int (*)(int))dlsym(RTLD_DEFAULT, "checkVendorAsked");
    if (!asked)
        return 2;
    for (int i = 0; i < 100; i++)
        if (aclrtMemcpyAsync(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST, NULL) != 0)
            return 3;
    printf("%d %d %d, inside %d\n", asked(0), asked(1), asked(2), asked(3));
    return 0;
}
