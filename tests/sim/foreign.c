/*
 * A stream of another context than the thread's: what is queued on it is
 * refused, a copy of pageable memory is not queued and goes through, and the
 * stream can be waited for and asked about.
 */
#define _GNU_SOURCE
#include "conform.h"

static const aclrtMemcpyKind UP = ACL_MEMCPY_HOST_TO_DEVICE, DOWN = ACL_MEMCPY_DEVICE_TO_HOST,
                             ACROSS = ACL_MEMCPY_DEVICE_TO_DEVICE;
/* The vendor's, though our header does not declare it. */
aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);

static aclrtContext other_context; /* the context of `foreign` */
static uint8_t variable[SIZE];
static int checks_whole; /* Ascend950 looks at the stream of a batch before its items */

static int at_home(void)
{
    aclrtContext now = NULL;
    MUST(aclrtGetCurrentContext(&now));
    return now == home;
}

/* Puts a gate and a copy of pinned memory behind it on the foreign stream. */
static void hold_foreign(struct gate *gate)
{
    MUST(aclrtSetCurrentContext(other_context));
    gate_close(gate, foreign);
    MUST(aclrtMemcpyAsync(pin2, SIZE, dev2, SIZE, DOWN, foreign));
    MUST(aclrtSetCurrentContext(home));
}

static void it_can_be_waited_for(void)
{
    struct gate gate;
    put(dev2, SIZE, 1);
    memset(pin2, 0, SIZE);
    hold_foreign(&gate);
    want("held: synchronise with a timeout", aclrtSynchronizeStreamWithTimeout(foreign, 1), STREAM_TIMEOUT);
    holds("held: the context is as it was", at_home());
    holds("held: query says not ready", !stream_is_ready(foreign));
    gate_open(&gate);
    want("synchronise", aclrtSynchronizeStream(foreign), OK);
    holds("synchronise: the copy before it is done", painted(pin2, SIZE, 1));
    holds("synchronise: the context is as it was", at_home());
    holds("query says ready", stream_is_ready(foreign));
    int32_t id = -1;
    want("its number", aclrtStreamGetId(foreign, &id), OK);
    holds("its number is set", id >= 0);
    want("destroy", aclrtDestroyStream(foreign), FOREIGN_STREAM);
    want("abort", aclrtStreamAbort(foreign), FOREIGN_STREAM);
}

/* A pageable copy waits for what was queued on the foreign stream before it. On a
 * slow device (the runner sets one) a copy that does not wait overtakes these. */
static void a_pageable_copy_waits(void)
{
    enum { COPIES = 8, PART = SIZE / COPIES };
    put(dev2, SIZE, 2);
    memset(pin2, 0, SIZE);
    paint(page, SIZE, 3);
    MUST(aclrtSetCurrentContext(other_context));
    for (int i = 0; i < COPIES; i++)
        MUST(aclrtMemcpyAsync(pin2 + i * PART, PART, dev2 + i * PART, PART, DOWN, foreign));
    MUST(aclrtSetCurrentContext(home));
    want("pageable up", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, foreign), OK);
    holds("pageable up: what was queued before is complete", painted(pin2, SIZE, 2));
    holds("pageable up: bytes on return", has(dev, SIZE, 3));
    holds("pageable up: the context is as it was", at_home());
}

static void every_pageable_copy_goes_through(void)
{
    put(dev, SIZE, 4);
    memset(page2, 0, SIZE);
    want("down", aclrtMemcpyAsync(page2, SIZE, dev, SIZE, DOWN, foreign), OK);
    holds("down: bytes", painted(page2, SIZE, 4));
    paint(page, SIZE, 5);
    want("with condition", aclrtMemcpyAsyncWithCondition(dev, SIZE, page, SIZE, UP, foreign), OK);
    holds("with condition: bytes", has(dev, SIZE, 5));
    paint(page, SIZE, 6);
    want("rows", aclrtMemcpy2dAsync(dev, 64, page, 64, 64, SIZE / 64, UP, foreign), OK);
    holds("rows: bytes", has(dev, SIZE, 6));
    paint(page, SIZE, 7);
    memset(page2, 0, SIZE);
    want("to symbol", aclrtMemcpyToSymbolAsync(variable, page, SIZE, 0, UP, foreign), OK);
    want("from symbol", aclrtMemcpyFromSymbolAsync(page2, SIZE, variable, SIZE, 0, DOWN, foreign), OK);
    holds("symbols: bytes", painted(page2, SIZE, 7));
    want("the checks come first", aclrtMemcpyAsync(dev, 1, page, 2, UP, foreign), PARAM);
}

