/* The host's batches: 1,000 items in a call of aclrtMemcpyBatchAsync, all of them right. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1000, ITEM = 4096 };

static void *dsts[ITEMS], *srcs[ITEMS];
static size_t dest_maxs[ITEMS], sizes[ITEMS];

static uint64_t run_batches(uint64_t calls)
{
    static aclrtMemcpyBatchAttr attribute = {
        .dstLoc = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE},
        .srcLoc = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST},
    };
    static size_t first;
    size_t fail_index;
    uint64_t begin = now_ns();
    for (uint64_t call = 0; call < calls; call++) {
        if (aclrtMemcpyBatchAsync(dsts, dest_maxs, srcs, sizes, ITEMS, &attribute, &first, 1, &fail_index,
                                  (aclrtStream)from) != 0) {
            must(0, "a batch failed");
        }
    }
    return now_ns() - begin;
}

void batch(unsigned cpu, uint64_t warm_ms, uint64_t burst_us, uint64_t bursts)
{
    /* Addresses that nobody reads: the library behind us returns at once. */
    char *host = malloc(ITEMS * ITEM), *device = malloc(ITEMS * ITEM);
    must(host && device, "no memory");
    for (size_t item = 0; item < ITEMS; item++) {
        srcs[item] = host + item * ITEM;
        dsts[item] = device + item * ITEM;
        dest_maxs[item] = sizes[item] = ITEM;
    }
    run_batches(1);
    pin(cpu);
    uint64_t calls = warm_up(run_batches, 4, warm_ms, burst_us * 1000u);
    for (uint64_t burst = 0; burst < bursts; burst++) {
        printf("batch_ns %.4f\n", (double)run_batches(calls) / (double)calls);
    }
}
