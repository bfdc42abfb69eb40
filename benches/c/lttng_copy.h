/* The tracepoint of lttng.c: the fields of a record. LTTng reads this file several times, each time for another part. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER aclshim_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_copy.h"

#if !defined(BENCH_LTTNG_COPY_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_COPY_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(aclshim_bench, copy,
    LTTNG_UST_TP_ARGS(uint32_t, function, void *, dst, size_t, destMax, const void *, src, size_t, count, int, kind,
                      void *, stream, int, code, uint64_t, duration),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, function, function)
        lttng_ust_field_integer_hex(uintptr_t, dst, (uintptr_t)dst)
        lttng_ust_field_integer(uint64_t, destMax, destMax)
        lttng_ust_field_integer_hex(uintptr_t, src, (uintptr_t)src)
        lttng_ust_field_integer(uint64_t, count, count)
        lttng_ust_field_integer(int, kind, kind)
        lttng_ust_field_integer_hex(uintptr_t, stream, (uintptr_t)stream)
        lttng_ust_field_integer(int, code, code)
        lttng_ust_field_integer(uint64_t, duration, duration)
    )
)

#endif

#include <lttng/tracepoint-event.h>
