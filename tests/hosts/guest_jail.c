/* guest_jail FOLDER N: makes its first of N calls where there is neither a ring folder nor a place for a log. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    limit();
    if (argc < 3 || chroot(argv[1]) != 0 || chdir("/") != 0)
        return 2;
    copies(atoi(argv[2]));
    printf("called\n");
    return 0;
}
