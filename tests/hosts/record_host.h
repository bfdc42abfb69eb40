/* What the record_* programs share: calls whose arguments all follow from a lane and a number, and a file `truth` that
 * says how far each lane is, before a call and after it, and that survives every end of the process. A lane is one flow
 * of calls: a thread, the signal handler of a thread, or a child. */
#ifndef RECORD_HOST_H
#define RECORD_HOST_H

#include "guest_host.h"
#include "record_pattern.h"
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LANES = 2047 };

struct lane {
    volatile uint64_t begun, ended, thread, process, rest[4];
};

static struct truth {
    uint64_t code_from, code_to; /* where this program's own code is */
    volatile uint64_t steps, rest[5];
    struct lane lanes[LANES];
} *truth;

extern char __executable_start, etext;

static inline void begin(void)
{
    limit();
    int fd = open("truth", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *truth) != 0)
        _exit(80);
    truth = (struct truth *)mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (truth == MAP_FAILED)
        _exit(81);
    close(fd);
    truth->code_from = (uint64_t)&__executable_start;
    truth->code_to = (uint64_t)&etext;
}

/* Call number `n` of a lane. The period is 7 calls and 12 to 14 slots. */
static inline int patterned(uint64_t lane, uint64_t n)
{
    uint64_t id = id_of(lane, n);
    void *dst = (void *)id, *src = (void *)mix(id, 1), *stream = (void *)mix(id, 3);
    size_t count = mix(id, 2) >> 20;
    int kind = (int)(mix(id, 4) & 15), value = (int)mix(id, 5);
    switch (n % 7) {
    case 0:
        return aclrtMemcpy(dst, count, src, count, (aclrtMemcpyKind)kind);
    case 1:
        return aclrtMemcpyAsync(dst, count, src, count, (aclrtMemcpyKind)kind, stream);
    case 2:
        return aclrtMemset(dst, count, value, count);
    case 3:
        return aclrtMemsetAsync(dst, count, value, count, stream);
    case 4: /* neither the room nor the kind fits into one slot */
        return aclrtMemcpyAsync(dst, count + 1 + (mix(id, 6) & 255), src, count, (aclrtMemcpyKind)(kind + 16), stream);
    case 5:
        return aclrtMemcpy2dAsync(dst, mix(id, 6), src, mix(id, 7), mix(id, 8), mix(id, 9), (aclrtMemcpyKind)kind, stream);
    default: {
        void *dsts[5], *srcs[5];
        size_t rooms[5], sizes[5], index = 0, items = 1 + n % 5;
        aclrtMemcpyBatchAttr attribute;
        memset(&attribute, 0, sizeof attribute);
        attribute.dstLoc.id = (uint32_t)(mix(id, 6) & 255);
        attribute.srcLoc.type = (aclrtMemLocationType)1;
        for (size_t i = 0; i < items; i++) {
            dsts[i] = (void *)mix(id, 10 + i);
            srcs[i] = (void *)mix(id, 20 + i);
            sizes[i] = 1 + (mix(id, 30 + i) & 0xffff);
            rooms[i] = sizes[i] + (mix(id, 40 + i) & 7);
        }
        return aclrtMemcpyBatch(dsts, rooms, srcs, sizes, items, &attribute, &index, 1, (size_t *)id);
    }
    }
}

/* The next call of a lane; its code and errno are checked as the host would see them. */
static inline void call(uint64_t lane)
{
    struct lane *mine = &truth->lanes[lane];
    uint64_t n = mine->begun;
    mine->begun = n + 1;
    int before = errno;
    errno = 1 + (int)(n % 100);
    if (patterned(lane, n) != code_of(id_of(lane, n)))
        _exit(82);
    if (errno != 1 + (int)(n % 100))
        _exit(83);
    errno = before;
    mine->ended = n + 1;
}

/* Who calls on a lane from now on. */
static inline void take(uint64_t lane)
{
    truth->lanes[lane].thread = (uint64_t)syscall(SYS_gettid);
    truth->lanes[lane].process = (uint64_t)getpid();
}

static inline void calls(uint64_t lane, uint64_t n)
{
    while (n-- > 0)
        call(lane);
}

#endif
