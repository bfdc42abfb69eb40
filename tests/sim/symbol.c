/* The copies from and to device variables, synchronous and asynchronous. */
#define _GNU_SOURCE
#include "conform.h"

enum { H2H, H2D, D2H, D2D, DEFAULT, BUF, INNER };
enum { WHOLE = 1024 };

static uint8_t variable[WHOLE]; /* the host shadow: only its address counts */
static uint8_t unknown[WHOLE];
static int async;

static const char *name_of(const char *direction, const char *what)
{
    static char name[160];
    snprintf(name, sizeof name, "%s symbol%s: %s", direction, async ? " async" : "", what);
    return name;
}

static void from(const char *what, aclError code, void *dst, size_t room, const void *symbol, size_t count,
                 size_t offset, int kind, aclrtStream on)
{
    aclrtMemcpyKind as = (aclrtMemcpyKind)kind;
    want(name_of("from", what),
         async ? aclrtMemcpyFromSymbolAsync(dst, room, symbol, count, offset, as, on)
               : aclrtMemcpyFromSymbol(dst, room, symbol, count, offset, as),
         code);
}

static void to(const char *what, aclError code, const void *symbol, const void *src, size_t count, size_t offset,
               int kind, aclrtStream on)
{
    aclrtMemcpyKind as = (aclrtMemcpyKind)kind;
    want(name_of("to", what),
         async ? aclrtMemcpyToSymbolAsync(symbol, src, count, offset, as, on)
               : aclrtMemcpyToSymbol(symbol, src, count, offset, as),
         code);
}

static void checks(void)
{
    from("nothing to copy, all else wrong", OK, NULL, 0, NULL, 0, 99999, 99, no_stream);
    from("no symbol", BAD, pin, SIZE, NULL, 64, 0, D2H, stream);
    from("no destination", BAD, NULL, SIZE, variable, 64, 0, D2H, stream);
    from("room smaller than count", BAD, pin, 63, variable, 64, 0, D2H, stream);
    static const int refused[] = {-1, H2H, H2D, D2D, BUF, INNER, 8};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char what[32];
        snprintf(what, sizeof what, "kind %d", refused[i]);
        from(what, BAD, pin, SIZE, variable, 64, 0, refused[i], stream);
        if (refused[i] != H2D)
            to(what, BAD, variable, pin, 64, 0, refused[i], stream);
    }
    to("kind 2", BAD, variable, pin, 64, 0, D2H, stream);
    from("room, before symbol", BAD, pin, 63, unknown, 64, 0, D2H, stream);
    from("bad kind, before symbol", BAD, pin, SIZE, unknown, 64, 0, H2D, stream);
    from("unknown symbol", BAD_SYMBOL, pin, SIZE, unknown, 64, 0, D2H, stream);
    from("unknown symbol, before offset", BAD_SYMBOL, pin, SIZE, unknown, 64, SIZE_MAX, D2H, stream);
    from("offset and count wrap round", FAILURE, pin, SIZE, variable, 64, SIZE_MAX - 3, D2H, stream);
    from("behind the end", BAD, pin, SIZE, variable, 64, WHOLE - 63, D2H, stream);
    from("up to the end", OK, pin, SIZE, variable, 64, WHOLE - 64, D2H, stream);

    to("nothing to copy, all else wrong", OK, NULL, NULL, 0, 99999, 99, no_stream);
    to("no symbol", BAD, NULL, pin, 64, 0, H2D, stream);
    to("no source", BAD, variable, NULL, 64, 0, H2D, stream);
    to("bad kind, before symbol", BAD, unknown, pin, 64, 0, D2H, stream);
    to("unknown symbol", BAD_SYMBOL, unknown, pin, 64, 0, H2D, stream);
    to("unknown symbol, before offset", BAD_SYMBOL, unknown, pin, 64, SIZE_MAX, H2D, stream);
    to("offset and count wrap round", FAILURE, variable, pin, 64, SIZE_MAX - 3, H2D, stream);
    to("behind the end", BAD, variable, pin, 64, WHOLE - 63, H2D, stream);
    to("up to the end", OK, variable, pin, 64, WHOLE - 64, H2D, stream);

    if (async) {
        from("bad stream", BAD_HANDLE, pin, SIZE, variable, 64, 0, D2H, no_stream);
        from("unknown symbol, before stream", BAD_SYMBOL, pin, SIZE, unknown, 64, 0, D2H, no_stream);
        from("foreign stream", FOREIGN_STREAM, pin, SIZE, variable, 64, 0, D2H, foreign);
        to("bad stream", BAD_HANDLE, variable, pin, 64, 0, H2D, no_stream);
        to("behind the end, before stream", BAD, variable, pin, 64, WHOLE, H2D, no_stream);
        to("foreign stream", FOREIGN_STREAM, variable, pin, 64, 0, H2D, foreign);
    }
    MUST(aclrtSynchronizeStream(stream));
}

