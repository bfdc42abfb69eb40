/* loader_reload PLUGIN: a plugin that copies in its constructor comes, goes, and comes back to another place; nobody
 * looks anything up in between. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    (void)argc;
    for (int round = 0; round < 5; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        if (!plugin) {
            printf("%s\n", dlerror());
            return 1;
        }
        dlclose(plugin);
        for (int i = 0; i < 64; i++) /* the place is taken */
            mmap(NULL, 4096 * (1 + i % 5), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return 0;
}
