/*
 * A peer: the same fields through LTTng-UST, the usual tracer of programs.
 *
 * One tracepoint when the call has returned, with the duration from two reads of the processor's clock;
 * the tracepoint's own timestamp is the end. That is the cheapest way: a second tracepoint at the
 * beginning, which would also name the call that hung, costs half as much again.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "acl/acl.h"
#include "lttng_copy.h"
#include "ticks.h"

#include <dlfcn.h>
#include <stdio.h>

enum { FUNCTION = 1 };

static __typeof__(&aclrtMemcpyAsync) real;

__attribute__((constructor)) static void find(void)
{
    real = (__typeof__(real))dlsym(RTLD_NEXT, "aclrtMemcpyAsync");
}

/* A tracepoint that nobody listens to would look fast. */
__attribute__((destructor)) static void tell(void)
{
    if (!lttng_ust_tracepoint_enabled(aclshim_bench, copy)) {
        fputs("lttng: the tracepoint was not enabled\n", stderr);
    }
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    uint64_t begin = ticks();
    aclError code = real(dst, destMax, src, count, kind, stream);
    uint64_t duration = ticks() - begin;
    lttng_ust_tracepoint(aclshim_bench, copy, FUNCTION, dst, destMax, src, count, kind, stream, code, duration);
    return code;
}
