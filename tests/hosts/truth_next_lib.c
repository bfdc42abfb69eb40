/* A library whose lookups are made from inside it. Built as two: WHO is their name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

/* Both libraries define this one. */
const char *truth_mark(void) { return TEXT(WHO); }

void JOIN(look_from_, WHO)(void)
{
    static const char *const wanted[] = {"truth_mark", "aclrtMemcpy", "aclrtMemset", "aclInit", "dlsym", "strlen", "none_such"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (int version = 0; version < 2; version++) {
            Dl_info info = {0};
            void *found = version ? dlvsym(RTLD_NEXT, wanted[i], "NONE_1.0") : dlsym(RTLD_NEXT, wanted[i]);
            const char *error = dlerror();
            const char *file = found && dladdr(found, &info) ? strrchr(info.dli_fname, '/') : "/-";
            printf("%s behind %s: %s, %s\n", wanted[i], TEXT(WHO), file, error ? error : "no error");
        }
}
