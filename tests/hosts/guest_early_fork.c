/* Calls while the shim boots, from a function that it asks of libc, and forks before any other call. */
#include "guest_host.h"

static int is_asked;

char *secure_getenv(const char *name)
{
    if (!is_asked) {
        is_asked = 1;
        copies(3);
    }
    return getenv(name);
}

int main(void)
{
    limit();
    pid_t child = fork();
    copies(child == 0 ? 2 : 1);
    own(child == 0 ? 2 : 4);
    if (child != 0)
        reap(child);
    printf("%d\n", is_asked);
    return 0;
}
