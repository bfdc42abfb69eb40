/* Lookups "behind me", made by two libraries: the first before the vendor's, the second behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "acl/acl.h"

void look_from_first(void);
void look_from_second(void);

int main(void)
{
    look_from_first();
    look_from_second();
    /* From the program itself the next one of a copy function is what it is linked to. */
    printf("the program's next is what it calls: %d\n", dlsym(RTLD_NEXT, "aclrtMemcpy") == (void *)aclrtMemcpy);
    return 0;
}
