/* What the parts of the host share: one call of the function that is measured, and the clock around it. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include "acl/acl.h"
#include "ticks.h"

#include <stdint.h>

extern char from[4096], to[4096];

static inline aclError copy(void)
{
    return aclrtMemcpyAsync(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_DEVICE, (aclrtStream)from);
}

/* Ends the host: what it would print would be wrong. */
void must(int held, const char *what);

uint64_t now_ns(void);

/* Makes so many calls; the time they took. */
typedef uint64_t runner(uint64_t calls);

runner run;

/* Calls for `warm_ms`; returns how many calls fill `span_ns`. `group` calls are made at a time. */
uint64_t warm_up(runner *make, uint64_t group, uint64_t warm_ms, uint64_t span_ns);

/* Pins the calling thread to the `which`th of the processors that we may use. Threads that a preloaded library
 * has started before stay free. */
void pin(unsigned which);

/* What is resident. */
long rss_kib(void);

/* The shared memory that all files of a folder take. */
double blocks_kib(const char *folder);

/* Prints rss_kib, the most that was resident, and ring_kib, the shared memory in ACLSHIM_RING_DIR. */
void print_memory(void);

/* The modes that have a file of their own; see host.c. */
void batch(unsigned cpu, uint64_t warm_ms, uint64_t burst_us, uint64_t bursts);
void threads(unsigned count, uint64_t ms);
void alive(unsigned count);
void brief(unsigned count);
void many(unsigned count);
void paced(unsigned count, uint64_t calls_a_ms, uint64_t ms);
void bursts(unsigned count, uint64_t calls, int waits);
void idle(uint64_t ms);
void full(uint64_t ms);
void live(unsigned count);
void spin(void);

#endif
