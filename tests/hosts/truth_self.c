/* Calls three times through what the program's own handle gives for a function whose address it also takes. */
#include <dlfcn.h>
#include <stdio.h>
#include "acl/acl.h"

typedef aclError copier(void *, size_t, const void *, size_t, aclrtMemcpyKind);
copier *volatile taken;

int main(void)
{
    copier *found;
    taken = aclrtMemcpy;
    *(void **)&found = dlsym(dlopen(NULL, RTLD_NOW), "aclrtMemcpy");
    for (int i = 0; i < 3; i++)
        printf("code %d\n", found(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT));
    printf("the same: %d\n", found == taken);
    return 0;
}
