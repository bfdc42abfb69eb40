/* Prints which of the 21 functions the library at argument 1 has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition", "aclrtMemcpy2d", "aclrtMemcpy2dAsync",
        "aclrtMemcpyBatch", "aclrtMemcpyBatchV2", "aclrtMemcpyBatchAsync", "aclrtMemcpyBatchAsyncV2",
        "aclrtMemcpyAsyncWithOffset", "aclrtGetMemcpyDescSize", "aclrtSetMemcpyDesc", "aclrtMemcpyAsyncWithDesc",
        "aclrtMemcpyFromSymbol", "aclrtMemcpyFromSymbolAsync", "aclrtMemcpyToSymbol", "aclrtMemcpyToSymbolAsync",
        "aclrtMemset", "aclrtMemsetAsync", "aclrtMemsetD32", "aclrtMemsetD32Async"};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "absent: %s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s %s\n", dlsym(library, names[i]) ? "has" : "lacks", names[i]);
    return 0;
}
