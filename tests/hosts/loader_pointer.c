/* A pointer in data that began as the vendor's function and is now the program's own: nobody else may write it, not
 * even after a library has come and gone. */
#include "acl/acl.h"
#include <dlfcn.h>
#include <stdio.h>

typedef aclError (*copy_function)(void *, size_t, const void *, size_t, aclrtMemcpyKind);

copy_function volatile hook = aclrtMemcpy, sentinel = aclrtMemcpy, cleared = aclrtMemcpy;

static aclError mine(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind)
{
    (void)dst, (void)max, (void)src, (void)count, (void)kind;
    return 77;
}

int main(int argc, char **argv)
{
    hook = mine;
    sentinel = (copy_function)-1;
    cleared = NULL;
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(argc > 1 ? argv[1] : "libm.so.6", RTLD_NOW);
        dlsym(RTLD_DEFAULT, "puts");
        dlclose(library);
        dlsym(RTLD_DEFAULT, "puts");
    }
    printf("%d %d %d %d\n", hook == mine, sentinel == (copy_function)-1, cleared == NULL, hook(NULL, 0, NULL, 0, 0));
    return 0;
}
