/*
 * aclrtMemcpy2d and aclrtMemcpy2dAsync: every check, its code and its place in
 * the order; rows and gaps. Kind against location is in kinds.c.
 */
#define _GNU_SOURCE
#include "conform.h"

enum { H2H, H2D, D2H, D2D, DEFAULT, BUF, INNER, INTER };
enum { TALL = 5 * 1024 * 1024, WIDE = 5000000 };

static aclError now(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind)
{
    return aclrtMemcpy2d(dst, dpitch, src, spitch, width, height, (aclrtMemcpyKind)kind);
}

static aclError later(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind,
                      aclrtStream on)
{
    return aclrtMemcpy2dAsync(dst, dpitch, src, spitch, width, height, (aclrtMemcpyKind)kind, on);
}

/* What both forms refuse before anything else, in both. */
static void upper_checks(void)
{
    static const struct {
        const char *name;
        int code, has_dst, has_src;
        size_t dpitch, spitch, width, height;
        int kind;
    } rows[] = {
        {"no width, all else wrong", OK, 0, 0, 0, 0, 0, 5, 99},
        {"no height, all else wrong", OK, 0, 0, 0, 0, 5, 0, 99},
        {"no destination", BAD, 0, 1, 64, 64, 64, 4, H2D},
        {"no source", BAD, 1, 0, 64, 64, 64, 4, H2D},
        {"no destination, before height", BAD, 0, 1, 64, 64, 64, TALL + 1, H2D},
        {"no source, before height", BAD, 1, 0, 64, 64, 64, TALL + 1, H2D},
        {"width over source pitch", BAD, 1, 1, 64, 63, 64, 4, H2D},
        {"width over destination pitch", BAD, 1, 1, 63, 64, 64, 4, H2D},
        {"pitch, before height", BAD, 1, 1, 63, 64, 64, TALL + 1, H2D},
        {"kind 0", BAD, 1, 1, 64, 64, 64, 4, H2H},
        {"kind 5", BAD, 1, 1, 64, 64, 64, 4, BUF},
        {"kind 6", BAD, 1, 1, 64, 64, 64, 4, INNER},
        {"kind 7", BAD, 1, 1, 64, 64, 64, 4, INTER},
        {"kind 8", BAD, 1, 1, 64, 64, 64, 4, 8},
        {"kind -1", BAD, 1, 1, 64, 64, 64, 4, -1},
        {"bad kind, before height", BAD, 1, 1, 64, 64, 64, TALL + 1, H2H},
        {"bad kind, before width", BAD, 1, 1, WIDE + 1, WIDE + 1, WIDE + 1, 1, BUF},
        {"too tall", PARAM, 1, 1, 64, 64, 64, TALL + 1, H2D},
        {"too wide", PARAM, 1, 1, WIDE + 1, WIDE + 1, WIDE + 1, 1, H2D},
        {"too tall, before kind 3", PARAM, 1, 1, 64, 64, 64, TALL + 1, D2D},
        {"too wide, before kind 3", PARAM, 1, 1, WIDE + 1, WIDE + 1, WIDE + 1, 1, D2D},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[128];
        void *dst = rows[i].has_dst ? dev : NULL, *src = rows[i].has_src ? pin : NULL;
        snprintf(name, sizeof name, "2d: %s", rows[i].name);
        want(name, now(dst, rows[i].dpitch, src, rows[i].spitch, rows[i].width, rows[i].height, rows[i].kind),
             rows[i].code);
        snprintf(name, sizeof name, "2d async: %s", rows[i].name);
        want(name, later(dst, rows[i].dpitch, src, rows[i].spitch, rows[i].width, rows[i].height, rows[i].kind, stream),
             rows[i].code);
        /* The upper layer comes before the stream, the limits after it. */
        snprintf(name, sizeof name, "2d async, bad stream: %s", rows[i].name);
        want(name,
             later(dst, rows[i].dpitch, src, rows[i].spitch, rows[i].width, rows[i].height, rows[i].kind, no_stream),
             rows[i].code == PARAM ? BAD_HANDLE : rows[i].code);
    }
}

static void lower_checks(void)
{
    want("2d: device to device by its number, on device memory", now(dev2, 64, dev, 64, 64, 4, D2D), UNSUPPORTED);
    want("2d: device to device by its number, before location", now(pin2, 64, pin, 64, 64, 4, D2D), UNSUPPORTED);
    want("2d: onto itself is no short cut", now(dev, 64, dev, 64, 64, 4, H2D), PARAM);
    want("2d: onto itself, pinned", now(pin, 64, pin, 64, 64, 4, H2D), PARAM);
    want("2d async: bad stream", later(dev, 64, pin, 64, 64, 4, H2D, no_stream), BAD_HANDLE);
    want("2d async: onto itself, pinned", later(pin, 64, pin, 64, 64, 4, H2D, stream), PARAM);
    want("2d async: foreign stream", later(dev, 64, pin, 64, 64, 4, H2D, foreign), FOREIGN_STREAM);
    want("2d async: kind against location, before foreign stream", later(dev, 64, page, 64, 64, 4, D2H, foreign), PARAM);
}

