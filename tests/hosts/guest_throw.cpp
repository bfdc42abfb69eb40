/* The vendor throws out of its 2nd and 5th call; the calls after it come from shallower, deeper and equal frames. */
#include "guest_host.h"

static int __attribute__((noinline)) at_depth(int depth)
{
    volatile char frame[256];
    frame[0] = (char)depth;
    int code = depth == 0 ? copy() : at_depth(depth - 1);
    return code + (frame[0] - (char)depth);
}

static void __attribute__((noinline)) one(int depth)
{
    try {
        printf("returned %d\n", at_depth(depth));
    } catch (int value) {
        printf("caught %d\n", value);
    }
}

int main()
{
    limit();
    const int depths[] = {0, 50, 0, 200, 0, 100, 100, 3};
    for (int depth : depths)
        one(depth);
    own(sizeof depths / sizeof *depths);
    return 0;
}
