/* aclrtMemset, aclrtMemsetAsync, aclrtMemsetD32 and aclrtMemsetD32Async. */
#define _GNU_SOURCE
#include "conform.h"

static void byte_checks(void)
{
    want("set: nothing to set, all else wrong", aclrtMemset(NULL, 0, 1, 0), OK);
    want("set: no memory", aclrtMemset(NULL, SIZE, 1, SIZE), BAD);
    want("set: no memory, before room", aclrtMemset(NULL, 1, 1, 2), BAD);
    want("set: room smaller than count", aclrtMemset(dev, 1, 1, 2), PARAM);

    want("set async: nothing to set, all else wrong", aclrtMemsetAsync(NULL, 0, 1, 0, no_stream), OK);
    want("set async: no memory, before stream", aclrtMemsetAsync(NULL, SIZE, 1, SIZE, no_stream), BAD);
    want("set async: bad stream", aclrtMemsetAsync(dev, SIZE, 1, SIZE, no_stream), BAD_HANDLE);
    want("set async: bad stream, before room", aclrtMemsetAsync(dev, 1, 1, 2, no_stream), BAD_HANDLE);
    want("set async: room smaller than count", aclrtMemsetAsync(dev, 1, 1, 2, stream), PARAM);
    want("set async: room, before foreign stream", aclrtMemsetAsync(dev, 1, 1, 2, foreign), PARAM);
    want("set async: foreign stream", aclrtMemsetAsync(dev, SIZE, 1, SIZE, foreign), FOREIGN_STREAM);
}

static void byte_without_context(void)
{
    want("set, no context", aclrtMemset(dev, SIZE, 1, SIZE), NO_CONTEXT);
    want("set, no context comes before room", aclrtMemset(dev, 1, 1, 2), NO_CONTEXT);
    want("set, no context: null is looked at first", aclrtMemset(NULL, SIZE, 1, SIZE), BAD);
    want("set async, no context", aclrtMemsetAsync(dev, SIZE, 1, SIZE, NULL), NO_CONTEXT);
    want("set async, no context, a good stream does not help", aclrtMemsetAsync(dev, SIZE, 1, SIZE, stream), NO_CONTEXT);
    want("set async, no context: room is looked at first", aclrtMemsetAsync(dev, 1, 1, 2, NULL), PARAM);
    want("set async, no context: stream is looked at first", aclrtMemsetAsync(dev, SIZE, 1, SIZE, no_stream),
         BAD_HANDLE);
}

