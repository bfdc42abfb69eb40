/*
 * aclrtMemcpy, aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition: every check,
 * its code and its place in the order. A call that breaks two rules shows which
 * is looked at first.
 */
#define _GNU_SOURCE
#include "conform.h"

enum { H2H, H2D, D2H, D2D, DEFAULT, BUF, INNER, INTER };

static aclError copy(void *dst, size_t room, const void *src, size_t count, int kind)
{
    return aclrtMemcpy(dst, room, src, count, (aclrtMemcpyKind)kind);
}

/* The two asynchronous forms check alike; each case is checked for both. */
typedef aclError (*async_form)(void *, size_t, const void *, size_t, aclrtMemcpyKind, aclrtStream);
static async_form form;
static const char *form_name;

static const char *name_of(const char *what)
{
    static char name[256];
    snprintf(name, sizeof name, "%s: %s", form_name, what);
    return name;
}

static void queued(const char *what, aclError expected, void *dst, size_t room, const void *src, size_t count,
                   int kind, aclrtStream on)
{
    want(name_of(what), form(dst, room, src, count, (aclrtMemcpyKind)kind, on), expected);
}

/* ---- aclrtMemcpy ---- */

static void plain_checks(void)
{
    want("memcpy: nothing to copy, all else wrong", copy(NULL, 0, NULL, 0, 99), OK);
    want("memcpy: no destination", copy(NULL, SIZE, pin, SIZE, H2D), BAD);
    want("memcpy: no source", copy(dev, SIZE, NULL, SIZE, H2D), BAD);
    want("memcpy: no destination, before room", copy(NULL, 1, pin, 2, H2D), BAD);
    want("memcpy: no source, before room", copy(dev, 1, NULL, 2, H2D), BAD);
    static const int refused[] = {-1, INNER, INTER, 8, 9, 1000};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char name[64];
        snprintf(name, sizeof name, "memcpy: kind %d", refused[i]);
        want(name, copy(dev, SIZE, pin, SIZE, refused[i]), BAD);
    }
    want("memcpy: bad kind, before room", copy(dev, 0, pin, SIZE, INNER), BAD);
    want("memcpy: no room at all", copy(dev, 0, pin, 1, H2D), PARAM);
    want("memcpy: room smaller than count", copy(dev, SIZE - 1, pin, SIZE, H2D), PARAM);
    want("memcpy: room equal to count", copy(dev, SIZE, pin, SIZE, H2D), OK);
    want("memcpy: room larger than count", copy(dev, SIZE, pin, 1, H2D), OK);
    want("memcpy: onto itself", copy(dev, SIZE, dev, SIZE, D2D), OK);
    want("memcpy: onto itself, room is looked at first", copy(dev, 1, dev, 2, D2D), PARAM);
}

static void plain_without_context(void)
{
    want("memcpy, no context", copy(dev, SIZE, pin, SIZE, H2D), NO_CONTEXT);
    want("memcpy, no context: host to host needs one too", copy(page, SIZE, page2, SIZE, H2H), NO_CONTEXT);
    want("memcpy, no context: nothing to copy is looked at first", copy(NULL, 0, NULL, 0, 99), OK);
    want("memcpy, no context: null is looked at first", copy(NULL, SIZE, pin, SIZE, H2D), BAD);
    want("memcpy, no context: room is looked at first", copy(dev, 1, pin, 2, H2D), PARAM);
    want("memcpy, no context: onto itself is looked at first", copy(dev, SIZE, dev, SIZE, D2D), OK);
}

