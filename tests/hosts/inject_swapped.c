/* inject_swapped: a call that has met an injection is held up while it asks where it came from. Meanwhile the injection's
 * scope ends, and the next one has an injection for its first call. */
#include "harness_host.h"
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>

static volatile int is_armed, is_held, may_go;

/* The shim's too: the program's functions come first. */
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (is_armed && !strcmp(path, "/proc/self/maps")) {
        is_armed = 0;
        for (is_held = 1; !may_go;)
            sched_yield();
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void *one_call(void *unused)
{
    aclrtSetCurrentContext(context);
    say("a call that met the first", up_on(stream, 64));
    return unused;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 0 ? strrchr(argv[0], '/') : NULL;
    begin();
    up_on(stream, 64);
    char injection[512];
    snprintf(injection, sizeof injection, "site=%s return=507899", folder ? folder + 1 : argv[0]);
    aclshim_scope first = aclshim_scope_begin("first", ACLSHIM_WHOLE_PROCESS);
    say("set", aclshim_inject(first, injection));
    is_armed = 1;
    pthread_t thread = start(one_call);
    while (!is_held)
        sched_yield();
    aclshim_scope_end(first);
    aclshim_scope second = aclshim_scope_begin("second", ACLSHIM_WHOLE_PROCESS);
    say("set", aclshim_inject(second, "nth=1 return=507899"));
    may_go = 1;
    pthread_join(thread, NULL);
    say("the first call of the second", up_on(stream, 64));
    say("struck", aclshim_injected(second));
    aclshim_scope_end(second);
    return 0;
}
