/* Calls the functions through pointers in static data, which the loader fills when it loads us. */
#include "bind_calls.h"

struct calls bound = {EACH_FUNCTION(ADDRESS)};
struct tools with = {EACH_TOOL(ADDRESS)};

int bind_run(int argc, char **argv)
{
    (void)argc, (void)argv;
    return run_all(&bound, &with);
}
