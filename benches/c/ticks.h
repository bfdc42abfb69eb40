/* The processor's own clock: what a recorder that must be cheap reads instead of clock_gettime. */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
#error "x86-64 and aarch64 only, like the shim"
#endif
}

/* The same, but nothing before it is unfinished and nothing after it has begun. */
static inline uint64_t ticks_in_order(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
    uint64_t now = ticks();
    __asm__ volatile("lfence" ::: "memory");
#else
    __asm__ volatile("isb" ::: "memory");
    uint64_t now = ticks();
    __asm__ volatile("isb" ::: "memory");
#endif
    return now;
}

#endif
