/* check_one CASE TIMES...: calls of a kind, TIMES times from one place. Says what the last one returned, how many
 * returned 0, and with ENTERED in the environment how often the vendor was entered. */
#include "check_host.h"
#include <dirent.h>

static aclrtStream other_stream;
static void *table; /* addresses in device memory */
static struct batch batch;

static int call_good(void) { return good_copy(); }
static int call_null(void) { return aclrtMemcpy(NULL, 64, pin, 64, H2D); }
static int call_room(void) { return aclrtMemcpy(dev, 63, pin, 64, H2D); }
static int call_room_too(void) { return aclrtMemcpy(dev, 31, pin, 32, H2D); }
static int call_overlap(void) { return aclrtMemcpy(dev + 32, 64, dev, 64, D2D); }
static int call_itself(void) { return aclrtMemcpy(dev, 64, dev, 64, D2D); }
static int call_zero(void) { return aclrtMemcpy(dev, 64, pin, 0, H2D); }
static int call_align(void) { return aclrtMemcpyAsync(dev + 1, 64, dev + 1024, 64, D2D, other_stream); }
static int call_host_align(void) { return aclrtMemcpyAsync(dev + 1, 64, pin, 64, H2D, other_stream); }
static int call_from_host(void) { return aclrtMemcpyAsync(dev, 64, pin, 64, H2D, other_stream); }
static int call_host_to_host(void) { return aclrtMemcpyAsync(pin2, 64, pin, 64, H2D, other_stream); }
static int call_by_default(void) { return aclrtMemcpyAsync(pin2, 64, pin, 64, ACL_MEMCPY_DEFAULT, other_stream); }
static int call_deprecated(void) { return aclrtMemcpyAsyncWithCondition(dev, 64, pin, 64, H2D, other_stream); }
static int call_offset(void)
{
    return aclrtMemcpyAsyncWithOffset((void **)table, 64, 0, (const void **)table + 1, 64, 0, INNER, other_stream);
}
static int call_batch(void)
{
    batch = fresh();
    return BATCH(batch);
}
static int call_experimental(void)
{
    batch = fresh();
    return BATCH_ASYNC(batch, other_stream);
}
static int call_late_index(void)
{
    batch = fresh();
    batch.first[0] = 1;
    return BATCH_ASYNC(batch, other_stream);
}
static int call_twice(void)
{
    batch = fresh();
    batch.dsts[1] = batch.dsts[0];
    return BATCH(batch);
}
static int call_twice_numa(void)
{
    batch = fresh();
    batch.dsts[1] = batch.dsts[0];
    batch.attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
    return BATCH(batch);
}
static int call_twice_both_ways(void)
{
    batch = fresh();
    batch.dsts[1] = batch.dsts[0];
    batch.ranges = 2;
    batch.first[1] = 2;
    batch.dsts[2] = pin2;
    batch.srcs[2] = dev2;
    batch.attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    batch.attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return BATCH(batch);
}
static int call_words(void) { return aclrtMemsetD32(dev, 64, 7, 16); }
static uint8_t variable[64];
static int call_symbol(void) { return aclrtMemcpyToSymbol(variable, pin, 64, 0, H2D); }
static int call_rows(void) { return aclrtMemcpy2d(dev, 64, pin, 64, 64, 4, H2D); }
static int call_rows_inside(void) { return aclrtMemcpy2dAsync(dev, 64, dev2, 64, 64, 4, D2D, other_stream); }
static int call_batch_room(void)
{
    batch = fresh();
    batch.rooms[2] = 1;
    return BATCH(batch);
}
static int call_fallback(void)
{
    batch = fresh();
    return BATCH(batch) == UNSUPPORTED ? good_copy() : 1;
}

static int thread_code;
static void without_context(void) { thread_code = aclrtMemcpy(dev, 64, pin, 64, H2D); }
static int call_context(void)
{
    on_new_thread(without_context);
    return thread_code;
}

/* Until the drain has written something, where there is one. */
static int call_wait(void)
{
    for (int files = 0; getenv("LD_PRELOAD") && files < 3; usleep(1000)) { /* "." and ".." */
        DIR *out = opendir("out");
        for (files = 0; out && readdir(out); files++)
            ;
        if (out)
            closedir(out);
    }
    return 0;
}

#define CASE(name, function) {#name, #function, call_##name}
static const struct {
    const char *name, *function;
    int (*call)(void);
} known[] = {
    CASE(good, aclrtMemcpy), CASE(null, aclrtMemcpy), CASE(room, aclrtMemcpy), CASE(room_too, aclrtMemcpy),
    CASE(overlap, aclrtMemcpy), CASE(itself, aclrtMemcpy), CASE(zero, aclrtMemcpy), CASE(align, aclrtMemcpyAsync),
    CASE(host_align, aclrtMemcpyAsync), CASE(from_host, aclrtMemcpyAsync),
    CASE(host_to_host, aclrtMemcpyAsync), CASE(by_default, aclrtMemcpyAsync),
    CASE(deprecated, aclrtMemcpyAsyncWithCondition), CASE(offset, aclrtMemcpyAsyncWithOffset),
    CASE(batch, aclrtMemcpyBatch), CASE(experimental, aclrtMemcpyBatchAsync), CASE(batch_room, aclrtMemcpyBatch),
    CASE(late_index, aclrtMemcpyBatchAsync), CASE(twice, aclrtMemcpyBatch), CASE(twice_numa, aclrtMemcpyBatch),
    CASE(twice_both_ways, aclrtMemcpyBatch), CASE(words, aclrtMemsetD32), CASE(symbol, aclrtMemcpyToSymbol),
    CASE(rows, aclrtMemcpy2d), CASE(rows_inside, aclrtMemcpy2dAsync), CASE(fallback, aclrtMemcpyBatch), CASE(context, aclrtMemcpy), CASE(wait, none),
};
enum { KNOWN = sizeof known / sizeof *known };

int main(int argc, char **argv)
{
    open_world();
    other_stream = stream;
    table = device_memory(64);
    ascendclSimRegisterSymbol(variable, sizeof variable);
    for (int i = 1; i + 1 < argc; i += 2) {
        int at = 0, code = 0, good = 0;
        while (at < KNOWN && strcmp(known[at].name, argv[i]))
            at++;
        if (at == KNOWN)
            return 2;
        unsigned long long before = entered(known[at].function);
        for (int n = atoi(argv[i + 1]); n > 0; n--)
            good += (code = known[at].call()) == 0;
        printf("%s: %d, %d good", argv[i], code, good);
        if (getenv("ENTERED"))
            printf(", entered %llu", entered(known[at].function) - before);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
