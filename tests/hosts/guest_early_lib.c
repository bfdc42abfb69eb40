/* A library that calls from its constructor, before the preloaded ones have run theirs, and from its destructor. */
#include "guest_host.h"

int early_code = -1;

__attribute__((constructor)) static void first(void)
{
    errno = 66;
    early_code = copy();
    if (errno != 66)
        early_code = 1000 + errno;
}

__attribute__((destructor)) static void last(void)
{
    if (copy() != 0)
        _exit(96);
}
