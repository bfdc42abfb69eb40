/* A library that refers to the vendor's functions and to dlsym, and does nothing when it comes and goes. */
#include "guest_host.h"
#include <dlfcn.h>

int guest_plain(void)
{
    return copy() + (dlsym(RTLD_DEFAULT, "none_such") != NULL);
}
