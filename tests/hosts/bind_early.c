/*
 * A library that finds the functions in its constructor. A program that needs
 * it runs that constructor before the one of a preloaded library: what comes
 * earlier in the search order is initialised later.
 */
#include "bind_calls.h"

static struct calls early;
static struct tools with;

__attribute__((constructor)) static void find(void)
{
    void *vendor = must(dlopen("libascendcl.so", RTLD_NOW), "libascendcl.so");
    early = calls_of(vendor);
    with = tools_of(vendor);
#ifdef BIND_CALL_EARLY
    run_all(&early, &with);
#endif
}

int bind_run(int argc, char **argv)
{
    (void)argc, (void)argv;
#ifdef BIND_CALL_EARLY
    return 0;
#else
    return run_all(&early, &with);
#endif
}
