/* edge_trap CALL [blocked]: a sandbox sends SIGSYS for one system call, and a handler answers that it is not there, as
 * those of browsers do. The program then copies for the first time; with `blocked` it holds back all signals. The first
 * word of the file `trapped` is how often the handler ran. */
#include "guest_host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

static unsigned long *trapped;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#ifdef __x86_64__
    machine->gregs[REG_RAX] = -ENOSYS;
#else
    machine->regs[0] = (unsigned long long)-ENOSYS;
#endif
    __atomic_add_fetch(trapped, 1, __ATOMIC_RELAXED);
}

static void trap(unsigned call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(97);
}

static unsigned number(const char *name)
{
    const struct {
        const char *name;
        unsigned number;
    } known[] = {{"getppid", SYS_getppid}, {"fallocate", SYS_fallocate}, {"sched_setaffinity", SYS_sched_setaffinity},
                 {"flock", SYS_flock}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return known[i].number;
    _exit(98);
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 2)
        return 2;
    int file = open("trapped", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *trapped) != 0)
        return 3;
    trapped = mmap(NULL, sizeof *trapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (trapped == MAP_FAILED)
        return 4;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    if (argc > 2) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    trap(number(argv[1]));
    copies(100);
    printf("100 copies\n");
    return 0;
}
