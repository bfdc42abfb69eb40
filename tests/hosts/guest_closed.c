/* What a host's descriptors and ours may do to each other.
 * guest_closed print N: standard output is closed, and a thread prints all the time, while N threads, a few at a time,
 *   make their first calls.
 * guest_closed large N: the same with a thread that writes to every number up to 15, more than a ring's room at once.
 * guest_closed scribble N: N threads make their first calls while the header of the ring file says nonsense.
 * guest_closed fork N: N children of fork, while threads make their first calls; each child counts ring descriptors. */
#include "guest_host.h"
#include <dirent.h>
#include <pthread.h>

static volatile int over;

static void *brief(void *unused)
{
    copies(3);
    return unused;
}

static void *print(void *unused)
{
    static const char text[] = "printed while standard output is closed, over and over\n";
    while (!over)
        (void)!write(1, text, sizeof text - 1);
    return unused;
}

static void *print_much(void *unused)
{
    static char text[200 << 10];
    memset(text, 'x', sizeof text);
    while (!over)
        for (int fd = 3; fd < 16; fd++)
            (void)!write(fd, text, sizeof text);
    return unused;
}

/* Threads that come and go, four at a time. */
static void waves(int n)
{
    pthread_t threads[4];
    for (int i = 0; i < n; i += 4) {
        for (int k = 0; k < 4; k++)
            if (pthread_create(&threads[k], NULL, brief, NULL) != 0)
                _exit(93);
        for (int k = 0; k < 4; k++)
            pthread_join(threads[k], NULL);
    }
}

/* All at once: each needs a ring of its own. */
static pthread_barrier_t all;

static void *together(void *unused)
{
    copies(3);
    pthread_barrier_wait(&all);
    return unused;
}

static void at_once(int n)
{
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &small, together, NULL) != 0)
            _exit(93);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* The path of this process's ring file. */
static void ring_path(char *path, size_t room)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "aclshim-%d-", (int)getpid());
    DIR *dir = opendir(getenv("ACLSHIM_RING_DIR"));
    path[0] = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (!strncmp(entry->d_name, prefix, strlen(prefix)) && strstr(entry->d_name, ".ring"))
            snprintf(path, room, "%s/%s", getenv("ACLSHIM_RING_DIR"), entry->d_name);
    if (dir)
        closedir(dir);
}

static void *first_calls(void *unused)
{
    while (!over)
        at_once(16);
    return unused;
}

/* How many descriptors of a ring file this process has. */
static int leaked(void)
{
    int found = 0;
    for (int fd = 0; fd < 256; fd++) {
        char link[64], target[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length > 0) {
            target[length] = 0;
            found += strstr(target, ".ring") != NULL;
        }
    }
    return found;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 3)
        return 2;
    int n = atoi(argv[2]);
    pthread_t beside;
    if (!strcmp(argv[1], "print") || !strcmp(argv[1], "large")) {
        int much = !strcmp(argv[1], "large");
        close(1);
        pthread_create(&beside, NULL, much ? print_much : print, NULL);
        at_once(n / 2);
        waves(n / 2);
        over = 1;
        pthread_join(beside, NULL);
        own((uint64_t)n * 3);
    } else if (!strcmp(argv[1], "scribble")) {
        /* pid and uid; born_ns, first, stride, slots, mode and clock: where rings lie, and under which name. */
        static const struct { off_t at; size_t size; } parts[] = {{16, 8}, {40, 36}};
        char path[4096], kept[2][64], none[64] = {0};
        copies(1);
        ring_path(path, sizeof path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        for (int i = 0; fd >= 0 && i < 2; i++)
            if (pread(fd, kept[i], parts[i].size, parts[i].at) < 0 || pwrite(fd, none, parts[i].size, parts[i].at) < 0)
                return 4;
        at_once(n);
        for (int i = 0; fd >= 0 && i < 2; i++)
            if (pwrite(fd, kept[i], parts[i].size, parts[i].at) < 0)
                return 4;
        own((uint64_t)n * 3 + 1);
        printf("%d threads\n", n);
    } else {
        pthread_create(&beside, NULL, first_calls, NULL);
        int leaks = 0;
        for (int i = 0; i < n; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(leaked() > 0 ? 7 : 0);
            int status = 0;
            if (child < 0 || waitpid(child, &status, 0) != child)
                return 5;
            leaks += WIFEXITED(status) && WEXITSTATUS(status) == 7;
        }
        over = 1;
        pthread_join(beside, NULL);
        printf("%d leaks\n", leaks);
    }
    return 0;
}
