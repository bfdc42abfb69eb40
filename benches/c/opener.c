/* Opens the host as a plugin (PLUGIN), which brings the vendor's library, and becomes it. Nothing is looked up: the plugin says
 * itself where it begins (plugin.c). */
#include <dlfcn.h>
#include <stdio.h>

int (*host_begin)(int argc, char **argv);

int main(int argc, char **argv)
{
    if (!dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL) || !host_begin) {
        fprintf(stderr, "opener: %s\n", dlerror());
        return 1;
    }
    return host_begin(argc, argv);
}
