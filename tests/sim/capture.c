/*
 * Captured graphs: what is recorded runs at execution and not before, and what
 * a capture in progress forbids, by mode, thread and stream.
 */
#define _GNU_SOURCE
#include "conform.h"

static const aclrtMemcpyKind UP = ACL_MEMCPY_HOST_TO_DEVICE, DOWN = ACL_MEMCPY_DEVICE_TO_HOST,
                             ACROSS = ACL_MEMCPY_DEVICE_TO_DEVICE;
static const aclmdlRICaptureMode GLOBAL = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL,
                                 LOCAL = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL,
                                 RELAXED = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
static aclrtStream other;
static uint8_t variable[SIZE];

static void copies_run_at_execution(void)
{
    aclmdlRI graph = NULL;
    put(dev, SIZE, 1);
    paint(pin, SIZE, 2);
    memset(pin2, 0, SIZE);

    want("capture: begin", aclmdlRICaptureBegin(stream, GLOBAL), OK);
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    want("capture: info", aclmdlRICaptureGetInfo(stream, &status, &graph), OK);
    want("capture: active", status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    want("capture: up", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream), OK);
    want("capture: across", aclrtMemcpyAsync(dev2, SIZE, dev, SIZE, ACROSS, stream), OK);
    want("capture: down", aclrtMemcpyAsync(pin2, SIZE, dev2, SIZE, DOWN, stream), OK);
    want("capture: end", aclmdlRICaptureEnd(stream, &graph), OK);
    want("capture: info after", aclmdlRICaptureGetInfo(stream, &status, NULL), OK);
    want("capture: over", status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    MUST(aclrtSynchronizeStream(stream));
    holds("capture: nothing went up", has(dev, SIZE, 1));
    holds("capture: nothing came down", all_bytes(pin2, SIZE, 0));

    want("execute", aclmdlRIExecute(graph, -1), OK);
    holds("execute: bytes", painted(pin2, SIZE, 2));
    paint(pin, SIZE, 3);
    want("execute again", aclmdlRIExecute(graph, -1), OK);
    holds("execute again: the source is read anew", painted(pin2, SIZE, 3));

    paint(pin, SIZE, 4);
    struct gate gate;
    gate_close(&gate, other);
    want("execute on a stream", aclmdlRIExecuteAsync(graph, other), OK);
    holds("execute on a held stream: not yet", painted(pin2, SIZE, 3));
    gate_open(&gate);
    want("execute on a stream: synchronise", aclrtSynchronizeStream(other), OK);
    holds("execute on a stream: bytes", painted(pin2, SIZE, 4));
    want("destroy the graph", aclmdlRIDestroy(graph), OK);
}

/* The other kinds of copy that can be recorded. */
static void every_queued_copy_can_be_captured(void)
{
    aclmdlRI graph = NULL;
    void *dsts[1] = {dev};
    void *srcs[1] = {pin};
    size_t size[1] = {64}, first[1] = {0}, failed = 0;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    put(dev, SIZE, 1);
    paint(pin, SIZE, 5);
    memset(pin2, 0, SIZE);
    MUST(aclmdlRICaptureBegin(stream, GLOBAL));
    want("capture a batch", aclrtMemcpyBatchAsync(dsts, size, srcs, size, 1, &attr, first, 1, &failed, stream), OK);
    want("capture rows", aclrtMemcpy2dAsync(dev + 64, 64, pin + 64, 64, 64, 2, UP, stream), OK);
    want("capture a set", aclrtMemsetAsync(dev + 192, 64, 9, 64, stream), OK);
    want("capture with condition", aclrtMemcpyAsyncWithCondition(pin2, 256, dev, 256, DOWN, stream), OK);
    MUST(aclmdlRICaptureEnd(stream, &graph));
    holds("captured: nothing ran", has(dev, SIZE, 1));
    MUST(aclmdlRIExecute(graph, -1));
    holds("captured: bytes", memcmp(pin2, pin, 192) == 0 && all_bytes(pin2 + 192, 64, 9));
    MUST(aclmdlRIDestroy(graph));
}

/* What is forbidden, in the order of the runtime. `sync` is the code of the
 * synchronous calls, `pageable` of a pageable copy on a stream that is not
 * captured. */
static void forbidden(const char *who, int sync, int pageable)
{
    char name[128];
#define TELL(what, call, code)                                  \
    do {                                                        \
        snprintf(name, sizeof name, "%s: %s", who, what);       \
        want(name, call, code);                                 \
    } while (0)
    TELL("memcpy", aclrtMemcpy(dev, SIZE, pin, SIZE, UP), sync);
    TELL("2d", aclrtMemcpy2d(dev, 64, pin, 64, 64, 2, UP), sync);
    TELL("set", aclrtMemset(dev, SIZE, 1, SIZE), sync);
    TELL("from symbol", aclrtMemcpyFromSymbol(pin, SIZE, variable, 64, 0, DOWN), sync);
    TELL("to symbol", aclrtMemcpyToSymbol(variable, pin, 64, 0, UP), sync);
    TELL("memcpy onto itself is looked at first", aclrtMemcpy(dev, SIZE, dev, SIZE, ACROSS), OK);
    TELL("memcpy: room is looked at first", aclrtMemcpy(dev, 1, pin, 2, UP), PARAM);
    TELL("pageable copy elsewhere", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, other), pageable);
    TELL("pageable rows elsewhere", aclrtMemcpy2dAsync(dev, 64, page, 64, 64, 2, UP, other), pageable);
    TELL("pinned copy elsewhere", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, other), OK);
    TELL("synchronise elsewhere", aclrtSynchronizeStream(other), OK);

    /* The synchronous batch does not ask. */
    void *dsts[1] = {dev};
    void *srcs[1] = {pin};
    size_t size[1] = {64}, first[1] = {0}, failed = 0;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    TELL("batch", aclrtMemcpyBatch(dsts, size, srcs, size, 1, &attr, first, 1, &failed), OK);
}

