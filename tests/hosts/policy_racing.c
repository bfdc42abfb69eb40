/* A program with the library policy_racing_lib.c, whose threads race with the start of the shim; it holds the thread that
 * reads the shim's settings until the library lets it go. */
#include <stdlib.h>
#include <string.h>

void racing_hold(void);
void racing_end(void);

char *secure_getenv(const char *name)
{
    if (!strcmp(name, "ACLSHIM_MODE"))
        racing_hold();
    return getenv(name);
}

int main(void)
{
    racing_end();
    return 0;
}
