/* Which of the pointers to one function are equal: linked, by handle, by default, by the program's handle, by version,
 * by the other name, behind the program; each also a second time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "acl/acl.h"

static void *kept = (void *)aclrtMemcpyAsync; /* bound by the loader, not by a call */

static void one(const char *name, void *linked)
{
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    void *other = dlopen("libacl_rt.so", RTLD_NOW);
    void *self = dlopen(NULL, RTLD_NOW);
    void *found[] = {
        linked,
        dlsym(vendor, name),
        dlsym(RTLD_DEFAULT, name),
        dlsym(self, name),
        dlsym(other, name),
        dlsym(RTLD_NEXT, name),
        dlvsym(vendor, name, "NONE_1.0"),
        dlvsym(RTLD_DEFAULT, name, "NONE_1.0"),
        dlsym(vendor, name),
        dlsym(RTLD_DEFAULT, name),
    };
    enum { N = sizeof found / sizeof *found };
    printf("%s:", name);
    for (int i = 0; i < N; i++) {
        int first = 0;
        while (found[first] != found[i])
            first++;
        if (found[i])
            printf(" %d", first);
        else
            printf(" -");
    }
    Dl_info info = {0};
    printf(", linked as %s\n", dladdr(linked, &info) && info.dli_sname ? info.dli_sname : "nothing");
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) /* a call first: a lazily bound pointer is bound then */
        aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT);
    one("aclrtMemcpy", (void *)aclrtMemcpy);
    one("aclrtMemcpyAsync", kept);
    one("aclrtMemcpyBatch", (void *)aclrtMemcpyBatch);
    one("aclrtMemset", (void *)aclrtMemset);
    one("aclInit", (void *)aclInit);
    return 0;
}
