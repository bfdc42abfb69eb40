/* guest_idle HOW: what a process has open and how many threads it is. `idle` never copies, `copies` does, `closes`
 * closes every descriptor between two copies and then has a file of its own. */
#include "guest_host.h"
#include <dirent.h>
#include <dlfcn.h>

static int entries(const char *path, int show)
{
    int n = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') {
            n++;
            if (show && atoi(entry->d_name) != dirfd(folder))
                printf("  %s\n", entry->d_name);
        }
    if (folder)
        closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    limit();
    const char *how = argc > 1 ? argv[1] : "idle";
    if (strcmp(how, "idle")) {
        copies(10);
        if (!strcmp(how, "closes")) {
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
            int fd = open("mine", O_RDWR | O_CREAT, 0600);
            printf("my descriptor is %d\n", fd);
            copies(10);
            if (write(fd, "my own", 6) != 6 || lseek(fd, 0, SEEK_END) != 6)
                return 3;
        }
        own(strcmp(how, "closes") ? 10 : 20);
    } else {
        /* Everything short of a copy: lookups and other calls of the vendor. */
        printf("init %d\n", aclInit(NULL));
        printf("found %d\n", dlsym(RTLD_DEFAULT, "aclrtMemcpyAsync") != NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        reap(child);
    }
    printf("threads %d\n", entries("/proc/self/task", 0));
    printf("descriptors\n");
    entries("/proc/self/fd", 1);
    return 0;
}
