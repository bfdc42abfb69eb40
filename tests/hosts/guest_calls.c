/* guest_calls N: makes N calls. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    limit();
    int n = argc > 1 ? atoi(argv[1]) : 1;
    copies(n);
    own((uint64_t)n);
    printf("done\n");
    return 0;
}
