/* Lookups of functions that have versions: which one answers, and what dlerror says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "acl/acl.h"

typedef aclError copier(void *, size_t, const void *, size_t, aclrtMemcpyKind, aclrtStream);

static void one(void *handle, const char *way, const char *name, const char *version)
{
    void *found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
    const char *error = dlerror();
    const char *text = error ? strstr(error, "undefined symbol") : "no error";
    Dl_info info = {0};
    copier *function;
    *(void **)&function = found;
    printf("%s %s %s: %s", way, name, version ? version : "-", text ? text : error);
    if (found)
        printf(", answers %d, named %s", function(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT, NULL),
               dladdr(found, &info) && info.dli_sname ? info.dli_sname : "nothing");
    printf("\n");
}

int main(void)
{
    static const char *const names[] = {"aclrtMemcpy", "aclrtMemset", "aclrtMemcpyAsync", "aclrtMemcpyBatch"};
    static const char *const versions[] = {NULL, "CANN_1", "CANN_2", "CANN_3"};
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    void *self = dlopen(NULL, RTLD_NOW);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
            one(vendor, "handle", names[n], versions[v]);
            one(RTLD_DEFAULT, "default", names[n], versions[v]);
            one(self, "program", names[n], versions[v]);
        }
#ifdef LINKED
    printf("linked: %d\n", aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT));
#endif
    return 0;
}
