/* guest_jail FOLDER N [FILE]: makes its first of N calls where there is neither a ring folder nor a place for a log; with a
 * file of its own in the place of its standard error, if one is named. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    limit();
    if (argc < 3 || (argc > 3 && dup2(open(argv[3], O_WRONLY | O_CREAT, 0600), 2) != 2))
        return 2;
    if (chroot(argv[1]) != 0 || chdir("/") != 0)
        return 2;
    copies(atoi(argv[2]));
    printf("called\n");
    return 0;
}
