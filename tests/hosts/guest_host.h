/* What the guest_* programs share: a copy that needs no device, their own count, and an end to every hang. */
#ifndef GUEST_HOST_H
#define GUEST_HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "acl/ascendcl_sim.h"

/* Nothing to copy is a success before everything else: a call for the strangest places. */
static inline int copy(void)
{
    return aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_HOST);
}

static inline void copies(int n)
{
    while (n-- > 0)
        if (copy() != 0)
            _exit(90);
}

/* Who hangs is killed by SIGALRM, which no other run of the program ends with; however busy the machine is, nobody else. */
static inline void limit(void)
{
    alarm(600);
}

/* Adds to what this program says it has called: one line a process in the file `own`. */
static inline void own(uint64_t calls)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%llu\n", (unsigned long long)calls);
    int fd = open("own", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(91);
    close(fd);
}

/* Waits for a child and says how it ended, if not well. */
static inline void reap(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        printf("a child ended with status %x\n", (unsigned)status);
        exit(92);
    }
}

#endif
