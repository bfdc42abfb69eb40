/* harness_misuse WHAT: what a program should not do; each gives a code, and the program lives.
 *   wrong     scopes that are none, NULL everywhere, too little room, nonsense
 *   threads   everything at once from many threads, on scopes that others end
 *   fork      in a child, whose parent has scopes open
 *   ends      constructors, exit handlers and destructors
 *   forgotten a scope that is never ended */
#include "harness_host.h"
#include <limits.h>

static int wrong(void)
{
    struct aclshim_call calls[2];
    struct aclshim_item items[2];
    struct aclshim_finding findings[2];
    aclshim_scope none[] = {0, -1, -6, 1, 77, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        aclshim_scope s = none[i];
        int64_t all[] = {aclshim_scope_end(s), aclshim_count(s, NULL), aclshim_bytes(s, NULL), aclshim_calls(s, NULL, calls, 2),
                         aclshim_items(s, 0, items, 2), aclshim_findings(s, NULL, findings, 2),
                         aclshim_expect_calls(s, NULL, 0, 1), aclshim_expect_bytes(s, NULL, 0, 1),
                         aclshim_expect_order(s, NULL, NULL), aclshim_expect_finding(s, "DEST-MAX", 1),
                         aclshim_expect_clean(s, ACLSHIM_ERROR), aclshim_expect_golden(s, "x"), aclshim_inject(s, "delay=1ms"),
                         aclshim_injected(s)};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            if (all[k] != ACLSHIM_NO_SCOPE)
                printf("scope %" PRId64 " function %zu: %" PRId64 "\n", s, k, all[k]);
    }
    say("reach", aclshim_scope_begin("x", 2));
    say("negative reach", aclshim_scope_begin("x", -1));
    aclshim_scope scope = aclshim_scope_begin(NULL, ACLSHIM_THIS_THREAD);
    say("no name", scope > 0);
    up(64), up(64), batch(3, 64);
    say("calls NULL", aclshim_calls(scope, NULL, NULL, 2));
    say("calls no room", aclshim_calls(scope, NULL, NULL, 0));
    memset(calls, 0xff, sizeof calls);
    say("calls too little room", aclshim_calls(scope, NULL, calls, 1));
    printf("filled %d, the next %s\n", calls[0].count == 64, calls[1].count == UINT64_MAX ? "not" : "too");
    say("calls huge room", aclshim_calls(scope, "aclrtMemcpy", calls, SIZE_MAX));
    say("items NULL", aclshim_items(scope, 2, NULL, 1));
    say("items too little room", aclshim_items(scope, 2, items, 2));
    say("items of no batch", aclshim_items(scope, 0, items, 2));
    say("items of no call", aclshim_items(scope, 3, items, 2));
    say("items of no call at all", aclshim_items(scope, UINT64_MAX, items, 2));
    say("findings NULL", aclshim_findings(scope, NULL, NULL, 1));
    say("no such rule", aclshim_findings(scope, "NO-SUCH-RULE", findings, 2));
    say("nonsense", aclshim_count(scope, "size=many"));
    say("nonsense too", aclshim_expect_calls(scope, "aclrtMemcopy", 0, 0));
    say("nonsense in order", aclshim_expect_order(scope, NULL, "aclrtMemcpy;kind=9Q"));
    say("bounds", aclshim_expect_calls(scope, NULL, 2, 1));
    say("no rule", aclshim_expect_finding(scope, NULL, 1));
    say("no such rule", aclshim_expect_finding(scope, "", 1));
    say("severity", aclshim_expect_clean(scope, 4));
    say("no path", aclshim_expect_golden(scope, NULL));
    say("empty path", aclshim_expect_golden(scope, ""));
    say("no injection", aclshim_inject(scope, NULL));
    say("nonsense injection", aclshim_inject(scope, "return=often"));
    say("mark NULL", aclshim_mark(NULL));
    say("stream NULL", aclshim_name_stream(NULL, "x"));
    say("stream's name", aclshim_name_stream(stream, ""));
    say("two words", aclshim_name_stream(stream, "two words"));
    say("default", aclshim_name_stream(stream, "default"));
    say("never named", aclshim_name_stream(stream, NULL));
    say("buffer NULL", aclshim_name_buffer(NULL, 1, "x"));
    say("buffer of nothing", aclshim_name_buffer(device, 0, "x"));
    say("buffer too long", aclshim_name_buffer(device, SIZE_MAX, "x"));
    say("status", aclshim_fail_exit(256) + aclshim_fail_exit(-1));
    char long_name[4096];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    aclshim_scope inner = aclshim_scope_begin(long_name, ACLSHIM_THIS_THREAD);
    say("long name", inner > 0);
    say("long selector", aclshim_count(inner, long_name));
    say("inner end", aclshim_scope_end(inner));
    say("end", aclshim_scope_end(scope));
    say("end again", aclshim_scope_end(scope));
    say("after the end", aclshim_calls(scope, NULL, calls, 2));
    return 0;
}

