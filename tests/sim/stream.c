/*
 * Streams and events: copies of pinned memory are really asynchronous, run in
 * order on one stream and side by side on two, wait where they have to, and
 * copies of pageable memory are complete on return. A gate (a host function
 * that waits) holds a stream, so nothing here depends on speed.
 */
#define _GNU_SOURCE
#include <time.h>

#include "conform.h"

static const aclrtMemcpyKind UP = ACL_MEMCPY_HOST_TO_DEVICE, DOWN = ACL_MEMCPY_DEVICE_TO_HOST,
                             ACROSS = ACL_MEMCPY_DEVICE_TO_DEVICE;
static aclrtStream other;

static void pinned_is_asynchronous(void)
{
    struct gate gate;
    put(dev, SIZE, 1);
    paint(pin, SIZE, 2);
    memset(pin2, 0, SIZE);
    gate_close(&gate, stream);
    want("behind a gate: up", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream), OK);
    want("behind a gate: across", aclrtMemcpyAsync(dev2, SIZE, dev, SIZE, ACROSS, stream), OK);
    want("behind a gate: down", aclrtMemcpyAsync(pin2, SIZE, dev2, SIZE, DOWN, stream), OK);
    holds("behind a gate: the stream is not ready", !stream_is_ready(stream));
    holds("behind a gate: nothing went up", has(dev, SIZE, 1));
    holds("behind a gate: nothing came down", all_bytes(pin2, SIZE, 0));

    /* The source is read when the copy runs, not when it is queued. */
    paint(pin, SIZE, 3);
    gate_open(&gate);
    want("gate open: synchronise", aclrtSynchronizeStream(stream), OK);
    holds("gate open: the stream is ready", stream_is_ready(stream));
    holds("gate open: the late bytes were copied", painted(pin2, SIZE, 3));
}

/* The data of a buffered copy is taken at the call, even with the stream held. */
static void buffered_reads_at_once(void)
{
    struct gate gate;
    put(dev, SIZE, 1);
    paint(page, SIZE, 4);
    gate_close(&gate, stream);
    want("buffered behind a gate", aclrtMemcpyAsync(dev, SIZE, page, SIZE, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream), OK);
    memset(page, 0, SIZE);
    holds("buffered behind a gate: not yet on the device", has(dev, SIZE, 1));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds("buffered: the bytes of the call", has(dev, SIZE, 4));
}

/* The runner sets a low bandwidth: a copy that only pretended to be complete
 * would be caught here. */
static void pageable_is_complete_on_return(void)
{
    enum { BIG = 256 * 1024 };
    uint8_t *big = (uint8_t *)malloc(BIG), *back = (uint8_t *)malloc(BIG), *pinned = (uint8_t *)pinned_memory(BIG);
    uint8_t *there = (uint8_t *)device_memory(BIG);
    for (unsigned round = 0; round < 4; round++) {
        paint(big, BIG, round);
        memset(back, 0xFF, BIG);
        memset(pinned, 0xFF, BIG);
        want("pageable up", aclrtMemcpyAsync(there, BIG, big, BIG, UP, stream), OK);
        memset(big, 0, BIG); /* may be reused at once */
        want("pinned down before it", aclrtMemcpyAsync(pinned, BIG, there, BIG, DOWN, stream), OK);
        want("pageable down", aclrtMemcpyAsync(back, BIG, there, BIG, DOWN, stream), OK);
        holds("pageable: bytes on return", painted(back, BIG, round));
        holds("pageable: what was queued before is complete too", painted(pinned, BIG, round));
        holds("pageable: the stream is ready", stream_is_ready(stream));
    }
    MUST(aclrtFree(there));
    MUST(aclrtFreeHost(pinned));
    free(back);
    free(big);
}

/* The bandwidth is kept: 256 KiB at 8 MiB a second cannot take less than 31 ms.
 * (They may take longer on a busy machine; that proves nothing and is not asked.) */
static void a_copy_takes_its_time(void)
{
    enum { BIG = 256 * 1024 };
    uint8_t *pinned = (uint8_t *)pinned_memory(BIG), *there = (uint8_t *)device_memory(BIG);
    struct timespec from, till;
    clock_gettime(CLOCK_MONOTONIC, &from);
    want("slow device: queue", aclrtMemcpyAsync(there, BIG, pinned, BIG, UP, stream), OK);
    want("slow device: synchronise", aclrtSynchronizeStream(stream), OK);
    clock_gettime(CLOCK_MONOTONIC, &till);
    holds("slow device: not faster than its bandwidth",
          (till.tv_sec - from.tv_sec) * 1000 + (till.tv_nsec - from.tv_nsec) / 1000000 >= 31);
    MUST(aclrtFree(there));
    MUST(aclrtFreeHost(pinned));
}

static void one_stream_keeps_the_order(void)
{
    enum { COPIES = 64 };
    uint8_t *sources = (uint8_t *)pinned_memory(COPIES * 64);
    for (int i = 0; i < COPIES; i++)
        memset(sources + i * 64, i, 64);
    memset(pin, 0, SIZE);
    int codes = 0, order = 1;
    for (int i = 0; i < COPIES; i++) {
        codes |= aclrtMemcpyAsync(dev, 64, sources + i * 64, 64, UP, stream);
        codes |= aclrtMemcpyAsync(pin + i * 64, 64, dev, 64, DOWN, stream);
    }
    want("order: queue", codes, 0);
    MUST(aclrtSynchronizeStream(stream));
    for (int i = 0; i < COPIES; i++)
        order &= all_bytes(pin + i * 64, 64, i);
    holds("order: each copy saw the one before it", order);
    MUST(aclrtFreeHost(sources));
}

