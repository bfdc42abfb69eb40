/* harness_ends_exit WHAT: the exit status, asked for in strange places.
 *   before   a handler for the end, registered before, ends the scope, which is met
 *   unmet    the same of one that is not met
 *   back     asked for, and taken back
 *   handler  in a signal handler, where a scope ends as well that is not met */
#include "harness_host.h"

static aclshim_scope scope;
static uint64_t expected = 1;

static void teardown(void)
{
    say("teardown", aclshim_scope_end(scope));
    fflush(stdout);
}

static void handled(int number)
{
    (void)number;
    int64_t set = aclshim_fail_exit(9);
    int64_t ended = aclshim_scope_end(scope);
    say("handler", set + ended);
}

int main(int argc, char **argv)
{
    begin();
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "handler")) {
        signal(SIGUSR1, handled);
        expected = 2;
    } else {
        atexit(teardown);
        expected = strcmp(what, "before") ? 2 : 1;
        aclshim_fail_exit(9);
    }
    if (!strcmp(what, "back"))
        aclshim_fail_exit(0);
    scope = aclshim_scope_begin("scope", ACLSHIM_WHOLE_PROCESS);
    aclshim_expect_calls(scope, NULL, expected, expected);
    copy();
    if (!strcmp(what, "handler"))
        raise(SIGUSR1);
    return 0;
}
