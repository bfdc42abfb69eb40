/*
 * The copies of an inference server that keeps part of its KV cache in host
 * memory, without the inference: paged cache on the device, blocks evicted and
 * prefetched by batches on their own streams, events between the streams,
 * weights loaded from ordinary memory, logits read back for the sampler. At the
 * end it makes some typical mistakes on purpose and reports the codes.
 *
 *   kv_offload [steps [layers]]        (defaults: 12 steps, 3 layers)
 *
 * Prints only what is the same in every run. Exit 0: every byte arrived and
 * every mistake was answered as expected.
 */
#include "example.h"

enum {
    BLOCK = 4096,      /* bytes of one block in one layer */
    BLOCKS = 10,       /* blocks of the whole context */
    SLOTS = 4,         /* of which so many fit on the device */
    PINNED_BLOCKS = 6, /* home of blocks 0-5 is pinned memory, of 6-9 pageable */
    NEEDED = 2,        /* blocks that a step works on */
    VOCABULARY = 512,  /* bytes of logits, one a token */
    MAX_LAYERS = 64
};
enum { UP, DOWN, COMPUTE, LANES }; /* a stream each, and an event that says how far it is */

static const aclrtMemcpyKind TO_DEVICE = ACL_MEMCPY_HOST_TO_DEVICE, TO_HOST = ACL_MEMCPY_DEVICE_TO_HOST;

struct server {
    size_t layers, weight_size;
    uint8_t *cache, *weights, *logits; /* device */
    uint8_t *pinned, *sampled;         /* host, pinned */
    uint8_t *overflow, *host_weights;  /* host, pageable */
    uint8_t *mirror;                   /* what each block should hold */
    aclrtStream stream[LANES];
    aclrtEvent done[LANES];
    int block_in[SLOTS]; /* -1: free */
    unsigned used_at[SLOTS];
    int has_batches; /* cleared by the first 207000 */
    size_t items_up, items_down;
};

/* Block copies in one direction. Items whose host side is pinned come first, so
 * that two attribute ranges describe them. */
struct batch {
    size_t count, first_pageable;
    void *dsts[NEEDED * MAX_LAYERS], *srcs[NEEDED * MAX_LAYERS];
    size_t rooms[NEEDED * MAX_LAYERS], sizes[NEEDED * MAX_LAYERS];
};

static uint8_t *slot_address(const struct server *s, size_t layer, int slot)
{
    return s->cache + (layer * SLOTS + (size_t)slot) * BLOCK;
}

static uint8_t *home_address(const struct server *s, size_t layer, int block)
{
    if (block < PINNED_BLOCKS)
        return s->pinned + (layer * PINNED_BLOCKS + (size_t)block) * BLOCK;
    return s->overflow + (layer * (BLOCKS - PINNED_BLOCKS) + (size_t)(block - PINNED_BLOCKS)) * BLOCK;
}

static uint8_t *mirror_address(const struct server *s, size_t layer, int block)
{
    return s->mirror + (layer * BLOCKS + (size_t)block) * BLOCK;
}

/* ---- Start and end ---- */

static void open_server(struct server *s, size_t layers)
{
    memset(s, 0, sizeof *s);
    s->layers = layers;
    s->weight_size = layers * BLOCK + VOCABULARY * 16;
    s->has_batches = 1;
    s->cache = device_alloc(layers * SLOTS * BLOCK);
    s->weights = device_alloc(s->weight_size);
    s->logits = device_alloc(VOCABULARY);
    s->pinned = pinned_alloc(layers * PINNED_BLOCKS * BLOCK);
    s->sampled = pinned_alloc(VOCABULARY);
    s->overflow = pageable_alloc(layers * (BLOCKS - PINNED_BLOCKS) * BLOCK);
    s->host_weights = pageable_alloc(s->weight_size);
    s->mirror = pageable_alloc(layers * BLOCKS * BLOCK);
    for (int lane = 0; lane < LANES; lane++) {
        CHECK(aclrtCreateStream(&s->stream[lane]));
        CHECK(aclrtCreateEventExWithFlag(&s->done[lane], ACL_EVENT_SYNC)); /* may be recorded again and again */
        CHECK(aclrtRecordEvent(s->done[lane], s->stream[lane]));
    }
    for (int slot = 0; slot < SLOTS; slot++)
        s->block_in[slot] = -1;
    for (size_t layer = 0; layer < layers; layer++)
        for (int block = 0; block < BLOCKS; block++) {
            fill(mirror_address(s, layer, block), BLOCK, (unsigned)layer * BLOCKS + (unsigned)block);
            memcpy(home_address(s, layer, block), mirror_address(s, layer, block), BLOCK);
        }
}