static void two_streams_are_apart(void)
{
    struct gate gate;
    paint(pin, SIZE, 5);
    memset(pin2, 0, SIZE);
    gate_close(&gate, stream);
    want("two streams: up on the free one", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, other), OK);
    want("two streams: down on the free one", aclrtMemcpyAsync(pin2, SIZE, dev, SIZE, DOWN, other), OK);
    want("two streams: synchronise the free one", aclrtSynchronizeStream(other), OK);
    holds("two streams: the held one holds nobody else", painted(pin2, SIZE, 5));
    holds("two streams: and is still held", !stream_is_ready(stream));
    want("two streams: the plain copy waits for neither", aclrtMemcpy(dev, SIZE, pin, SIZE, UP), OK);
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
}

static void a_stream_waits_for_an_event(void)
{
    struct gate gate;
    aclrtEvent event;
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    MUST(aclrtCreateEvent(&event));
    put(dev, SIZE, 1);
    paint(pin, SIZE, 6);
    memset(pin2, 0, SIZE);

    gate_close(&gate, stream);
    MUST(aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream));
    want("event: record", aclrtRecordEvent(event, stream), OK);
    want("event: wait on the other stream", aclrtStreamWaitEvent(other, event), OK);
    MUST(aclrtMemcpyAsync(pin2, SIZE, dev, SIZE, DOWN, other));
    want("event: query", aclrtQueryEventStatus(event, &status), OK);
    want("event: not reached", status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
    holds("event: the other stream waits", !stream_is_ready(other));
    holds("event: nothing came down", all_bytes(pin2, SIZE, 0));
    want("event: synchronise with a timeout", aclrtSynchronizeEventWithTimeout(event, 1), EVENT_TIMEOUT);

    gate_open(&gate);
    want("event: synchronise", aclrtSynchronizeEvent(event), OK);
    want("event: query again", aclrtQueryEventStatus(event, &status), OK);
    want("event: reached", status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    want("event: the other stream goes on", aclrtSynchronizeStream(other), OK);
    holds("event: the copy behind it saw the copy before it", painted(pin2, SIZE, 6));
    MUST(aclrtDestroyEvent(event));
}

/* Old events are used again and again after a reset, new ones without. */
static void an_event_is_used_again(void)
{
    aclrtEvent event;
    MUST(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    int good = 1;
    for (unsigned round = 0; round < 50; round++) {
        paint(pin, SIZE, round);
        memset(pin2, 0, SIZE);
        MUST(aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream));
        MUST(aclrtRecordEvent(event, stream));
        MUST(aclrtStreamWaitEvent(other, event));
        MUST(aclrtMemcpyAsync(pin2, SIZE, dev, SIZE, DOWN, other));
        MUST(aclrtSynchronizeStream(other));
        good &= painted(pin2, SIZE, round);
    }
    holds("an event used fifty times orders each time", good);
    MUST(aclrtDestroyEvent(event));
}

static void timeouts(void)
{
    struct gate gate;
    gate_close(&gate, stream);
    want("timeout: held stream", aclrtSynchronizeStreamWithTimeout(stream, 1), STREAM_TIMEOUT);
    want("timeout: held stream, again", aclrtSynchronizeStreamWithTimeout(stream, 20), STREAM_TIMEOUT);
    want("timeout: free stream", aclrtSynchronizeStreamWithTimeout(other, 1000), OK);
    want("timeout: -2", aclrtSynchronizeStreamWithTimeout(stream, -2), PARAM);
    want("timeout: 0", aclrtSynchronizeStreamWithTimeout(stream, 0), PARAM);
    want("timeout: bad stream", aclrtSynchronizeStream(no_stream), BAD_HANDLE);
    gate_open(&gate);
    want("timeout: open", aclrtSynchronizeStreamWithTimeout(stream, -1), OK);
    want("timeout: device", aclrtSynchronizeDevice(), OK);
}

static void a_device_waits_for_all_streams(void)
{
    enum { BIG = 256 * 1024 };
    uint8_t *in = (uint8_t *)pinned_memory(BIG), *out = (uint8_t *)pinned_memory(BIG);
    uint8_t *there = (uint8_t *)device_memory(BIG);
    paint(in, BIG, 7);
    memset(out, 0, BIG);
    MUST(aclrtMemcpyAsync(there, BIG, in, BIG, UP, stream));
    MUST(aclrtMemcpyAsync(out, BIG, there, BIG, DOWN, stream));
    want("device: synchronise", aclrtSynchronizeDevice(), OK);
    holds("device: bytes", painted(out, BIG, 7));
    holds("device: every stream is ready", stream_is_ready(stream) && stream_is_ready(other));

    want("destroy a stream with work in it", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, other), OK);
    want("destroy", aclrtDestroyStream(other), OK);
}

int main(void)
{
    open_world();
    MUST(aclrtCreateStream(&other));
    pinned_is_asynchronous();
    buffered_reads_at_once();
    pageable_is_complete_on_return();
    if (getenv("ASCENDCL_SIM_BANDWIDTH"))
        a_copy_takes_its_time();
    one_stream_keeps_the_order();
    two_streams_are_apart();
    a_stream_waits_for_an_event();
    an_event_is_used_again();
    timeouts();
    a_device_waits_for_all_streams();
    return finish();
}
