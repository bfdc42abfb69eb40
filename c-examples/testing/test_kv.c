/*
 * The copies of kv.c, tested with nothing but assert:
 *
 *   aclshim test -- ./test_kv
 *
 * Without the shim the same program runs too, and looks at the bytes only.
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "aclshim.h"
#include "kv.h"

enum { BLOCKS = 8, SIZE = 4096, COUNT = 3 };
static const size_t SOME[COUNT] = {1, 2, 5};

static uint8_t byte_of(size_t block, size_t at)
{
    return (uint8_t)(block * 97 + at * 31 + at / 251);
}

static void fill(struct kv *kv)
{
    for (size_t block = 0; block < kv->blocks; block++)
        for (size_t at = 0; at < kv->size; at++)
            kv->home[block * kv->size + at] = byte_of(block, at);
}

static int holds(const uint8_t *bytes, size_t block, size_t size)
{
    for (size_t at = 0; at < size; at++)
        if (bytes[at] != byte_of(block, at))
            return 0;
    return 1;
}

/* A cache with something in it. What has a name is called by it in messages and golden files. */
static struct kv open_cache(size_t size)
{
    struct kv kv;
    assert(kv_open(&kv, BLOCKS, size) == ACL_SUCCESS);
    fill(&kv);
    aclshim_name_buffer(kv.device, BLOCKS * size, "cache");
    aclshim_name_buffer(kv.home, BLOCKS * size, "home");
    aclshim_name_stream(kv.stream, "kv");
    return kv;
}

/* A thread's scope: what the next lines copy is counted and judged, until its end. */
static aclshim_scope begin(const char *name)
{
    aclshim_scope scope = aclshim_scope_begin(name, ACLSHIM_THIS_THREAD);
    assert(scope >= 0);
    return scope;
}

static void test_an_upload_is_one_copy_a_block(void)
{
    struct kv kv = open_cache(SIZE);
    aclshim_scope scope = begin("upload");
    assert(aclshim_expect_calls(scope, NULL, COUNT, COUNT) == 0); /* NULL: of any kind. So many, and nothing else */
    assert(aclshim_expect_calls(scope, "aclrtMemcpyAsync direction=h2d size=4096 stream=kv", COUNT, COUNT) == 0);
    assert(aclshim_expect_bytes(scope, "direction=h2d", COUNT * SIZE, COUNT * SIZE) == 0);
    assert(aclshim_expect_clean(scope, ACLSHIM_PORTABILITY) == 0);

    assert(kv_upload(&kv, SOME, COUNT) == ACL_SUCCESS);

    assert(aclshim_scope_end(scope) == 0); /* what was expected and what happened is on stderr */
    assert(kv_wait(&kv) == ACL_SUCCESS);
    assert(kv.table[0] == 0 && kv.table[1] == 1 && kv.table[2] == 1 && kv.table[5] == 1);
    assert(kv_close(&kv) == ACL_SUCCESS);
}

static void test_a_round_trip_makes_the_copies_of_the_golden_file(void)
{
    struct kv kv = open_cache(SIZE);
    void *headers = NULL;
    assert(aclrtMallocHost(&headers, BLOCKS * KV_HEADER) == ACL_SUCCESS);
    aclshim_name_buffer(headers, BLOCKS * KV_HEADER, "headers");
    aclshim_scope scope = begin("round trip");
    assert(aclshim_expect_golden(scope, "golden/round_trip.txt") == 0);
    assert(aclshim_expect_clean(scope, ACLSHIM_PORTABILITY) == 0);

    assert(kv_upload(&kv, SOME, COUNT) == ACL_SUCCESS);
    assert(kv_headers(&kv, (uint8_t *)headers) == ACL_SUCCESS);
    assert(kv_wait(&kv) == ACL_SUCCESS);
    memset(kv.home, 0, BLOCKS * SIZE);
    assert(kv_offload(&kv, SOME, COUNT) == ACL_SUCCESS);
    assert(kv_wait(&kv) == ACL_SUCCESS);

    assert(aclshim_scope_end(scope) == 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert(holds((const uint8_t *)headers + SOME[i] * KV_HEADER, SOME[i], KV_HEADER));
        assert(holds(kv.home + SOME[i] * SIZE, SOME[i], SIZE));
    }
    assert(aclrtFreeHost(headers) == ACL_SUCCESS);
    assert(kv_close(&kv) == ACL_SUCCESS);
}