static void close_server(struct server *s)
{
    CHECK(aclrtSynchronizeDevice());
    for (int lane = 0; lane < LANES; lane++) {
        CHECK(aclrtDestroyEvent(s->done[lane]));
        CHECK(aclrtDestroyStream(s->stream[lane]));
    }
    free(s->mirror);
    free(s->host_weights);
    free(s->overflow);
    CHECK(aclrtFreeHost(s->sampled));
    CHECK(aclrtFreeHost(s->pinned));
    CHECK(aclrtFree(s->logits));
    CHECK(aclrtFree(s->weights));
    CHECK(aclrtFree(s->cache));
}

/* Weights come from a file: ordinary memory, a piece at a time, and nothing
 * else to do meanwhile. Plain copies will do. */
static void load_weights(struct server *s)
{
    const size_t piece = 3000;
    fill(s->host_weights, s->weight_size, 1234);
    for (size_t at = 0; at < s->weight_size; at += piece) {
        size_t rest = s->weight_size - at;
        CHECK(aclrtMemcpy(s->weights + at, rest, s->host_weights + at, rest < piece ? rest : piece, TO_DEVICE));
    }
    printf("weights: %zu bytes loaded\n", s->weight_size);
}

/* ---- Moving blocks ---- */

static void add_block(const struct server *s, struct batch *batch, int slot, aclrtMemcpyKind kind)
{
    for (size_t layer = 0; layer < s->layers; layer++) {
        uint8_t *home = home_address(s, layer, s->block_in[slot]), *here = slot_address(s, layer, slot);
        size_t i = batch->count++;
        batch->dsts[i] = kind == TO_DEVICE ? here : home;
        batch->srcs[i] = kind == TO_DEVICE ? home : here;
        batch->rooms[i] = batch->sizes[i] = BLOCK;
    }
}

