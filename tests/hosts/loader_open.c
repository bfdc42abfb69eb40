/* loader_open PLUGIN [times [deep]]: opens a plugin RTLD_LOCAL, with `deep` also RTLD_DEEPBIND, calls it, closes it, and
 * again. A message of a failed dlopen before the call is still there after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    alarm(600);
    for (int times = argc > 2 ? atoi(argv[2]) : 1; times > 0; times--) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 3 ? RTLD_DEEPBIND : 0));
        if (!plugin) {
            printf("%s\n", dlerror());
            return 1;
        }
        int (*copies)(void);
        *(void **)&copies = dlsym(plugin, "plugin_copies");
        dlopen("no-such-library.so", RTLD_NOW);
        printf("call %d\n", copies());
        const char *error = dlerror();
        printf("pending: %s\n", error ? error : "nothing");
        printf("close %d\n", dlclose(plugin));
    }
    return 0;
}