static void what_is_queued_is_refused(const char *driver)
{
    char name[96];
#define REFUSED(what, call)                                  \
    do {                                                     \
        snprintf(name, sizeof name, "%s: %s", driver, what); \
        want(name, call, FOREIGN_STREAM);                    \
    } while (0)
    put(dev, SIZE, 8);
    paint(pin, SIZE, 9);
    REFUSED("pinned", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, foreign));
    REFUSED("pinned rows", aclrtMemcpy2dAsync(dev, 64, pin, 64, 64, 2, UP, foreign));
    REFUSED("on the device", aclrtMemcpyAsync(dev2, SIZE, dev, SIZE, ACROSS, foreign));
    REFUSED("pageable called device to device", aclrtMemcpyAsync(dev, SIZE, page, SIZE, ACROSS, foreign));
    REFUSED("buffered", aclrtMemcpyAsync(dev, SIZE, page, SIZE, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, foreign));
    REFUSED("set", aclrtMemsetAsync(page, SIZE, 1, SIZE, foreign));
    snprintf(name, sizeof name, "%s: nothing moved", driver);
    holds(name, has(dev, SIZE, 8));
}

/* ---- Batches ---- */

enum { ITEM = 256, ITEMS = 3 };
static const size_t NONE = SIZE_MAX;

/* Copies three items up on the foreign stream; NULL is a bad item. */
static void batch(const char *what, uint8_t *const from[ITEMS], aclError code, size_t failed, const char *moved)
{
    char name[128];
    void *dsts[ITEMS], *srcs[ITEMS];
    size_t sizes[ITEMS], first[1] = {0}, fail_index = 777;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    MUST(aclrtMemset(dev, SIZE, 0, SIZE));
    memset(pin, 0xBB, SIZE);
    memset(page, 0xBB, SIZE);
    for (int i = 0; i < ITEMS; i++) {
        dsts[i] = dev + i * ITEM;
        srcs[i] = from[i] ? from[i] + i * ITEM : NULL;
        sizes[i] = ITEM;
    }
    if (checks_whole) {
        code = FOREIGN_STREAM;
        failed = NONE;
        moved = "---";
    }
    snprintf(name, sizeof name, "batch: %s", what);
    want(name, aclrtMemcpyBatchAsync(dsts, sizes, srcs, sizes, ITEMS, &attr, first, 1, &fail_index, foreign), code);
    snprintf(name, sizeof name, "batch: %s: failIndex", what);
    want(name, (long long)fail_index, (long long)failed);
    uint8_t got[ITEMS * ITEM];
    MUST(aclrtMemcpy(got, sizeof got, dev, sizeof got, DOWN));
    for (int i = 0; i < ITEMS; i++) {
        snprintf(name, sizeof name, "batch: %s: item %d", what, i);
        holds(name, all_bytes(got + i * ITEM, ITEM, moved[i] == '+' ? 0xBB : 0));
    }
    snprintf(name, sizeof name, "batch V2: %s", what);
    want(name, aclrtMemcpyBatchAsyncV2(dsts, sizes, srcs, sizes, ITEMS, &attr, first, 1, foreign), code);
}

#define BATCH(what, a, b, c, code, failed, moved)       \
    do {                                                \
        uint8_t *const from[ITEMS] = {a, b, c};         \
        batch(what, from, code, failed, moved);         \
    } while (0)

