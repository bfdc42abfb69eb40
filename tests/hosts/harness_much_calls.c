/* harness_much_calls WHAT: much of everything, for long.
 *   queries       a large scope is asked again and again
 *   workers       a thread begins and ends scopes while main's own is open, with little address space
 *   orphans       a thread ends, and its scopes do not
 *   batches       the first batch of the process and the second
 *   names         more marks and names than the record has room for
 *   fork          a fork in a handler that has interrupted the handing out of an answer
 *   golden PATH   what is in a file
 *   refused       what is refused and not looked at */
#include "harness_host.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* The memory of the process in bytes: 0 all of its address space, 1 what is in use. */
static long memory(int which)
{
    long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2)
        _exit(95);
    fclose(file);
    return pages[which] * sysconf(_SC_PAGESIZE);
}

static int queries(void)
{
    enum { CALLS = 60000, TIMES = 150 };
    struct aclshim_call *calls = malloc(CALLS * sizeof *calls);
    aclshim_scope scope = aclshim_scope_begin("large", ACLSHIM_THIS_THREAD);
    for (int i = 0; i < CALLS; i++)
        up(64);
    int64_t wrong = 0;
    for (int i = 0; i < TIMES; i++)
        wrong += aclshim_calls(scope, NULL, calls, CALLS) != CALLS;
    say("wrong", wrong);
    say("too much", memory(1) > 256 << 20);
    aclshim_scope inner = aclshim_scope_begin("inner", ACLSHIM_THIS_THREAD);
    say("inner", inner > 0);
    say("inner end", aclshim_scope_end(inner));
    say("end", aclshim_scope_end(scope));
    return 0;
}

static pthread_barrier_t both;

static void *work(void *unused)
{
    enum { ROUNDS = 100, CALLS = 1000 };
    int64_t wrong = 0;
    aclrtSetCurrentContext(context);
    up(64);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    for (int i = 0; i < ROUNDS; i++) {
        aclshim_scope own = aclshim_scope_begin("worker's", ACLSHIM_THIS_THREAD);
        wrong += own <= 0 || aclshim_expect_calls(own, NULL, CALLS, CALLS) != 0;
        for (int k = 0; k < CALLS; k++)
            up(64);
        wrong += aclshim_scope_end(own) != 0;
    }
    say("wrong", wrong);
    return unused;
}

/* From here on there is address space for the smallest heap of the harness, and not for the next larger one. */
static void little_space(void)
{
    struct rlimit limit = {0, RLIM_INFINITY};
    limit.rlim_cur = (rlim_t)memory(0) + (40 << 20);
    setrlimit(RLIMIT_AS, &limit);
}

static int workers(void)
{
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread = start(work);
    up(64);
    pthread_barrier_wait(&both);
    little_space();
    aclshim_scope mine = aclshim_scope_begin("main's", ACLSHIM_THIS_THREAD);
    up(64);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    say("mine", aclshim_count(mine, NULL));
    say("end", aclshim_scope_end(mine));
    return 0;
}

static aclshim_scope whole, theirs;
static pid_t gone;

static void *forget(void *around)
{
    gone = (pid_t)syscall(SYS_gettid);
    aclrtSetCurrentContext(context);
    if (around)
        whole = aclshim_scope_begin("whole", ACLSHIM_WHOLE_PROCESS);
    theirs = aclshim_scope_begin("theirs", ACLSHIM_THIS_THREAD);
    aclshim_expect_calls(theirs, NULL, 1, 1);
    aclshim_inject(theirs, "aclrtMemset return=5");
    up(64);
    return NULL;
}

/* A thread that was joined may still be on its way out. */
static void run_and_lose(void *around)
{
    pthread_t thread;
    pthread_create(&thread, NULL, forget, around);
    pthread_join(thread, NULL);
    while (syscall(SYS_tgkill, getpid(), gone, 0) == 0)
        sched_yield();
}

