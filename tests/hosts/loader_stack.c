/* loader_stack thread | handler: the first copy of the process on the smallest stack that a thread may have, or in a
 * signal handler on a small alternate stack with a guard below it. */
#define _GNU_SOURCE
#include "acl/acl.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int code = -1;

static void *copies(void *unused)
{
    (void)unused;
    code = aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT);
    return NULL;
}

static void handler(int signal)
{
    (void)signal;
    copies(NULL);
}

/* SIGSTKSZ as programs have compiled it in: the kernel takes 4.6 KiB of it on aarch64. */
#ifdef __x86_64__
enum { SMALL = 8192 };
#else
enum { SMALL = 16384 };
#endif

static void *handles(void *unused)
{
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, page + SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages, page, PROT_NONE);
    stack_t small = {.ss_sp = pages + page, .ss_size = SMALL};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&small, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_kill(pthread_self(), SIGUSR1);
    return NULL;
}

static void run(void *(*work)(void *), size_t stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (stack && pthread_attr_setstacksize(&attributes, stack))
        exit(2);
    code = -1;
    if (pthread_create(&thread, &attributes, work, NULL))
        exit(2);
    pthread_join(thread, NULL);
    printf("code %d\n", code);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "handler"))
        run(handles, 0);
    else
        run(copies, (size_t)sysconf(_SC_THREAD_STACK_MIN)); /* 16 KiB on x86-64, 128 on aarch64 */
    return 0;
}