static void test_without_batches_an_offload_is_one_copy_a_block(void)
{
    if (!aclshim_active()) {
        printf("skipped: a batch that fails needs the shim\n");
        return;
    }
    struct kv kv = open_cache(SIZE);
    assert(kv_upload(&kv, SOME, COUNT) == ACL_SUCCESS);
    assert(kv_wait(&kv) == ACL_SUCCESS);
    memset(kv.home, 0, BLOCKS * SIZE);
    aclshim_scope scope = begin("no batches");
    assert(aclshim_inject(scope, "aclrtMemcpyBatch* return=207000") == 1);
    assert(aclshim_expect_calls(scope, "aclrtMemcpyBatchAsync", 1, 1) == 0); /* asked once, not again */
    assert(aclshim_expect_calls(scope, "aclrtMemcpyAsync direction=d2h size=4096", 2 * COUNT, 2 * COUNT) == 0);

    assert(kv_offload(&kv, SOME, COUNT) == ACL_SUCCESS);
    assert(kv_offload(&kv, SOME, COUNT) == ACL_SUCCESS);

    assert(aclshim_injected(scope) == 1);
    assert(aclshim_scope_end(scope) == 0);
    assert(kv_wait(&kv) == ACL_SUCCESS);
    for (size_t i = 0; i < COUNT; i++)
        assert(holds(kv.home + SOME[i] * SIZE, SOME[i], SIZE));
    assert(kv_close(&kv) == ACL_SUCCESS);
}

static void test_a_copy_that_fails_is_reported_and_ends_the_upload(void)
{
    if (!aclshim_active()) {
        printf("skipped: a copy that fails needs the shim\n");
        return;
    }
    struct kv kv = open_cache(SIZE);
    aclshim_scope scope = begin("failing copy");
    assert(aclshim_inject(scope, "aclrtMemcpyAsync nth=2 return=ACL_ERROR_RT_MEMORY_ALLOCATION") == 1);
    assert(aclshim_expect_calls(scope, NULL, 2, 2) == 0);

    assert(kv_upload(&kv, SOME, COUNT) == ACL_ERROR_RT_MEMORY_ALLOCATION);

    struct aclshim_call calls[2];
    assert(aclshim_calls(scope, NULL, calls, 2) == 2);
    assert(calls[0].code == 0 && calls[1].code == 207001 && (calls[1].flags & ACLSHIM_INJECTED));
    assert(calls[1].dst == kv.device + SOME[1] * SIZE && calls[1].count == SIZE);
    assert(aclshim_scope_end(scope) == 0);
    assert(kv.table[1] == 1 && kv.table[2] == 0 && kv.table[5] == 0);
    assert(kv_close(&kv) == ACL_SUCCESS);
}

static void test_blocks_of_an_odd_size_are_unaligned_and_we_know_it(void)
{
    struct kv kv = open_cache(100);
    aclshim_scope scope = begin("odd size");
    assert(aclshim_expect_finding(scope, "ALIGN-64", COUNT) == 0);
    assert(aclshim_expect_clean(scope, ACLSHIM_PORTABILITY) == 0); /* but for the expected ones */

    assert(kv_upload(&kv, SOME, COUNT) == ACL_SUCCESS);

    assert(aclshim_scope_end(scope) == 0);
    assert(kv_close(&kv) == ACL_SUCCESS);
}

int main(void)
{
    assert(aclInit(NULL) == ACL_SUCCESS);
    assert(aclrtSetDevice(0) == ACL_SUCCESS);
    test_an_upload_is_one_copy_a_block();
    test_a_round_trip_makes_the_copies_of_the_golden_file();
    test_without_batches_an_offload_is_one_copy_a_block();
    test_a_copy_that_fails_is_reported_and_ends_the_upload();
    test_blocks_of_an_odd_size_are_unaligned_and_we_know_it();
    assert(aclrtResetDevice(0) == ACL_SUCCESS);
    assert(aclFinalize() == ACL_SUCCESS);
    puts(aclshim_active() ? "passed" : "passed, but nobody watched the copies: run it by aclshim test -- ./test_kv");
    return 0;
}