static int sync_code, pageable_code;
static const char *thread_name;
static const aclmdlRICaptureMode *exchange;

static void on_another_thread(void)
{
    MUST(aclrtSetCurrentContext(home));
    if (exchange) {
        aclmdlRICaptureMode mode = *exchange;
        MUST(aclmdlRICaptureThreadExchangeMode(&mode));
    }
    forbidden(thread_name, sync_code, pageable_code);
}

static void elsewhere(const char *name, int sync, int pageable, const aclmdlRICaptureMode *swap)
{
    thread_name = name;
    sync_code = sync;
    pageable_code = pageable;
    exchange = swap;
    on_new_thread(on_another_thread);
}

static void modes(void)
{
    aclmdlRI graph = NULL;
    forbidden("no capture", OK, OK);

    MUST(aclmdlRICaptureBegin(stream, GLOBAL));
    forbidden("global, own thread", CAPTURE_MODE, CAPTURE_BLOCK);
    elsewhere("global, other thread", CAPTURE_MODE, CAPTURE_BLOCK, NULL);
    elsewhere("global, other thread made local", OK, OK, &LOCAL);
    elsewhere("global, other thread made relaxed", OK, OK, &RELAXED);
    aclmdlRICaptureMode mode = RELAXED;
    want("exchange the mode", aclmdlRICaptureThreadExchangeMode(&mode), OK);
    want("exchange the mode: the old one", mode, GLOBAL);
    forbidden("global, own thread made relaxed", OK, OK);
    mode = LOCAL;
    MUST(aclmdlRICaptureThreadExchangeMode(&mode));
    want("exchange the mode: the second old one", mode, RELAXED);
    forbidden("global, own thread made local", CAPTURE_MODE, CAPTURE_BLOCK);
    mode = GLOBAL;
    MUST(aclmdlRICaptureThreadExchangeMode(&mode));
    MUST(aclmdlRICaptureEnd(stream, &graph));
    MUST(aclmdlRIDestroy(graph));

    MUST(aclmdlRICaptureBegin(stream, LOCAL));
    forbidden("local, own thread", CAPTURE_MODE, CAPTURE_BLOCK);
    elsewhere("local, other thread", OK, OK, NULL);
    MUST(aclmdlRICaptureEnd(stream, &graph));
    MUST(aclmdlRIDestroy(graph));

    MUST(aclmdlRICaptureBegin(stream, RELAXED));
    forbidden("relaxed, own thread", OK, OK);
    elsewhere("relaxed, other thread", OK, OK, NULL);
    MUST(aclmdlRICaptureEnd(stream, &graph));
    MUST(aclmdlRIDestroy(graph));
    forbidden("capture over", OK, OK);
}

static void on_the_captured_stream(void)
{
    aclmdlRI graph = NULL;
    static const aclmdlRICaptureMode all[] = {ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, ACL_MODEL_RI_CAPTURE_MODE_RELAXED};
    static const char *const mode_name[] = {"global", "relaxed"};
    for (int m = 0; m < 2; m++) {
        char who[64], name[128];
        snprintf(who, sizeof who, "captured stream, %s", mode_name[m]);
#undef TELL
#define TELL(what, call, code)                            \
    do {                                                  \
        snprintf(name, sizeof name, "%s: %s", who, what); \
        want(name, call, code);                           \
    } while (0)
        MUST(aclmdlRICaptureBegin(stream, all[m]));
        TELL("pageable up", aclrtMemcpyAsync(dev, SIZE, page, SIZE, UP, stream), PARAM);
        TELL("pageable down", aclrtMemcpyAsync(page, SIZE, dev, SIZE, DOWN, stream), PARAM);
        TELL("pageable, with condition", aclrtMemcpyAsyncWithCondition(dev, SIZE, page, SIZE, UP, stream), PARAM);
        TELL("pageable rows", aclrtMemcpy2dAsync(dev, 64, page, 64, 64, 2, UP, stream), PARAM);
        TELL("host to host is looked at first",
             aclrtMemcpyAsync(pin2, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_HOST, stream), UNSUPPORTED);
        TELL("synchronise", aclrtSynchronizeStream(stream), STREAM_CAPTURED);
        aclrtStreamStatus status;
        TELL("query", aclrtStreamQuery(stream, &status), STREAM_CAPTURED);
        TELL("begin again", aclmdlRICaptureBegin(stream, all[m]), STREAM_CAPTURED);
        TELL("destroy", aclrtDestroyStream(stream), STREAM_CAPTURED);
        TELL("pinned", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream), OK);
        TELL("end", aclmdlRICaptureEnd(stream, &graph), OK);
        MUST(aclmdlRIDestroy(graph));
    }
    want("end without begin", aclmdlRICaptureEnd(stream, &graph), 107029);
}

int main(void)
{
    open_world();
    MUST(aclrtCreateStream(&other));
    MUST(ascendclSimRegisterSymbol(variable, sizeof variable));
    copies_run_at_execution();
    every_queued_copy_can_be_captured();
    modes();
    on_the_captured_stream();
    return finish();
}
