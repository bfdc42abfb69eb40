/* A profiler's signal takes a backtrace amid lookups: it must reach main as often as not. Prints whether any was cut. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t whole, cut;
static void *main_start, *main_end;

static void sample(int signal)
{
    (void)signal;
    void *frames[64];
    int depth = backtrace(frames, 64);
    for (int i = 0; i < depth; i++)
        if (frames[i] >= main_start && frames[i] < main_end) {
            whole++;
            return;
        }
    cut++;
}

__attribute__((noinline)) static int lookups(void *handle)
{
    int found = 0;
    while (whole + cut < 200)
        found += dlsym(handle, "aclrtMemcpy") != NULL;
    return found;
}

int main(void)
{
    void *handle = dlopen("libascendcl.so", RTLD_NOW), *warm[4];
    backtrace(warm, 4);
    main_start = (void *)main;
    main_end = (char *)main + 512;
    signal(SIGPROF, sample);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &often, NULL);
    int found = lookups(handle) > 0;
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_PROF, &often, NULL);
    printf("found %d, cut %s\n", found, cut * 20 > whole ? "often" : "rarely or never");
    return 0;
}
