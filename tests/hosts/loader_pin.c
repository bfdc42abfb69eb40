/* loader_pin HOW LIBRARY [FIRST]: finds aclrtMemcpy in a library, closes the library, and calls the function again. HOW:
 * `handle`, `default`: by dlsym with that handle. `plugin`: LIBRARY is the plugin below, which is opened a second time;
 * the vendor's library would then lie elsewhere. `bound`: LIBRARY is opened with RTLD_DEEPBIND and gives the pointer that
 * it has bound. FIRST is a library that has the function too, and stays open. With -DPLUGIN: that plugin. */
#include "acl/acl.h"

typedef aclError (*copies)(void *, size_t, const void *, size_t, aclrtMemcpyKind);

#ifdef PLUGIN
copies bound_by_the_plugin(void)
{
    return aclrtMemcpy;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char here[64], there[64];

static void *opened(const char *library, int flags)
{
    void *handle = dlopen(library, RTLD_NOW | flags);
    if (!handle)
        printf("%s\n", dlerror());
    return handle;
}

/* What is opened next does not come to lie where something was closed. */
static void fill_the_gaps(void)
{
    for (int i = 0; i < 64; i++)
        mmap(NULL, 4096 * (1 + i % 5), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static copies by_plugin(void *plugin)
{
    copies (*bound)(void);
    *(void **)&bound = dlsym(plugin, "bound_by_the_plugin");
    return bound();
}

int main(int argc, char **argv)
{
    alarm(600);
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    int flags = !strcmp(how, "default") ? RTLD_GLOBAL : !strcmp(how, "bound") ? RTLD_DEEPBIND : RTLD_LOCAL;
    if (argc > 3 && !opened(argv[3], RTLD_LOCAL))
        return 5;
    void *library = opened(argv[2], flags);
    if (!library)
        return 3;
    copies copy;
    int is_plugin = !strcmp(how, "plugin") || !strcmp(how, "bound");
    if (is_plugin)
        copy = by_plugin(library);
    else
        *(void **)&copy = dlsym(!strcmp(how, "default") ? RTLD_DEFAULT : library, "aclrtMemcpy");
    printf("open: %d\n", copy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST));
    fflush(stdout);
    dlclose(library);
    fill_the_gaps();
    if (!strcmp(how, "plugin")) {
        library = opened(argv[2], RTLD_LOCAL);
        if (!library)
            return 4;
        copy = by_plugin(library);
    }
    printf("closed: %d\n", copy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST));
    return 0;
}
#endif
