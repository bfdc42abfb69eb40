/* check_late PLUGIN: opens a plugin that brings the vendor's library and copies in its constructor, has it copy again, and
 * says how often the vendor was asked what it is. With -DPLUGIN: that plugin. */
#ifdef PLUGIN
#include "acl/acl.h"

static char here[64], there[64];

int plugin_copies(void)
{
    return aclrtMemcpy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST);
}

__attribute__((constructor)) static void start(void)
{
    plugin_copies();
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(600);
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin)
        return 2;
    int (*copies)(void), (*asked)(int what);
    *(void **)&copies = dlsym(plugin, "plugin_copies");
    *(void **)&asked = dlsym(plugin, "checkVendorAsked");
    printf("%d %d %d, ", asked(0), asked(1), asked(2));
    for (int i = 0; i < 1000; i++)
        copies();
    printf("then %d %d %d\n", asked(0), asked(1), asked(2));
    return 0;
}
#endif