static void without_context(void)
{
    want("2d, no context", now(dev, 64, pin, 64, 64, 4, H2D), NO_CONTEXT);
    want("2d, no context: upper layer is looked at first", now(NULL, 64, pin, 64, 64, 4, H2D), BAD);
    want("2d, no context: height is looked at first", now(dev, 64, pin, 64, 64, TALL + 1, H2D), PARAM);
    want("2d, no context: kind 3 is looked at first", now(dev, 64, dev2, 64, 64, 4, D2D), UNSUPPORTED);
    want("2d, no context comes before location", now(pin2, 64, pin, 64, 64, 4, H2D), NO_CONTEXT);
    want("2d async, no context, no stream", later(dev, 64, pin, 64, 64, 4, H2D, NULL), PARAM);
    want("2d async, no context, a stream", later(dev, 64, pin, 64, 64, 4, H2D, stream), NO_CONTEXT);
    want("2d async, no context, a stream: height is looked at first", later(dev, 64, pin, 64, 64, TALL + 1, H2D, stream),
         PARAM);
    want("2d async, no context: bad stream", later(dev, 64, pin, 64, 64, 4, H2D, no_stream), BAD_HANDLE);
    want("2d async, no context: upper layer is looked at first", later(NULL, 64, pin, 64, 64, 4, H2D, NULL), BAD);
}

/* 8 rows of 50 bytes, 100 apart on the host, 128 apart on the device. */
static void data(uint8_t *host, uint8_t *back, const char *where, int async)
{
    char name[128];
    MUST(aclrtMemset(dev, SIZE, 0xEE, SIZE));
    paint(host, SIZE, 5);
    memset(back, 0x11, SIZE);

    snprintf(name, sizeof name, "2d%s: %s up", async ? " async" : "", where);
    want(name, async ? later(dev, 128, host, 100, 50, 8, H2D, stream) : now(dev, 128, host, 100, 50, 8, H2D), OK);
    snprintf(name, sizeof name, "2d%s: %s down", async ? " async" : "", where);
    want(name, async ? later(back, 90, dev, 128, 50, 8, D2H, stream) : now(back, 90, dev, 128, 50, 8, D2H), OK);
    if (async && host == pin)
        MUST(aclrtSynchronizeStream(stream));

    int rows = 1, gaps = 1;
    for (int y = 0; y < 8; y++) {
        rows &= memcmp(back + y * 90, host + y * 100, 50) == 0;
        gaps &= all_bytes(back + y * 90 + 50, 40, 0x11);
    }
    snprintf(name, sizeof name, "2d%s: %s: rows", async ? " async" : "", where);
    holds(name, rows);
    snprintf(name, sizeof name, "2d%s: %s: gaps on the host", async ? " async" : "", where);
    holds(name, gaps);

    uint8_t whole[SIZE];
    MUST(aclrtMemcpy(whole, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    gaps = 1;
    for (int y = 0; y < 8; y++)
        gaps &= all_bytes(whole + y * 128 + 50, 78, 0xEE);
    snprintf(name, sizeof name, "2d%s: %s: gaps on the device", async ? " async" : "", where);
    holds(name, gaps);
}

static void on_streams(void)
{
    put(dev, SIZE, 6);
    MUST(aclrtMemset(dev2, SIZE, 0, SIZE));
    want("2d async: device to device", later(dev2, 64, dev, 128, 32, 8, D2D, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    uint8_t a[SIZE], b[SIZE];
    MUST(aclrtMemcpy(a, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    MUST(aclrtMemcpy(b, SIZE, dev2, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    int good = 1;
    for (int y = 0; y < 8; y++)
        good &= memcmp(b + y * 64, a + y * 128, 32) == 0 && all_bytes(b + y * 64 + 32, 32, 0);
    holds("2d async: device to device: rows and gaps", good);

    struct gate gate;
    put(dev, SIZE, 8);
    paint(pin, SIZE, 9);
    gate_close(&gate, stream);
    want("2d async: stream held", later(dev, 64, pin, 64, 64, 64, H2D, stream), OK);
    holds("2d async: stream held: not yet", has(dev, SIZE, 8));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds("2d async: stream held: bytes then", has(dev, SIZE, 9));

    paint(pin, SIZE, 7);
    memset(pin2, 0, SIZE);
    want("2d async: default stream", later(dev, 64, pin, 64, 64, 64, DEFAULT, NULL), OK);
    want("2d async: default stream, back", later(pin2, 64, dev, 64, 64, 64, DEFAULT, NULL), OK);
    MUST(aclrtSynchronizeStream(NULL));
    holds("2d async: default stream: bytes", painted(pin2, SIZE, 7));
}

int main(void)
{
    open_world();
    upper_checks();
    lower_checks();
    on_new_thread(without_context);
    data(pin, pin2, "pinned", 0);
    data(page, page2, "pageable", 0);
    data(pin, pin2, "pinned", 1);
    data(page, page2, "pageable", 1);
    on_streams();
    return finish();
}
