/* guest_trap WHAT: something else stands where the shim would write its log: a `link` to a file of the host's, a `fifo`
 * that nobody reads, a `folder`. */
#include "guest_host.h"
#include <sys/stat.h>

int main(int argc, char **argv)
{
    limit();
    const char *folder = getenv("ACLSHIM_DIR");
    if (argc < 2 || !folder)
        return 2;
    char path[4096];
    snprintf(path, sizeof path, "%s/aclshim-%d.jsonl", folder, (int)getpid());
    mkdir(folder, 0700);
    int made = !strcmp(argv[1], "link") ? symlink("../victim", path)
               : !strcmp(argv[1], "fifo") ? mkfifo(path, 0600)
                                          : mkdir(path, 0700);
    printf("made %d\n", made);
    copies(5);
    printf("copied\n");
    return 0;
}
