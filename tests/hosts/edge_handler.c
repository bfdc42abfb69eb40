/* edge_handler: a handler makes the first copies, and then the program does. Says after each how many threads there are:
 * one, or more. */
#include "guest_host.h"
#include <dirent.h>

static const char *threads(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n == 1 ? "one" : "more";
}

static void handler(int number)
{
    (void)number;
    copies(10);
}

int main(void)
{
    limit();
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    printf("after the handler: %s\n", threads());
    copies(500);
    own(510);
    printf("after the program: %s\n", threads());
    return 0;
}
