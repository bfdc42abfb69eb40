/* run_state: everything about itself that a program can see, and three copies. run_state strange PROGRAM...: gives
 * itself a strange state and becomes the program: signals ignored and blocked, descriptors closed and open. */
#include "guest_host.h"
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;

static void become(char **program)
{
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &some, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    close(STDIN_FILENO);
    if (dup2(STDOUT_FILENO, 7) != 7 || dup2(STDERR_FILENO, 500) != 500)
        _exit(3);
    umask(027);
    /* Rust shows no such entry. */
    static char odd[] = "ODD";
    size_t count = 0;
    while (environ[count])
        count++;
    char **longer = calloc(count + 2, sizeof *longer);
    memcpy(longer, environ, count * sizeof *longer);
    longer[count] = odd;
    environ = longer;
    execvp(program[0], program);
    _exit(4);
}

static void descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fd == dirfd(folder))
            continue;
        struct stat about;
        fstat(fd, &about);
        printf("descriptor %d: kind %o, flags %d, mode %o\n", fd, about.st_mode & S_IFMT, flags,
               fcntl(fd, F_GETFL) & O_ACCMODE);
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "strange") == 0)
        become(argv + 2);
    limit();
    for (int i = 1; i < argc; i++)
        printf("argument %s\n", argv[i]);
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "ACLSHIM_", 8) && strncmp(*entry, "LD_PRELOAD=", 11))
            printf("entry %s\n", *entry);
    printf("group %d, session %d, terminal %d\n", getpgrp() == getpgid(getppid()) ? 0 : getpgrp(), getsid(0),
           tcgetpgrp(STDERR_FILENO));
    descriptors();
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    /* But for SigQ, which counts the signals of all processes of the user. */
    while (status && fgets(line, sizeof line, status))
        if ((!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4)) || !strncmp(line, "Shd", 3) ||
            !strncmp(line, "Umask", 5) || !strncmp(line, "NoNew", 5) || !strncmp(line, "Cap", 3) ||
            !strncmp(line, "Threads", 7))
            printf("%s", line);
    int death = 0;
    prctl(PR_GET_PDEATHSIG, &death);
    struct rlimit core, files;
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_NOFILE, &files);
    printf("death %d, dumpable %d, limits %lld %lld, nice %d\n", death, prctl(PR_GET_DUMPABLE), (long long)core.rlim_cur,
           (long long)files.rlim_cur, getpriority(PRIO_PROCESS, 0));
    copies(3);
    fprintf(stderr, "an error of its own\n");
    return 0;
}