/* The plain copy goes by the addresses; a wrong kind changes nothing. */
static void plain_data(void)
{
    uint8_t *from[] = {dev, pin, page}, *to[] = {dev2, pin2, page2};
    static const char *place[] = {"device", "pinned", "pageable"};
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 3; d++)
            for (int kind = H2H; kind <= BUF; kind++) {
                char name[96];
                unsigned seed = (unsigned)(s * 20 + d * 7 + kind + 1);
                put(from[s], SIZE, seed);
                put(to[d], SIZE, 99);
                snprintf(name, sizeof name, "memcpy: %s to %s, kind %d", place[s], place[d], kind);
                want(name, copy(to[d], SIZE, from[s], SIZE, kind), OK);
                snprintf(name, sizeof name, "memcpy: %s to %s, kind %d: bytes", place[s], place[d], kind);
                holds(name, has(to[d], SIZE, seed));
            }

    paint(page, SIZE, 1);
    memset(page2, 0, SIZE);
    MUST(copy(dev, SIZE, page, SIZE, H2D));
    want("memcpy: a part from the middle", copy(page2, SIZE, dev + 100, 50, D2H), OK);
    holds("memcpy: a part: bytes", memcmp(page2, page + 100, 50) == 0);
    holds("memcpy: a part: nothing behind it", all_bytes(page2 + 50, SIZE - 50, 0));
}

/* ---- The asynchronous forms ---- */

static void async_checks(void)
{
    queued("nothing to copy, all else wrong", OK, NULL, 0, NULL, 0, 99, no_stream);
    queued("no destination, before stream", BAD, NULL, SIZE, pin, SIZE, H2D, no_stream);
    queued("no source, before stream", BAD, dev, SIZE, NULL, SIZE, H2D, no_stream);
    queued("no destination, before room", BAD, NULL, 1, pin, 2, H2D, stream);
    queued("kind 6", BAD, dev, SIZE, pin, SIZE, INNER, stream);
    queued("kind 7", BAD, dev, SIZE, pin, SIZE, INTER, stream);
    queued("kind 8", BAD, dev, SIZE, pin, SIZE, 8, stream);
    queued("kind -1", BAD, dev, SIZE, pin, SIZE, -1, stream);
    queued("bad kind, before stream", BAD, dev, SIZE, pin, SIZE, INNER, no_stream);
    queued("bad kind, before room", BAD, dev, 1, pin, 2, INTER, stream);
    queued("bad stream", BAD_HANDLE, dev, SIZE, pin, SIZE, H2D, no_stream);
    queued("bad stream, before room", BAD_HANDLE, dev, 1, pin, 2, H2D, no_stream);
    queued("room smaller than count", PARAM, dev, 1, pin, 2, H2D, stream);
    queued("no room at all", PARAM, dev, 0, pin, 1, H2D, stream);
    queued("room, before location", PARAM, pin2, 1, pin, 2, H2H, stream);

    queued("buffered copy, source on the device", PARAM, dev, SIZE, dev2, SIZE, BUF, stream);
    queued("buffered copy, destination in pinned memory", PARAM, pin2, SIZE, pin, SIZE, BUF, stream);
    queued("buffered copy, destination in pageable memory", PARAM, page, SIZE, pin, SIZE, BUF, stream);
    queued("buffered copy, location before foreign stream", PARAM, pin2, SIZE, pin, SIZE, BUF, foreign);

    queued("kind against location, before foreign stream", PARAM, dev, SIZE, page, SIZE, D2H, foreign);
    queued("host to host, before foreign stream", UNSUPPORTED, pin2, SIZE, pin, SIZE, H2H, foreign);
    queued("onto itself, on the device", OK, dev, SIZE, dev, SIZE, D2D, stream);
    queued("onto itself, before foreign stream", OK, dev, SIZE, dev, SIZE, D2D, foreign);
    queued("onto itself, pinned: host to host comes first", UNSUPPORTED, pin, SIZE, pin, SIZE, H2D, stream);
    queued("onto itself, pageable, default: host to host comes first", UNSUPPORTED, page, SIZE, page, SIZE, DEFAULT,
           stream);
    queued("onto itself, pageable, kind 1", OK, page, SIZE, page, SIZE, H2D, stream);
    queued("foreign stream", FOREIGN_STREAM, dev, SIZE, pin, SIZE, H2D, foreign);
    MUST(aclrtSynchronizeStream(stream));
}

