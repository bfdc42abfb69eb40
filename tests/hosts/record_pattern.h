/* What the record_* programs and their vendor agree on: the number of a call, and what is returned for it. */
#ifndef RECORD_PATTERN_H
#define RECORD_PATTERN_H

#include <stdint.h>

static inline uint64_t mix(uint64_t id, uint64_t salt)
{
    uint64_t z = id + salt * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline uint64_t id_of(uint64_t lane, uint64_t n)
{
    return 0x5Aull << 56 | lane << 40 | n;
}

/* Few calls fail: each gets a line in the log. */
static inline int code_of(uint64_t id)
{
    uint64_t chance = mix(id, 99);
    return chance % 251 == 0 ? (int)(100000 + chance % 1009) : 0;
}

#endif
