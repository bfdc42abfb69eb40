/* A library that starts threads in its constructor, before the preloaded libraries have run theirs: their first calls race
 * with the start of the shim. The thread that reads the shim's settings is held there until the others have made a hundred
 * good calls each. When it has returned, all threads make bad calls, which would fit the fast path:
 * dst is NULL. */
#include "guest_host.h"
#include <pthread.h>

enum { THREADS = 4, GOOD = 100, BAD = 1000 };

static pthread_t threads[THREADS], held;
static int good, bad, refused, is_started;

/* Called by the program's secure_getenv: the shim has no other for its settings. */
void racing_hold(void)
{
    if (held)
        return;
    __atomic_store_n(&held, pthread_self(), __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&good, __ATOMIC_SEQ_CST) < (THREADS - 1) * GOOD)
        sched_yield();
}

/* Whether this is the thread that was held: the shim has started then. */
static int let_go(void)
{
    int is_held = __atomic_load_n(&held, __ATOMIC_SEQ_CST) == pthread_self();
    if (is_held)
        __atomic_store_n(&is_started, 1, __ATOMIC_SEQ_CST);
    return is_held;
}

static void *race(void *unused)
{
    static char there[16];
    copies(1);
    if (!let_go())
        for (int i = 0; i < GOOD; i++) {
            copies(1);
            __atomic_add_fetch(&good, 1, __ATOMIC_SEQ_CST);
        }
    while (!__atomic_load_n(&is_started, __ATOMIC_SEQ_CST))
        sched_yield();
    for (int i = 0; i < BAD; i++) {
        int code = aclrtMemcpy(NULL, 16, there, 16, ACL_MEMCPY_HOST_TO_HOST);
        __atomic_add_fetch(&bad, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&refused, code == 100000, __ATOMIC_SEQ_CST);
    }
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    limit();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, race, NULL) != 0)
            _exit(93);
}

void racing_end(void)
{
    let_go();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int entered = (int)ascendclSimCalls("aclrtMemcpy") - THREADS - good;
    printf("%d bad calls, %d refused; %d have entered the vendor\n", bad, refused, entered);
}