/* Queues the copies on a stream: one call if the product can, else one by one. */
static void submit(struct server *s, struct batch *batch, aclrtMemcpyKind kind, aclrtStream stream)
{
    *(kind == TO_DEVICE ? &s->items_up : &s->items_down) += batch->count;
    if (s->has_batches) {
        aclrtMemcpyBatchAttr attrs[2];
        memset(attrs, 0, sizeof attrs); /* reserved bytes must be zero */
        for (int k = 0; k < 2; k++) {
            attrs[k].dstLoc.type = kind == TO_DEVICE ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
            attrs[k].srcLoc.type = kind == TO_DEVICE ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_DEVICE;
        }
        /* An empty range is not allowed: name the second only if both are there. */
        size_t first[2] = {0, batch->first_pageable};
        size_t ranges = batch->first_pageable > 0 && batch->first_pageable < batch->count ? 2 : 1;
        size_t fail_index = SIZE_MAX;
        aclError code = aclrtMemcpyBatchAsync(batch->dsts, batch->rooms, batch->srcs, batch->sizes, batch->count,
                                              attrs, first, ranges, &fail_index, stream);
        if (code == ACL_SUCCESS)
            return;
        EXPECT(code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a batch to work, or not to be supported at all");
        s->has_batches = 0;
    }
    for (size_t i = 0; i < batch->count; i++)
        CHECK(aclrtMemcpyAsync(batch->dsts[i], batch->rooms[i], batch->srcs[i], batch->sizes[i], kind, stream));
}

/* Copies the blocks of these slots, after `before` has done what it had to do. */
static void move_slots(struct server *s, const int *slots, int count, int lane, int before)
{
    struct batch batch;
    aclrtMemcpyKind kind = lane == UP ? TO_DEVICE : TO_HOST;
    batch.count = 0;
    for (int i = 0; i < count; i++)
        if (s->block_in[slots[i]] < PINNED_BLOCKS)
            add_block(s, &batch, slots[i], kind);
    batch.first_pageable = batch.count;
    for (int i = 0; i < count; i++)
        if (s->block_in[slots[i]] >= PINNED_BLOCKS)
            add_block(s, &batch, slots[i], kind);
    CHECK(aclrtStreamWaitEvent(s->stream[lane], s->done[before]));
    if (batch.count > 0)
        submit(s, &batch, kind, s->stream[lane]);
    CHECK(aclrtRecordEvent(s->done[lane], s->stream[lane]));
}

static int slot_of(const struct server *s, int block)
{
    for (int slot = 0; slot < SLOTS; slot++)
        if (s->block_in[slot] == block)
            return slot;
    return -1;
}

static int least_recent_slot(const struct server *s)
{
    int oldest = 0;
    for (int slot = 1; slot < SLOTS; slot++)
        if (s->used_at[slot] < s->used_at[oldest])
            oldest = slot;
    return oldest;
}

/* Brings the blocks of one step in and sends others home for them. Evictions
 * wait for the last step, prefetches for the evictions, the next step for the
 * prefetches; the host waits for nobody. */
static void make_resident(struct server *s, const int *blocks, unsigned now)
{
    int missing[NEEDED] = {0}, victims[NEEDED] = {0}, slots[NEEDED] = {0};
    int misses = 0, evictions = 0;
    for (int i = 0; i < NEEDED; i++) {
        int slot = slot_of(s, blocks[i]);
        if (slot >= 0)
            s->used_at[slot] = now; /* first, so that it is no victim */
        else
            missing[misses++] = blocks[i];
    }
    for (int i = 0; i < misses; i++) {
        slots[i] = least_recent_slot(s);
        s->used_at[slots[i]] = now;
        if (s->block_in[slots[i]] >= 0)
            victims[evictions++] = slots[i];
    }
    move_slots(s, victims, evictions, DOWN, COMPUTE);
    for (int i = 0; i < misses; i++)
        s->block_in[slots[i]] = missing[i];
    move_slots(s, slots, misses, UP, DOWN);
    CHECK(aclrtStreamWaitEvent(s->stream[COMPUTE], s->done[UP]));
}

/* ---- One step ---- */

/* Stands for the kernels: changes the blocks, on the device and in the mirror. */
static void compute(struct server *s, const int *blocks, unsigned step)
{
    aclrtStream stream = s->stream[COMPUTE];
    size_t row = (step % 8) * 256;
    for (size_t layer = 0; layer < s->layers; layer++)
        for (int i = 0; i < NEEDED; i++) {
            uint8_t *block = slot_address(s, layer, slot_of(s, blocks[i]));
            uint8_t *expected = mirror_address(s, layer, blocks[i]);
            int mark = (int)((step * 7 + layer) & 0xFF);
            CHECK(aclrtMemsetAsync(block, BLOCK, mark, 64, stream));
            memset(expected, mark, 64);
            CHECK(aclrtMemcpyAsync(block + 1024 + row, 256, s->weights + layer * BLOCK + row, 256,
                                   ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
            memcpy(expected + 1024 + row, s->host_weights + layer * BLOCK + row, 256);
        }
    CHECK(aclrtMemcpyAsync(s->logits, VOCABULARY, s->weights + s->layers * BLOCK + (step % 16) * VOCABULARY,
                           VOCABULARY, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    CHECK(aclrtRecordEvent(s->done[COMPUTE], stream));
}

/* Reads the logits back and takes the best token. */
static unsigned sample(struct server *s)
{
    CHECK(aclrtMemcpyAsync(s->sampled, VOCABULARY, s->logits, VOCABULARY, TO_HOST, s->stream[COMPUTE]));
    CHECK(aclrtSynchronizeStream(s->stream[COMPUTE]));
    unsigned best = 0;
    for (unsigned token = 1; token < VOCABULARY; token++)
        if (s->sampled[token] > s->sampled[best])
            best = token;
    return best;
}

static void serve(struct server *s, unsigned steps)
{
    printf("tokens:");
    for (unsigned step = 0; step < steps; step++) {
        int blocks[NEEDED];
        for (int i = 0; i < NEEDED; i++)
            blocks[i] = (int)((step * 3 + (unsigned)i * 4) % BLOCKS);
        make_resident(s, blocks, step + 1);
        compute(s, blocks, step);
        printf(" %u", sample(s));
    }
    printf("\n");
}

/* Sends everything home and compares it with the mirror. */
static void verify(struct server *s)
{
    for (int slot = 0; slot < SLOTS; slot++)
        if (s->block_in[slot] >= 0)
            move_slots(s, &slot, 1, DOWN, COMPUTE);
    CHECK(aclrtSynchronizeStream(s->stream[DOWN]));
    uint32_t sum = 0, expected = 0;
    for (size_t layer = 0; layer < s->layers; layer++)
        for (int block = 0; block < BLOCKS; block++) {
            sum = sum * 31 + checksum(home_address(s, layer, block), BLOCK);
            expected = expected * 31 + checksum(mirror_address(s, layer, block), BLOCK);
        }
    EXPECT(sum == expected, "the cache to hold what the mirror holds");
    printf("cache: %zu block copies up, %zu down, checksum %08" PRIx32 "\n", s->items_up, s->items_down, sum);
}

/* ---- Mistakes, and what a careful program makes of the answers ---- */

static int surprises;

static void report(const char *mistake, aclError code, aclError expected)
{
    printf("mistake: %s: code %d\n", mistake, code);
    surprises += code != expected;
}

static void report_that(const char *what, int is_so)
{
    printf("         %s: %s\n", what, is_so ? "yes" : "no");
    surprises += !is_so;
}

static void mistakes_with_one_copy(struct server *s)
{
    uint8_t *pinned = s->pinned, *pageable = pageable_alloc(BLOCK);
    aclrtStream stream = s->stream[COMPUTE];
    fill(pinned, 2 * BLOCK, 50);
    CHECK(aclrtMemcpy(s->cache, BLOCK, pinned, BLOCK, TO_DEVICE));

    report("asynchronous copy to pageable memory",
           aclrtMemcpyAsync(pageable, BLOCK, s->cache, BLOCK, TO_HOST, stream), ACL_SUCCESS);
    report_that("slow, not wrong: complete on return", memcmp(pageable, pinned, BLOCK) == 0);
    report("asynchronous copy from host to host",
           aclrtMemcpyAsync(pinned + BLOCK, BLOCK, pinned, BLOCK, ACL_MEMCPY_HOST_TO_HOST, stream),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    report("destMax smaller than count", aclrtMemcpyAsync(s->cache, BLOCK - 1, pinned, BLOCK, TO_DEVICE, stream),
           ACL_ERROR_RT_PARAM_INVALID);
    report("destination NULL", aclrtMemcpy(NULL, BLOCK, pinned, BLOCK, TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    report("unaligned addresses", /* older documents want 64 bytes, the runtime lets it pass */
           aclrtMemcpyAsync(s->cache + 1, BLOCK, pinned + 3, BLOCK, TO_DEVICE, stream), ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream));
    report("wrong kind, plain copy", aclrtMemcpy(pageable, BLOCK, s->cache + 1, BLOCK, TO_DEVICE), ACL_SUCCESS);
    report_that("copied all the same, by the addresses", memcmp(pageable, pinned + 3, BLOCK) == 0);
    report("wrong kind, pageable memory, on a stream",
           aclrtMemcpyAsync(s->cache, BLOCK, pageable, BLOCK, TO_HOST, stream), ACL_ERROR_RT_PARAM_INVALID);
    free(pageable);
}

static void mistakes_with_a_batch(struct server *s)
{
    void *dsts[3], *srcs[3];
    size_t rooms[3], sizes[3], falling[3] = {0, 2, 1}, one[1] = {0}, fail_index = SIZE_MAX;
    aclrtMemcpyBatchAttr attrs[3];
    memset(attrs, 0, sizeof attrs);
    for (int i = 0; i < 3; i++) {
        dsts[i] = slot_address(s, 0, i);
        srcs[i] = home_address(s, 0, i);
        rooms[i] = sizes[i] = BLOCK;
        attrs[i].dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        attrs[i].srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    }
    /* A product without batches says so before it looks at ranges and items. */
    aclError refused = s->has_batches ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    report("attrsIndexes that do not rise",
           aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, 3, attrs, falling, 3, &fail_index, s->stream[UP]), refused);
    report_that("no item is named", fail_index == SIZE_MAX);
    dsts[1] = home_address(s, 0, 3);
    report("an item from host to host in a batch",
           aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attrs, one, 1, &fail_index), refused);
    if (s->has_batches)
        report_that("the item is named", fail_index == 1);
    rooms[2] = BLOCK / 2;
    report("an item larger than its room in a batch",
           aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 3, attrs, one, 1, &fail_index), ACL_ERROR_INVALID_PARAM);
}

int main(int argc, char **argv)
{
    unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 10) : 12;
    unsigned long layers = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
    if (layers < 1 || layers > MAX_LAYERS || steps > 1000000) {
        fprintf(stderr, "usage: kv_offload [steps [layers]], at most 1000000 and 1..%d\n", MAX_LAYERS);
        return 2;
    }
    struct server server;
    example_open();
    open_server(&server, layers);
    load_weights(&server);
    serve(&server, (unsigned)steps);
    verify(&server);
    mistakes_with_one_copy(&server);
    mistakes_with_a_batch(&server);
    close_server(&server);
    example_close();
    printf("%s\n", surprises ? "some mistakes were answered in another way" : "done");
    return surprises != 0;
}