static int orphans(void)
{
    run_and_lose(NULL);
    aclshim_scope mine = aclshim_scope_begin("mine", ACLSHIM_THIS_THREAD);
    say("failures", aclshim_failures());
    say("theirs", aclshim_count(theirs, NULL));
    up(64);
    say("mine", aclshim_count(mine, NULL));
    say("mine end", aclshim_scope_end(mine));
    run_and_lose(&mine);
    say("asked", aclshim_count(theirs, NULL));
    say("failures", aclshim_failures());
    run_and_lose(&mine);
    say("whole end", aclshim_scope_end(whole));
    say("failures", aclshim_failures());
    return 0;
}

static int async_batch(void)
{
    void *dst = device, *src = pinned;
    size_t room = 64, size = 64, first = 0, failed = 0;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return aclrtMemcpyBatchAsync(&dst, &room, &src, &size, 1, &attr, &first, 1, &failed, stream);
}

static int batches(void)
{
    struct aclshim_finding findings[16];
    aclshim_scope scope = aclshim_scope_begin("batches", ACLSHIM_THIS_THREAD);
    printf("codes %d %d\n", async_batch(), async_batch());
    int64_t n = aclshim_findings(scope, NULL, findings, 16);
    for (int64_t i = 0; i < n; i++)
        printf("%d %s\n", (int)findings[i].call, findings[i].rule);
    say("end", aclshim_scope_end(scope));
    return 0;
}

static int names(void)
{
    int64_t wrong = 0;
    for (int i = 0; i < 100000; i++) {
        wrong += aclshim_mark("a mark") != 0;
        wrong += aclshim_name_stream(stream, "copies") != 0;
        wrong += aclshim_name_buffer(device, 64, i % 2 ? "weights" : NULL) != 0;
    }
    say("wrong", wrong);
    aclshim_scope scope = aclshim_scope_begin("named", ACLSHIM_THIS_THREAD);
    up(64);
    say("by name", aclshim_count(scope, "dst=weights"));
    say("end", aclshim_scope_end(scope));
    return 0;
}

static struct aclshim_call *answer;
static pid_t child = -1;

static void on_fault(int signal)
{
    (void)signal;
    child = fork();
    mprotect(answer, 4096, PROT_READ | PROT_WRITE);
}

static int forks(void)
{
    answer = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, on_fault);
    aclshim_scope scope = aclshim_scope_begin("parent", ACLSHIM_THIS_THREAD);
    up(64), up(64);
    int64_t n = aclshim_calls(scope, NULL, answer, 4);
    if (child == 0) {
        aclshim_scope own = aclshim_scope_begin("child", ACLSHIM_THIS_THREAD);
        copy();
        _exit(n == 2 && answer[1].count == 64 && aclshim_count(own, NULL) == 1 ? 7 : 8);
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("parent", n);
    printf("child %d %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WEXITSTATUS(status));
    say("end", aclshim_scope_end(scope));
    return 0;
}

static int golden(const char *path)
{
    aclshim_scope scope = aclshim_scope_begin("golden", ACLSHIM_THIS_THREAD);
    aclshim_expect_golden(scope, path);
    up(64);
    return (int)aclshim_scope_end(scope);
}

static int refused(void)
{
    aclshim_scope scope = aclshim_scope_begin("refused", ACLSHIM_THIS_THREAD);
    aclshim_inject(scope, "aclrtMemcpy return=5");
    aclshim_expect_calls(scope, "aclrtMemcopy", 0, 0);
    return (int)aclshim_scope_end(scope);
}

int main(int argc, char **argv)
{
    begin();
    if (argc > 2)
        return golden(argv[2]);
    const struct {
        const char *name;
        int (*work)(void);
    } all[] = {{"queries", queries}, {"workers", workers}, {"orphans", orphans}, {"batches", batches},
               {"names", names},     {"fork", forks},      {"refused", refused}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (argc > 1 && !strcmp(argv[1], all[i].name))
            return all[i].work();
    return 2;
}