static void without_context(void)
{
    from("no context", NO_CONTEXT, pin, SIZE, variable, 64, 0, D2H, NULL);
    from("no context: kind is looked at first", BAD, pin, SIZE, variable, 64, 0, H2D, NULL);
    from("no context comes before symbol", NO_CONTEXT, pin, SIZE, unknown, 64, 0, D2H, NULL);
    to("no context", NO_CONTEXT, variable, pin, 64, 0, H2D, NULL);
    to("no context: null is looked at first", BAD, variable, NULL, 64, 0, H2D, NULL);
    to("no context comes before symbol", NO_CONTEXT, unknown, pin, 64, 0, H2D, NULL);
}

static void data(uint8_t *in, uint8_t *out, const char *where, int kind_up, int kind_down)
{
    char what[64];
    memset(in, 0, SIZE);
    to("clear", OK, variable, in, WHOLE, 0, kind_up, stream);
    if (async)
        MUST(aclrtSynchronizeStream(stream));
    paint(in, SIZE, (unsigned)(in == pin) + 1);
    memset(out, 0xCC, SIZE);
    snprintf(what, sizeof what, "%s", where);
    to(what, OK, variable, in, 100, 50, kind_up, stream);
    from(what, OK, out, SIZE, variable, WHOLE, 0, kind_down, stream);
    if (async && in == pin)
        MUST(aclrtSynchronizeStream(stream));
    snprintf(what, sizeof what, "%s: bytes at the offset", where);
    holds(name_of("from and to", what), memcmp(out + 50, in, 100) == 0);
    snprintf(what, sizeof what, "%s: nothing beside them", where);
    holds(name_of("from and to", what), all_bytes(out, 50, 0) && all_bytes(out + 150, WHOLE - 150, 0) &&
                                            all_bytes(out + WHOLE, SIZE - WHOLE, 0xCC));
}

static void behind_a_gate(void)
{
    struct gate gate;
    memset(pin, 0, SIZE);
    MUST(aclrtMemcpyToSymbol(variable, pin, 64, 0, ACL_MEMCPY_HOST_TO_DEVICE));
    paint(pin, SIZE, 3);
    memset(pin2, 0xCC, SIZE);
    gate_close(&gate, stream);
    to("stream held", OK, variable, pin, 64, 0, H2D, stream);
    from("stream held", OK, pin2, SIZE, variable, 64, 0, D2H, stream);
    uint8_t now[64];
    MUST(aclrtMemcpyFromSymbol(now, 64, variable, 64, 0, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("to symbol async: stream held: not yet", all_bytes(now, 64, 0));
    holds("from symbol async: stream held: not yet", all_bytes(pin2, SIZE, 0xCC));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds("symbols async: stream held: bytes then", painted(pin2, 64, 3));
}

int main(void)
{
    open_world();
    want("register a symbol", ascendclSimRegisterSymbol(variable, WHOLE), 0);
    memset(variable, 0x77, sizeof variable);
    for (async = 0; async < 2; async++) {
        checks();
        on_new_thread(without_context);
        data(pin, pin2, "pinned", H2D, D2H);
        data(page, page2, "pageable", H2D, D2H);
        data(pin, pin2, "pinned, default kind", DEFAULT, DEFAULT);
        if (async)
            behind_a_gate();
    }
    holds("the host shadow is never written", all_bytes(variable, WHOLE, 0x77));
    return finish();
}
