/* The vendor jumps out of its 2nd and 5th call; the calls after it come from shallower, deeper and equal frames. */
#include "guest_host.h"
#include <setjmp.h>

static int __attribute__((noinline)) at_depth(int depth)
{
    volatile char frame[256];
    frame[0] = (char)depth;
    int code = depth == 0 ? copy() : at_depth(depth - 1);
    return code + (frame[0] - (char)depth);
}

static void __attribute__((noinline)) one(int depth)
{
    jmp_buf back;
    ascendclSimSetJump(&back);
    if (setjmp(back) == 0)
        printf("returned %d\n", at_depth(depth));
    else
        printf("jumped\n");
    ascendclSimSetJump(NULL);
}

int main(void)
{
    const int depths[] = {0, 50, 0, 200, 0, 100, 100, 3};
    limit();
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        one(depths[i]);
    own(sizeof depths / sizeof *depths);
    return 0;
}
