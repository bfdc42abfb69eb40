/*
 * Opens a plugin and runs it: bind_open FLAGS PLUGIN [ARGUMENT...]
 *
 * FLAGS is a word for each flag, joined by commas: now (else lazy), global
 * (else local), deepbind. With BIND_TAKES_ADDRESSES it is a program that takes
 * the functions' addresses itself; built for a fixed address, its own linkage
 * table then is what everybody else finds under their names.
 */
#define BIND_PLUGIN
#include "bind_calls.h"

#ifdef BIND_TAKES_ADDRESSES
#define TAKE(name, ...) *(void *volatile *)&taken.to_##name = (void *)&name;
static struct calls taken;
#else
#define TAKE(name, ...)
#endif

int main(int argc, char **argv)
{
    EACH_FUNCTION(TAKE)
    if (argc < 3)
        return 64;
    int flags = strstr(argv[1], "now") ? RTLD_NOW : RTLD_LAZY;
    flags |= strstr(argv[1], "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    flags |= strstr(argv[1], "deepbind") ? RTLD_DEEPBIND : 0;
    void *plugin = must(dlopen(argv[2], flags), argv[2]);
    __typeof__(bind_run) *run;
    *(void **)&run = must(dlsym(plugin, "bind_run"), "bind_run");
    return run(argc - 2, argv + 2);
}
