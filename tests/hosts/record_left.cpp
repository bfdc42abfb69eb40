/* record_left HOW CALLS: the vendor leaves its 2nd call by an exception (`throw`) or a jump (`jump`); then this many calls
 * follow, from the frame above. */
#include "guest_host.h"
#include <setjmp.h>

static void __attribute__((noinline)) thrown()
{
    try {
        printf("returned %d\n", copy());
    } catch (int value) {
        printf("caught %d\n", value);
    }
}

static void __attribute__((noinline)) jumped()
{
    jmp_buf back;
    ascendclSimSetJump(&back);
    if (setjmp(back) == 0)
        printf("returned %d\n", copy());
    else
        printf("jumped\n");
    ascendclSimSetJump(NULL);
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 3)
        return 2;
    int n = atoi(argv[2]);
    copies(1);
    if (!strcmp(argv[1], "throw"))
        thrown();
    else
        jumped();
    copies(n);
    own((uint64_t)n + 2);
    return 0;
}
