/* loader_many LIBRARY...: looks the same function up in each library, twice, and calls it once. */
#include "acl/acl.h"
#include <dlfcn.h>
#include <stdio.h>

typedef aclError (*copy_function)(void *, size_t, const void *, size_t, aclrtMemcpyKind, aclrtStream);

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        copy_function copy = (copy_function)dlsym(library, "aclrtMemcpyAsync");
        int is_same = copy == (copy_function)dlsym(library, "aclrtMemcpyAsync");
        printf("%d: %d %d\n", i, is_same, copy(NULL, 0, NULL, (size_t)i, ACL_MEMCPY_DEFAULT, NULL));
    }
    return 0;
}
