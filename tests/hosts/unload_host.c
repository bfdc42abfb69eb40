/* unload_host PLUGIN ROUNDS: opens a plugin that brings the vendor's library and calls through it, without a lookup, then
 * closes it; says how often the list of loaded objects was read during the last thousand calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int searches;
static int (*real_iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

int dl_iterate_phdr(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
    __atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
    if (!real_iterate)
        *(void **)&real_iterate = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return real_iterate(each, data);
}

/* The plugin puts its function here: it is not looked up. */
int (*plugin_copies)(int times);

static int searches_of(int times)
{
    int before = __atomic_load_n(&searches, __ATOMIC_RELAXED);
    if (plugin_copies(times) != 0) {
        printf("a copy failed\n");
        exit(3);
    }
    return __atomic_load_n(&searches, __ATOMIC_RELAXED) - before;
}

int main(int argc, char **argv)
{
    alarm(600);
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    dlsym(RTLD_DEFAULT, "main");
    for (int round = 0; round < rounds; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!plugin) {
            printf("%s\n", dlerror());
            return 2;
        }
        searches_of(1000);
        int searched = searches_of(1000);
        printf("round %d: searched %s\n", round, searched == 0 ? "never" : searched < 1000 ? "at times" : "each time");
        fflush(stdout);
        if (rounds > 1) {
            plugin_copies = NULL;
            dlclose(plugin);
            for (int i = 0; i < 64; i++) /* its place is taken */
                mmap(NULL, 4096 * (1 + i % 5), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
    return 0;
}
