/* inject_calls CASE TIMES...: calls of a kind, TIMES times, and what each returned. With ENTERED in the environment
 * also how often the vendor was entered. A failing index stands behind the code. */
#include "check_host.h"
#include <dlfcn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static struct batch batch;

static int call_copy(void) { return aclrtMemcpy(dev, 64, pin, 64, H2D); }
static int call_back(void) { return aclrtMemcpy(pin, 64, dev, 64, D2H); }
static int call_large(void) { return aclrtMemcpy(dev, SIZE, pin, SIZE, H2D); }
static int call_bad(void) { return aclrtMemcpy(dev, 63, pin, 64, H2D); }
static int call_async(void) { return aclrtMemcpyAsync(dev, 64, pin, 64, H2D, stream); }
static int call_default(void) { return aclrtMemcpyAsync(dev, 64, pin, 64, H2D, NULL); }
static int call_set(void) { return aclrtMemset(dev, 64, 0, 64); }
static int call_batch(void)
{
    batch = fresh();
    return BATCH(batch);
}
static int call_home(void)
{
    batch = fresh();
    for (int i = 0; i < ITEMS; i++) {
        batch.dsts[i] = pin + i * ITEM;
        batch.srcs[i] = dev + i * ITEM;
    }
    batch.attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    batch.attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return BATCH(batch);
}
static int call_v2(void)
{
    batch = fresh();
    return BATCH_V2(batch);
}
/* Without a place for the failing index, which the vendor refuses. */
static int call_placeless(void)
{
    batch = fresh();
    batch.fail = NULL;
    return BATCH(batch);
}
/* Arrays that the vendor would refuse to read. */
static int call_arrays(void)
{
    batch = fresh();
    batch.srcs = NULL;
    return BATCH(batch);
}
/* A batch, or if there is no such thing, each copy by itself; whether all is there. */
static int call_fallback(void)
{
    batch = fresh();
    paint(pin, ITEMS * ITEM, 7);
    put(dev, ITEMS * ITEM, 1);
    int code = BATCH_ASYNC(batch, stream), singles = 0;
    if (code == UNSUPPORTED) {
        for (; singles < ITEMS; singles++)
            MUST(aclrtMemcpyAsync(batch.dsts[singles], ITEM, batch.srcs[singles], ITEM, H2D, stream));
    } else {
        MUST(code);
    }
    MUST(aclrtSynchronizeStream(stream));
    return has(dev, ITEMS * ITEM, 7) ? singles : -1;
}
static int call_lookup(void)
{
    static int (*copy)(void *, size_t, const void *, size_t, aclrtMemcpyKind);
    if (!copy)
        *(void **)&copy = dlsym(dlopen("libascendcl.so", RTLD_NOW), "aclrtMemcpy");
    return copy ? copy(dev, 64, pin, 64, H2D) : -1;
}

static volatile int handled;
static void copy_in_handler(int signal_number)
{
    (void)signal_number;
    handled = call_copy();
}
static int call_handler(void)
{
    signal(SIGUSR1, copy_in_handler);
    raise(SIGUSR1);
    return handled;
}

/* A copy that is interrupted again and again: what the vendor had seen of it at the first and at the last signal. */
static volatile int is_calling, seen_first, seen_last;
static volatile unsigned long long entered_before;
static void look(int signal_number)
{
    (void)signal_number;
    if (!is_calling)
        return;
    seen_last = (int)(entered("aclrtMemcpy") - entered_before);
    if (seen_first < 0)
        seen_first = seen_last;
    errno = EIO;
}
static int call_slow(void)
{
    struct itimerval tick = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}};
    struct timespec from, to;
    signal(SIGALRM, look);
    seen_first = seen_last = -1;
    entered_before = entered("aclrtMemcpy");
    setitimer(ITIMER_REAL, &tick, NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    is_calling = 1;
    int code = call_copy();
    is_calling = 0;
    clock_gettime(CLOCK_MONOTONIC, &to);
    setitimer(ITIMER_REAL, &none, NULL);
    watch();
    long long us = (to.tv_sec - from.tv_sec) * 1000000LL + (to.tv_nsec - from.tv_nsec) / 1000;
    printf(" [first %d, last %d, %s]", seen_first, seen_last, us >= 50000 ? "slow" : "fast");
    return code;
}
static int call_errno(void)
{
    errno = 77;
    int code = call_copy();
    return errno == 77 ? code : -errno;
}

static void *many_copies(void *failed)
{
    MUST(aclrtSetDevice(0));
    for (int i = 0; i < 500; i++)
        *(int *)failed += call_copy() != 0;
    return NULL;
}
/* Two threads with 500 copies each: how many failed. */
static int call_threads(void)
{
    pthread_t threads[2];
    int failed[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, many_copies, &failed[i]));
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL));
    return failed[0] + failed[1];
}
/* The same number of copies on one. */
static int call_thousand(void)
{
    int failed = 0;
    for (int i = 0; i < 1000; i++)
        failed += call_copy() != 0;
    return failed;
}
/* What a child's first and second copies return, both in one number. */
static int call_fork(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int first = call_copy(), second = call_copy();
        _exit((first == 5) << 1 | (second == 5));
    }
    MUST(waitpid(child, &status, 0) != child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CASE(name) {#name, call_##name}
static const struct {
    const char *name;
    int (*call)(void);
} known[] = {CASE(copy),  CASE(back),  CASE(large),     CASE(bad),    CASE(async),    CASE(default), CASE(set),
             CASE(batch), CASE(home),  CASE(v2),        CASE(placeless), CASE(arrays), CASE(fallback), CASE(lookup),
             CASE(handler), CASE(slow), CASE(errno),    CASE(threads), CASE(thousand), CASE(fork)};

int main(int argc, char **argv)
{
    open_world();
    for (int i = 1; i + 1 < argc; i += 2) {
        int (*call)(void) = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (!strcmp(known[k].name, argv[i]))
                call = known[k].call;
        MUST(!call);
        printf("%s:", argv[i]);
        for (int n = atoi(argv[i + 1]); n > 0; n--) {
            batch_fail = MARK;
            printf(" %d", call());
            if (batch_fail != MARK && batch_fail != SIZE_MAX)
                printf("/%zu", batch_fail);
        }
        printf("\n");
    }
    if (getenv("ENTERED"))
        printf("entered %llu\n", entered("aclrtMemcpy"));
    return 0;
}
