/* A library that a program is linked to; it looks for a function wherever it can see. */
#include <dlfcn.h>
#include <stdio.h>

void probe(void)
{
    printf("seen: %d\n", dlsym(RTLD_DEFAULT, "aclrtMemcpy") != NULL);
}