enum { ROUNDS = 300 };
static _Atomic int64_t shared;

static void *hammer(void *argument)
{
    struct aclshim_call calls[4];
    struct aclshim_finding findings[4];
    unsigned seed = (unsigned)(uintptr_t)&argument;
    aclrtSetCurrentContext(context);
    for (int i = 0; i < ROUNDS; i++) {
        aclshim_scope own = aclshim_scope_begin("own", rand_r(&seed) % 2);
        int64_t others = __atomic_exchange_n((int64_t *)&shared, own, __ATOMIC_ACQ_REL);
        up(64), up(1 << rand_r(&seed) % 12), batch(2, 64);
        aclshim_name_buffer(device + rand_r(&seed) % 4096, 64, i % 3 ? "some" : NULL);
        for (int k = 0; k < 2; k++) {
            aclshim_scope asked = k ? others : own;
            aclshim_calls(asked, "dst=some", calls, 4);
            aclshim_findings(asked, NULL, findings, 4);
            aclshim_expect_calls(asked, "size=64", 0, UINT64_MAX);
            aclshim_inject(asked, "aclrtMemset return=5");
            aclshim_mark("hammer");
        }
        if (aclshim_count(own, "aclrtMemcpy*") == 0)
            _exit(94);
        if (i % 2)
            aclshim_scope_end(others);
        aclshim_scope_end(own);
    }
    return NULL;
}

static int threads(void)
{
    pthread_t all[6];
    for (int i = 0; i < 6; i++)
        all[i] = start(hammer);
    for (int i = 0; i < 6; i++)
        pthread_join(all[i], NULL);
    aclshim_scope last = aclshim_scope_begin("last", ACLSHIM_THIS_THREAD);
    up(64);
    say("last", aclshim_count(last, NULL));
    say("last end", aclshim_scope_end(last));
    return 0;
}

static void *busily(void *stop)
{
    aclrtSetCurrentContext(context);
    while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
        aclshim_scope own = aclshim_scope_begin("busy", ACLSHIM_THIS_THREAD);
        copy();
        aclshim_scope_end(own);
    }
    return NULL;
}

static int forks(void)
{
    int stop = 0;
    pthread_t busy;
    pthread_create(&busy, NULL, busily, &stop);
    aclshim_scope scope = aclshim_scope_begin("parent", ACLSHIM_WHOLE_PROCESS);
    aclshim_expect_calls(scope, "aclrtMemset", 0, 0);
    aclshim_inject(scope, "aclrtMemset return=5");
    int wrong = 0;
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            wrong = aclshim_count(scope, NULL) != ACLSHIM_NO_SCOPE;
            wrong += copy() != 0;
            aclshim_scope own = aclshim_scope_begin("child", ACLSHIM_THIS_THREAD);
            wrong += own == scope;
            wrong += copy() != 0;
            wrong += aclshim_count(own, NULL) != 1;
            wrong += aclshim_scope_end(own) != 0;
            wrong += aclshim_failures() != 0;
            wrong += copy() != 0;
            _exit(wrong);
        }
        reap(child);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(busy, NULL);
    say("parent end", aclshim_scope_end(scope));
    return 0;
}

static aclshim_scope early;
static int early_code;

__attribute__((constructor(101))) static void constructor(void)
{
    early = aclshim_scope_begin("early", ACLSHIM_THIS_THREAD);
    early_code = copy();
}

static void at_exit(void)
{
    aclshim_scope scope = aclshim_scope_begin("at exit", ACLSHIM_THIS_THREAD);
    copy();
    say("at exit", aclshim_count(scope, NULL));
    aclshim_expect_calls(scope, NULL, 7, 7);
    say("at exit end", aclshim_scope_end(scope));
    fflush(stdout);
}

__attribute__((destructor(101))) static void destructor(void)
{
    aclshim_scope scope = aclshim_scope_begin("destructor", ACLSHIM_THIS_THREAD);
    copy();
    say("destructor", aclshim_count(scope, NULL));
    say("destructor end", aclshim_scope_end(scope));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    say("early", aclshim_count(early, NULL) + early_code);
    say("early end", aclshim_scope_end(early));
    begin();
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "wrong"))
        return wrong();
    if (!strcmp(argv[1], "threads"))
        return threads();
    if (!strcmp(argv[1], "fork"))
        return forks();
    say("fail exit", aclshim_fail_exit(9));
    if (!strcmp(argv[1], "forgotten")) {
        aclshim_scope scope = aclshim_scope_begin("forgotten", ACLSHIM_WHOLE_PROCESS);
        aclshim_expect_calls(scope, NULL, 0, 1);
        aclshim_expect_clean(scope, ACLSHIM_ERROR);
        return 0;
    }
    atexit(at_exit);
    return 0;
}
