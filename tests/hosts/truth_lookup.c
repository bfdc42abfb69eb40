/* truth_lookup NAME...: what every way to look each name up finds, and what dlerror says then. Without names: every
 * function of the table. One line a lookup. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "names.h"

/* An earlier failure must not be what dlerror says of this lookup. */
static void spoil(void)
{
    dlsym(RTLD_DEFAULT, "spoiled_by_me");
}

static const char *base(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static void tell(const char *way, const char *name, void *found, const char *error, const char *again)
{
    Dl_info info = {0};
    printf("%s %s: %s, %s%s%s", name, way, found ? "found" : "NULL", error,
           again ? ", and again " : "", again ? again : "");
    if (found && dladdr(found, &info))
        printf(", in %s as %s", base(info.dli_fname), info.dli_sname ? info.dli_sname : "nothing");
    printf("\n");
}

#define LOOK(way, lookup)                                                   \
    do {                                                                    \
        spoil();                                                            \
        void *found = (lookup);                                             \
        const char *error = dlerror();                                      \
        char text[512];                                                     \
        snprintf(text, sizeof text, "%s", error ? error : "no error");      \
        tell(way, name, found, text, dlerror());                            \
    } while (0)

int main(int argc, char **argv)
{
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    void *other = dlopen("libacl_rt.so", RTLD_NOW);
    void *self = dlopen(NULL, RTLD_NOW);
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    if (!vendor || !other || !self || !libc)
        return 2;
    int n = argc > 1 ? argc - 1 : NAMES;
    for (int i = 0; i < n; i++) {
        const char *name = argc > 1 ? argv[i + 1] : names[i];
        LOOK("by handle", dlsym(vendor, name));
        LOOK("by the other name's handle", dlsym(other, name));
        LOOK("by default", dlsym(RTLD_DEFAULT, name));
        LOOK("behind the program", dlsym(RTLD_NEXT, name));
        LOOK("in the program", dlsym(self, name));
        LOOK("in libc", dlsym(libc, name));
        LOOK("by version and handle", dlvsym(vendor, name, "NONE_1.0"));
        LOOK("by version and default", dlvsym(RTLD_DEFAULT, name, "NONE_1.0"));
        LOOK("by libc's version", dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5"));
        LOOK("by version behind the program", dlvsym(RTLD_NEXT, name, "NONE_1.0"));
    }
    return 0;
}
