/* harness_ends_thread WHAT: what threads leave behind.
 *   inject  one ends with its injection set; the next one lies at the same place
 *   left    a call that is struck, and never returns */
#include "harness_host.h"
#include <setjmp.h>
#include <sys/mman.h>

enum { STACK = 1 << 20 };
static pthread_t first;

static void *injects(void *unused)
{
    aclshim_scope scope = aclshim_scope_begin("gone", ACLSHIM_THIS_THREAD);
    say("set", aclshim_inject(scope, "aclrtMemcpy return=5"));
    say("own", copy());
    first = pthread_self();
    return unused;
}

static void *copies_on(void *unused)
{
    say("same place", pthread_equal(first, pthread_self()) != 0);
    say("other", copy());
    aclshim_scope scope = aclshim_scope_begin("next", ACLSHIM_THIS_THREAD);
    say("in a scope", copy());
    say("end", aclshim_scope_end(scope));
    return unused;
}

static int inject(void)
{
    void *(*works[])(void *) = {injects, copies_on};
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        pthread_attr_t attr;
        pthread_t thread;
        pthread_attr_init(&attr);
        pthread_attr_setstack(&attr, stack, STACK);
        if (pthread_create(&thread, &attr, works[i], NULL) != 0)
            return 93;
        pthread_join(thread, NULL);
    }
    return 0;
}

static jmp_buf back;

static int left(void)
{
    struct aclshim_call call;
    aclshim_scope scope = aclshim_scope_begin("left", ACLSHIM_THIS_THREAD);
    aclshim_inject(scope, "aclrtMemcpy then_return=5");
    ascendclSimSetJump(&back);
    if (setjmp(back) == 0)
        up(64);
    ascendclSimSetJump(NULL);
    aclshim_calls(scope, NULL, &call, 1);
    printf("state %d flags %d\n", call.state, call.flags);
    say("end", aclshim_scope_end(scope));
    return 0;
}

int main(int argc, char **argv)
{
    begin();
    return argc > 1 && !strcmp(argv[1], "left") ? left() : inject();
}
