/* record_steps ORDERS [leaderless]: does what the lines that come out of the pipe ORDERS say, and counts them in `steps`.
 * With `leaderless` a second thread does it, and the first one ends before: the process then shows as a zombie.
 *   calls N           N calls
 *   forks N           N children one after the other, which make 20 calls each and end by _exit
 *   fill FILE         writes into a file until its disk is full
 *   remove FILE       removes it
 *   cut FILE SIZE     cuts it, or makes it longer
 *   end               returns */
#include "record_host.h"
#include <pthread.h>

static void fill(const char *path)
{
    static char block[4096];
    memset(block, 'x', sizeof block);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    size_t size = sizeof block;
    if (fd < 0)
        _exit(85);
    while (size > 0) /* to the last byte */
        if (write(fd, block, size) <= 0)
            size /= 2;
    if (errno != ENOSPC)
        _exit(86);
    close(fd);
}

static void forks(uint64_t n)
{
    static uint64_t made;
    for (; n > 0; n--) {
        made++;
        pid_t child = fork();
        if (child == 0) {
            take(made);
            calls(made, 20);
            _exit(0);
        }
        reap(child);
    }
}

static int obey(const char *pipe)
{
    FILE *orders = pipe ? fopen(pipe, "r") : NULL;
    char line[4096], word[16], path[4000];
    take(0);
    while (orders && fgets(line, sizeof line, orders)) {
        unsigned long long n = 0;
        int found = sscanf(line, "%15s %3999s %llu", word, path, &n);
        if (found >= 2 && !strcmp(word, "calls"))
            calls(0, (uint64_t)atoll(path));
        else if (found >= 2 && !strcmp(word, "forks"))
            forks((uint64_t)atoll(path));
        else if (found >= 2 && !strcmp(word, "fill"))
            fill(path);
        else if (found >= 2 && !strcmp(word, "remove")) {
            if (unlink(path) != 0)
                return 3;
        } else if (found == 3 && !strcmp(word, "cut")) {
            if (truncate(path, (off_t)n) != 0)
                return 4;
        } else if (!strcmp(word, "end")) {
            printf("done\n");
            return 0;
        } else
            return 5;
        truth->steps++;
    }
    return 6;
}

/* The state of the process, which is that of its first thread. */
static char state(void)
{
    char line[512] = "";
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (length <= 0)
        _exit(87);
    close(fd);
    return *(strrchr(line, ')') + 2);
}

static void *without_leader(void *pipe)
{
    while (state() != 'Z')
        sched_yield();
    exit(obey(pipe));
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 3)
        return obey(argv[1]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, without_leader, argv[1]) != 0)
        return 7;
    pthread_exit(NULL);
}
