/*
 * Looks the functions up: bind_lookup LIBRARY local|global handle|default|version
 *
 * `handle` asks the library's own handle, `default` asks RTLD_DEFAULT, and
 * `version` asks the handle for the version BIND_1. The tools come from
 * libascendcl.so, which is here by then.
 */
#include "bind_calls.h"

#define LOOK_UP(name, ...) *(void **)&filled.to_##name = must(dlvsym(handle, #name, "BIND_1"), #name);
static struct calls versioned_calls_of(void *handle)
{
    struct calls filled;
    EACH_FUNCTION(LOOK_UP)
    return filled;
}

int bind_run(int argc, char **argv)
{
    if (argc != 4)
        return 64;
    int scope = strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    void *library = must(dlopen(argv[1], RTLD_NOW | scope), argv[1]);
    struct calls calls;
    if (strcmp(argv[3], "version") == 0)
        calls = versioned_calls_of(library);
    else
        calls = calls_of(strcmp(argv[3], "default") == 0 ? RTLD_DEFAULT : library);
    struct tools tools = tools_of(must(dlopen("libascendcl.so", RTLD_NOW), "libascendcl.so"));
    return run_all(&calls, &tools);
}