static void batches(void)
{
    BATCH("all pageable", page, page, page, OK, NONE, "+++");
    BATCH("a pinned one last", page, page, pin, FOREIGN_STREAM, NONE, "++-");
    BATCH("a pinned one first", pin, page, page, FOREIGN_STREAM, NONE, "---");
    BATCH("a bad one behind pageable ones", page, page, NULL, PARAM, 2, "++-");
    BATCH("a bad one behind a pinned one", page, pin, NULL, FOREIGN_STREAM, NONE, "+--");
    BATCH("a bad one first", NULL, pin, pin, PARAM, 0, "---");
}

/* ---- Captures ---- */

static aclError pageable_batch(size_t *fail_index)
{
    void *dsts[1] = {dev}, *srcs[1] = {page};
    size_t size[1] = {ITEM}, first[1] = {0};
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    *fail_index = 777;
    return aclrtMemcpyBatchAsync(dsts, size, srcs, size, 1, &attr, first, 1, fail_index, foreign);
}

static void captures(void)
{
    aclmdlRI graph = NULL;
    size_t fail_index = 0;
    MUST(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    want("capture at home: pageable", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, foreign), CAPTURE_BLOCK);
    want("capture at home: pageable rows", aclrtMemcpy2dAsync(dev, 64, page, 64, 64, 2, UP, foreign), CAPTURE_BLOCK);
    want("capture at home: pageable batch", pageable_batch(&fail_index), checks_whole ? FOREIGN_STREAM : CAPTURE_MODE);
    want("capture at home: pageable batch: failIndex", (long long)fail_index, (long long)NONE);
    want("capture at home: synchronise", aclrtSynchronizeStream(foreign), OK);
    MUST(aclmdlRICaptureEnd(stream, &graph));
    MUST(aclmdlRIDestroy(graph));

    aclrtStreamStatus status;
    MUST(aclrtSetCurrentContext(other_context));
    MUST(aclmdlRICaptureBegin(foreign, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    MUST(aclrtSetCurrentContext(home));
    want("captured: pageable", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, foreign), PARAM);
    want("captured: pageable rows", aclrtMemcpy2dAsync(dev, 64, page, 64, 64, 2, UP, foreign), PARAM);
    want("captured: pinned", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, foreign), FOREIGN_STREAM);
    /* The batch asks only whether the thread's own context permits it. */
    want("captured: pageable batch", pageable_batch(&fail_index), checks_whole ? FOREIGN_STREAM : OK);
    want("captured: synchronise", aclrtSynchronizeStream(foreign), STREAM_CAPTURED);
    want("captured: query", aclrtStreamQuery(foreign, &status), STREAM_CAPTURED);
    MUST(aclrtSetCurrentContext(other_context));
    MUST(aclmdlRICaptureEnd(foreign, &graph));
    MUST(aclmdlRIDestroy(graph));
    MUST(aclrtSetCurrentContext(home));
}

static void without_context(void)
{
    aclrtStreamStatus status;
    int32_t id = -1;
    want("no context: synchronise", aclrtSynchronizeStream(foreign), NO_CONTEXT);
    want("no context: query", aclrtStreamQuery(foreign, &status), NO_CONTEXT);
    want("no context: its number", aclrtStreamGetId(foreign, &id), OK);
    want("no context: the default stream's number", aclrtStreamGetId(NULL, &id), NO_CONTEXT);
    want("no context: pageable", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, foreign), NO_CONTEXT);
}

int main(void)
{
    open_world();
    MUST(ascendclSimRegisterSymbol(variable, SIZE));
    MUST(aclrtCreateContext(&other_context, 0));
    MUST(aclrtCreateStream(&foreign));
    MUST(aclrtSetCurrentContext(home));
    checks_whole = strcmp(aclrtGetSocName(), "Ascend950") == 0;
    const char *driver = getenv("ASCENDCL_SIM_USER_MALLOC_ATTR");
    if (driver && strcmp(driver, "off") == 0) {
        /* A driver that cannot tell pageable memory: it is queued like pinned memory. */
        what_is_queued_is_refused("old driver");
        want("old driver: pageable", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, foreign), FOREIGN_STREAM);
        return finish();
    }
    it_can_be_waited_for();
    a_pageable_copy_waits();
    every_pageable_copy_goes_through();
    what_is_queued_is_refused("queued");
    batches();
    captures();
    on_new_thread(without_context);
    return finish();
}
