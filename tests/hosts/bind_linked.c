/* Calls the functions by name, as a program or a plugin does that was linked to the vendor's library. */
#define BIND_DIRECT
#include "bind_calls.h"

int bind_run(int argc, char **argv)
{
    (void)argc, (void)argv;
    return run_all(NULL, NULL);
}