static void byte_data(void)
{
    uint8_t got[SIZE];
    put(dev, SIZE, 1);
    want("set: a part", aclrtMemset(dev, SIZE, 0x5A, 100), OK);
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    uint8_t old[SIZE];
    paint(old, SIZE, 1);
    holds("set: bytes", all_bytes(got, 100, 0x5A));
    holds("set: nothing behind", memcmp(got + 100, old + 100, SIZE - 100) == 0);

    want("set: value is cut to a byte", aclrtMemset(dev, SIZE, 0x1FE, SIZE), OK);
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("set: value is cut to a byte: bytes", all_bytes(got, SIZE, 0xFE));
    want("set: value -1", aclrtMemset(dev, SIZE, -1, SIZE), OK);
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("set: value -1: bytes", all_bytes(got, SIZE, 0xFF));

    want("set: pinned memory", aclrtMemset(pin, SIZE, 3, SIZE), OK);
    holds("set: pinned memory: bytes", all_bytes(pin, SIZE, 3));
    want("set: pageable memory", aclrtMemset(page, SIZE, 4, SIZE), OK);
    holds("set: pageable memory: bytes", all_bytes(page, SIZE, 4));

    struct gate gate;
    gate_close(&gate, stream);
    want("set async behind a gate", aclrtMemsetAsync(dev, SIZE, 7, SIZE, stream), OK);
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("set async behind a gate: not yet", all_bytes(got, SIZE, 0xFF));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("set async: bytes", all_bytes(got, SIZE, 7));
    want("set async: default stream", aclrtMemsetAsync(dev, SIZE, 8, SIZE, NULL), OK);
    MUST(aclrtSynchronizeStream(NULL));
    MUST(aclrtMemcpy(got, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("set async: default stream: bytes", all_bytes(got, SIZE, 8));
}

static void word_checks(void)
{
    for (int async = 0; async < 2; async++) {
        char name[128];
#define WORDS(what, code, ptr, size, n, on)                                                               \
    do {                                                                                                  \
        snprintf(name, sizeof name, "set words%s: %s", async ? " async" : "", what);                      \
        want(name, async ? aclrtMemsetD32Async(ptr, size, 1, n, on) : aclrtMemsetD32(ptr, size, 1, n), code); \
    } while (0)
        WORDS("nothing to set, all else wrong", OK, NULL, 0, 0, no_stream);
        WORDS("no memory", BAD, NULL, SIZE, 1, no_stream);
        WORDS("not on 4 bytes", BAD, dev + 2, SIZE - 2, 1, no_stream);
        WORDS("room smaller than the words", BAD, dev, 7, 2, no_stream);
        WORDS("room equal to the words", OK, dev, 8, 2, stream);
        WORDS("pageable memory", BAD, page, SIZE, 1, no_stream);
        /* 2^62 words are 2^64 bytes, which is 0: the runtime's check wraps. */
        WORDS("pageable memory, a count that wraps", BAD, page, 0, (size_t)1 << 62, stream);
        void *gone = device_memory(SIZE);
        MUST(aclrtFree(gone));
        WORDS("freed memory", DRIVER, gone, SIZE, 1, no_stream);
    }
    want("set words async: bad stream", aclrtMemsetD32Async(dev, SIZE, 1, 1, no_stream), BAD_HANDLE);
    want("set words async: foreign stream", aclrtMemsetD32Async(dev, SIZE, 1, 1, foreign), FOREIGN_STREAM);
    MUST(aclrtSynchronizeStream(stream));
}

static void word_without_context(void)
{
    want("set words, no context", aclrtMemsetD32(dev, SIZE, 1, 1), NO_CONTEXT);
    want("set words, no context: null is looked at first", aclrtMemsetD32(NULL, SIZE, 1, 1), BAD);
    want("set words, no context: pageable is looked at first", aclrtMemsetD32(page, SIZE, 1, 1), BAD);
    want("set words async, no context", aclrtMemsetD32Async(dev, SIZE, 1, 1, NULL), NO_CONTEXT);
    want("set words async, no context: room is looked at first", aclrtMemsetD32Async(dev, 3, 1, 1, NULL), BAD);
    want("set words async, no context: stream is looked at first", aclrtMemsetD32Async(dev, SIZE, 1, 1, no_stream),
         BAD_HANDLE);
}

static int words(const void *place, size_t count, uint32_t value)
{
    uint32_t got[SIZE / 4];
    MUST(aclrtMemcpy(got, sizeof got, place, count * 4, ACL_MEMCPY_DEFAULT));
    for (size_t i = 0; i < count; i++)
        if (got[i] != value)
            return 0;
    return 1;
}

static void word_data(void)
{
    MUST(aclrtMemset(dev, SIZE, 0, SIZE));
    want("set words", aclrtMemsetD32(dev, SIZE, 0x12345678, 10), OK);
    holds("set words: words", words(dev, 10, 0x12345678));
    holds("set words: nothing behind", words(dev + 40, 10, 0));
    want("set words async", aclrtMemsetD32Async(dev, SIZE, 0x89ABCDEF, SIZE / 4, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    holds("set words async: words", words(dev, SIZE / 4, 0x89ABCDEF));
    want("set words: pinned memory", aclrtMemsetD32(pin, SIZE, 0xCAFEF00D, SIZE / 4), OK);
    holds("set words: pinned memory: words", words(pin, SIZE / 4, 0xCAFEF00D));
}

int main(void)
{
    open_world();
    byte_checks();
    on_new_thread(byte_without_context);
    byte_data();
    word_checks();
    on_new_thread(word_without_context);
    word_data();
    return finish();
}