static void async_without_context(void)
{
    queued("no context", NO_CONTEXT, dev, SIZE, pin, SIZE, H2D, NULL);
    queued("no context, a good stream does not help", NO_CONTEXT, dev, SIZE, pin, SIZE, H2D, stream);
    queued("no context: nothing to copy is looked at first", OK, NULL, 0, NULL, 0, 99, NULL);
    queued("no context: null is looked at first", BAD, NULL, SIZE, pin, SIZE, H2D, NULL);
    queued("no context: stream is looked at first", BAD_HANDLE, dev, SIZE, pin, SIZE, H2D, no_stream);
    queued("no context: room is looked at first", PARAM, dev, 1, pin, 2, H2D, NULL);
    queued("no context comes before location", NO_CONTEXT, pin2, SIZE, pin, SIZE, H2H, NULL);
    queued("no context comes before location of a buffered copy", NO_CONTEXT, pin2, SIZE, pin, SIZE, BUF, NULL);
    queued("no context comes before onto itself", NO_CONTEXT, dev, SIZE, dev, SIZE, D2D, NULL);
}

static void async_data(void)
{
    put(dev, SIZE, 90);
    paint(pin, SIZE, 11);
    memset(pin2, 0, SIZE);
    queued("pinned to device", OK, dev, SIZE, pin, SIZE, H2D, stream);
    queued("device to device", OK, dev2, SIZE, dev, SIZE, D2D, stream);
    queued("device to pinned", OK, pin2, SIZE, dev2, SIZE, D2H, stream);
    MUST(aclrtSynchronizeStream(stream));
    holds(name_of("bytes through the device"), painted(pin2, SIZE, 11));

    paint(pin, SIZE, 12);
    memset(pin2, 0, SIZE);
    queued("default stream up", OK, dev, SIZE, pin, SIZE, H2D, NULL);
    queued("default stream down", OK, pin2, SIZE, dev, SIZE, DEFAULT, NULL);
    MUST(aclrtSynchronizeStream(NULL));
    holds(name_of("bytes through the default stream"), painted(pin2, SIZE, 12));

    paint(page, SIZE, 13);
    memset(page2, 0, SIZE);
    queued("pageable to device", OK, dev, SIZE, page, SIZE, H2D, stream);
    queued("device to pageable", OK, page2, SIZE, dev, SIZE, D2H, stream);
    holds(name_of("pageable bytes are there on return"), painted(page2, SIZE, 13));

    struct gate gate;
    put(dev, SIZE, 90);
    paint(pin, SIZE, 15);
    gate_close(&gate, stream);
    queued("pinned, stream held", OK, dev, SIZE, pin, SIZE, H2D, stream);
    holds(name_of("pinned, stream held: not yet"), has(dev, SIZE, 90));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds(name_of("pinned, stream held: bytes then"), has(dev, SIZE, 15));

    /* With the stream held, only a copy made at the call can have these bytes. */
    paint(page, SIZE, 14);
    gate_close(&gate, stream);
    queued("buffered from pageable memory", OK, dev, SIZE, page, SIZE, BUF, stream);
    memset(page, 0, SIZE);
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds(name_of("buffered: the source was read before the return"), has(dev, SIZE, 14));
}

static void calls_are_counted(void)
{
    uint64_t before = ascendclSimCalls("aclrtMemcpy"), async_before = ascendclSimCalls("aclrtMemcpyAsync");
    copy(dev, SIZE, pin, SIZE, H2D);
    copy(NULL, 0, NULL, 0, 99);
    copy(NULL, SIZE, pin, SIZE, H2D);
    want("three entries of aclrtMemcpy, whatever they returned", (long long)(ascendclSimCalls("aclrtMemcpy") - before), 3);
    want("none of aclrtMemcpyAsync", (long long)(ascendclSimCalls("aclrtMemcpyAsync") - async_before), 0);
    want("none of a function that is not there", (long long)ascendclSimCalls("aclrtNoSuchCopy"), 0);
}

int main(void)
{
    open_world();
    plain_checks();
    on_new_thread(plain_without_context);
    plain_data();

    static const struct { const char *name; async_form form; } forms[] = {
        {"async", aclrtMemcpyAsync}, {"condition", aclrtMemcpyAsyncWithCondition}};
    for (size_t i = 0; i < 2; i++) {
        form = forms[i].form;
        form_name = forms[i].name;
        async_checks();
        on_new_thread(async_without_context);
        async_data();
    }
    calls_are_counted();
    return finish();
}
