/* check_stack: a bad call, three functions deep. Says where each of them was called from, in bytes from the program's
 * beginning. */
#include "check_host.h"

extern char __executable_start;
static volatile int sum;

/* Nothing may be the last thing in a function: a jump instead of a call would leave no return address. */
static void say(const char *name, void *from)
{
    printf("%s %zx\n", name, (size_t)((char *)from - &__executable_start));
    sum++;
}

static __attribute__((noinline)) void inner(void)
{
    struct batch batch = fresh();
    batch.rooms[1] = 0;
    sum += BATCH(batch);
    say("inner", __builtin_return_address(0));
}

static __attribute__((noinline)) void middle(void)
{
    inner();
    say("middle", __builtin_return_address(0));
}

static __attribute__((noinline)) void outer(void)
{
    middle();
    sum += aclrtMemcpy(dev, 63, pin, 64, H2D);
    say("outer", __builtin_return_address(0));
}

int main(void)
{
    open_world();
    printf("good: %d\n", good_copy());
    outer();
    return 0;
}
