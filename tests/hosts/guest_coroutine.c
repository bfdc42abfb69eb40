/* The vendor jumps out of a call that was made on a coroutine's stack; the stack is given back, and the next
 * coroutine, right below it, calls again. */
#include "guest_host.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 64 * 1024 };

static ucontext_t home, routine;
static jmp_buf back;

static void run(void)
{
    if (setjmp(back) == 0)
        printf("returned %d\n", copy());
    else
        printf("jumped\n");
}

static void on(char *stack)
{
    getcontext(&routine);
    routine.uc_stack.ss_sp = stack;
    routine.uc_stack.ss_size = STACK;
    routine.uc_link = &home;
    makecontext(&routine, run, 0);
    swapcontext(&home, &routine);
}

int main(void)
{
    limit();
    char *low = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *high = low + STACK;
    ascendclSimSetJump(&back);
    on(high);
    munmap(high, STACK);
    on(low);
    on(low);
    own(3);
    return 0;
}
