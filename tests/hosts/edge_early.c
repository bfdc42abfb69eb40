/* edge_early LATER: 5 copies while there is no memory for anything of ours, and LATER more when there is. */
#include "guest_host.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    limit();
    struct rlimit before, none;
    if (argc < 2 || getrlimit(RLIMIT_AS, &before) != 0)
        return 2;
    void *volatile heap = malloc(100000); /* so that the vendor still finds a little */
    free(heap);
    none = before;
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_AS, &none) != 0)
        return 3;
    copies(5);
    if (setrlimit(RLIMIT_AS, &before) != 0)
        return 4;
    copies(atoi(argv[1]));
    printf("all copied\n");
    return 0;
}
