/* loader_relro PLUGIN: opens a plugin with RTLD_DEEPBIND, has it copy, and shows what may be done with each page of the
 * plugin and of this program. With -DPLUGIN: that plugin. */
#include "acl/acl.h"

#ifdef PLUGIN
int plugin_copies(void)
{
    return aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_HOST);
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Not in the library: our reference must be NULL, in a page that is read-only. */
#pragma weak aclrtMemcpyBatch
static void *const in_data = (void *)aclrtMemcpyBatch;

static void show(const char *what, const char *file)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4400], rights[8], path[4200];
    unsigned long start, end, first = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4199s", &start, &end, rights, path) < 4 || strcmp(path, file) != 0)
            continue;
        first = first ? first : start;
        for (; start < end; start += (unsigned long)getpagesize())
            printf("%s %#lx %s\n", what, start - first, rights);
    }
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv)
{
    alarm(600);
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (!plugin)
        return 2;
    int (*copies)(void);
    *(void **)&copies = dlsym(plugin, "plugin_copies");
    printf("copied: %d\n", copies());
    printf("batches: %d\n", in_data != NULL);
    char self[4200] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 3;
    show("plugin", argv[1]);
    show("program", self);
    return 0;
}
#endif
