/*
 * The copies of kv.c, tested with CMocka (Debian: libcmocka-dev):
 *
 *   aclshim test -- ./test_kv_cmocka
 *
 * Each test has a cache and a scope of its own. A failing assertion of CMocka
 * jumps out of the test, so the teardown ends a scope that is still open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aclshim.h"
#include "kv.h"

enum { BLOCKS = 8, SIZE = 4096, COUNT = 3 };
static const size_t SOME[COUNT] = {1, 2, 5};

struct fixture {
    struct kv kv;
    aclshim_scope scope;
};

static int setup(void **state)
{
    struct fixture *f = (struct fixture *)calloc(1, sizeof *f);
    if (f == NULL || kv_open(&f->kv, BLOCKS, SIZE) != ACL_SUCCESS) {
        free(f);
        return -1;
    }
    for (size_t at = 0; at < BLOCKS * SIZE; at++)
        f->kv.home[at] = (uint8_t)(at / SIZE * 97 + at % SIZE * 31);
    aclshim_name_buffer(f->kv.device, BLOCKS * SIZE, "cache");
    aclshim_name_buffer(f->kv.home, BLOCKS * SIZE, "home");
    aclshim_name_stream(f->kv.stream, "kv");
    f->scope = aclshim_scope_begin("kv", ACLSHIM_THIS_THREAD);
    *state = f;
    return f->scope < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    if (f->scope > 0)
        aclshim_scope_end(f->scope); /* ACLSHIM_NO_SCOPE if the test came to its end */
    aclError code = kv_close(&f->kv);
    free(f);
    return code == ACL_SUCCESS ? 0 : -1;
}

static void an_upload_is_one_copy_a_block(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    assert_int_equal(aclshim_expect_calls(f->scope, NULL, COUNT, COUNT), 0); /* so many, and nothing else */
    assert_int_equal(
        aclshim_expect_calls(f->scope, "aclrtMemcpyAsync direction=h2d size=4096 stream=kv", COUNT, COUNT), 0);
    assert_int_equal(aclshim_expect_clean(f->scope, ACLSHIM_PORTABILITY), 0);

    assert_int_equal(kv_upload(&f->kv, SOME, COUNT), ACL_SUCCESS);

    assert_int_equal(aclshim_scope_end(f->scope), 0);
}

static void an_offload_is_one_batch(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    assert_int_equal(kv_upload(&f->kv, SOME, COUNT), ACL_SUCCESS);
    assert_int_equal(kv_wait(&f->kv), ACL_SUCCESS);
    memset(f->kv.home, 0, BLOCKS * SIZE);

    assert_int_equal(kv_offload(&f->kv, SOME, COUNT), ACL_SUCCESS);
    assert_int_equal(kv_wait(&f->kv), ACL_SUCCESS);

    if (aclshim_active()) { /* what a scope has seen can also be asked for */
        assert_int_equal(aclshim_count(f->scope, "aclrtMemcpyBatchAsync direction=d2h"), 1);
        assert_int_equal(aclshim_bytes(f->scope, "direction=d2h"), COUNT * SIZE);
        assert_int_equal(aclshim_count(f->scope, "code=failed"), 0);
    }
    assert_int_equal(aclshim_scope_end(f->scope), 0);
    assert_int_equal(f->kv.home[2 * SIZE + 5], (uint8_t)(2 * 97 + 5 * 31));
}

static void a_round_trip_makes_the_copies_of_the_golden_file(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    void *headers = NULL;
    assert_int_equal(aclrtMallocHost(&headers, BLOCKS * KV_HEADER), ACL_SUCCESS);
    aclshim_name_buffer(headers, BLOCKS * KV_HEADER, "headers");
    assert_int_equal(aclshim_expect_golden(f->scope, "golden/round_trip.txt"), 0);

    assert_int_equal(kv_upload(&f->kv, SOME, COUNT), ACL_SUCCESS);
    assert_int_equal(kv_headers(&f->kv, (uint8_t *)headers), ACL_SUCCESS);
    assert_int_equal(kv_offload(&f->kv, SOME, COUNT), ACL_SUCCESS);

    int64_t failed = aclshim_scope_end(f->scope);
    assert_int_equal(kv_wait(&f->kv), ACL_SUCCESS);
    assert_int_equal(aclrtFreeHost(headers), ACL_SUCCESS);
    assert_int_equal(failed, 0);
}

static void without_batches_an_offload_is_one_copy_a_block(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    if (!aclshim_active())
        skip(); /* a batch that fails needs the shim */
    assert_int_equal(aclshim_inject(f->scope, "aclrtMemcpyBatch* return=207000"), 1);
    assert_int_equal(aclshim_expect_calls(f->scope, "aclrtMemcpyBatchAsync", 1, 1), 0); /* asked once, not again */
    assert_int_equal(
        aclshim_expect_calls(f->scope, "aclrtMemcpyAsync direction=d2h size=4096", 2 * COUNT, 2 * COUNT), 0);

    assert_int_equal(kv_offload(&f->kv, SOME, COUNT), ACL_SUCCESS);
    assert_int_equal(kv_offload(&f->kv, SOME, COUNT), ACL_SUCCESS);

    assert_int_equal(aclshim_injected(f->scope), 1);
    assert_int_equal(aclshim_scope_end(f->scope), 0);
}

static void a_copy_that_fails_is_reported_and_ends_the_upload(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    if (!aclshim_active())
        skip();
    assert_int_equal(aclshim_inject(f->scope, "aclrtMemcpyAsync nth=2 return=ACL_ERROR_RT_MEMORY_ALLOCATION"), 1);
    assert_int_equal(aclshim_expect_calls(f->scope, NULL, 2, 2), 0);

    assert_int_equal(kv_upload(&f->kv, SOME, COUNT), ACL_ERROR_RT_MEMORY_ALLOCATION);

    assert_int_equal(aclshim_scope_end(f->scope), 0);
    assert_int_equal(f->kv.table[1], 1);
    assert_int_equal(f->kv.table[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_upload_is_one_copy_a_block, setup, teardown),
        cmocka_unit_test_setup_teardown(an_offload_is_one_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_round_trip_makes_the_copies_of_the_golden_file, setup, teardown),
        cmocka_unit_test_setup_teardown(without_batches_an_offload_is_one_copy_a_block, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_that_fails_is_reported_and_ends_the_upload, setup, teardown),
    };
    if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (aclrtResetDevice(0) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS)
        return 1;
    return failed;
}
