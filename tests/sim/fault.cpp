/*
 * The faults that ASCENDCL_SIM_FAULT asks for. FAULT_CASE says which one this
 * run has set; the fault is always at the second call of aclrtMemcpy unless the
 * case says otherwise.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <time.h>

#include "conform.h"

static aclError copy(void *dst, const void *src)
{
    return aclrtMemcpy(dst, SIZE, src, SIZE, ACL_MEMCPY_DEFAULT);
}

/* 42 and the like for what was thrown, -1 if nothing was. */
static int thrown(void *dst, const void *src)
{
    try {
        copy(dst, src);
    } catch (int number) {
        return number;
    }
    return -1;
}

static void throws(void)
{
    want("first call", thrown(pin2, pin), -1);
    want("second call throws", thrown(pin2, pin), 42);
    want("third call", thrown(pin2, pin), -1);
    want("all were entered", (long long)ascendclSimCalls("aclrtMemcpy"), 3);
}

static void always_throws(void)
{
    for (int i = 0; i < 3; i++)
        want("every call throws", thrown(pin2, pin), 42);
    want("another function does not", aclrtMemset(dev, SIZE, 0, SIZE), OK);
}

static void jumps(void)
{
    static jmp_buf back;
    static volatile int landed;
    ascendclSimSetJump(&back);
    want("first call", copy(pin2, pin), OK);
    if (setjmp(back) == 0)
        copy(pin2, pin);
    else
        landed = 1;
    want("second call jumps", landed, 1);
    want("third call", copy(pin2, pin), OK);
}

static void reenters(void)
{
    paint(pin, SIZE, 1);
    memset(pin2, 0, SIZE);
    want("first call", copy(pin2, pin), OK);
    want("one entry", (long long)ascendclSimCalls("aclrtMemcpy"), 1);
    paint(pin, SIZE, 2);
    want("second call", copy(pin2, pin), OK);
    want("two entries more", (long long)ascendclSimCalls("aclrtMemcpy"), 3);
    holds("bytes all the same", painted(pin2, SIZE, 2));
}

static void fails(void)
{
    paint(pin, SIZE, 3);
    memset(pin2, 0, SIZE);
    want("first call", copy(pin2, pin), OK);
    memset(pin2, 0, SIZE);
    want("second call fails", copy(pin2, pin), 507899);
    holds("and copies nothing", all_bytes(pin2, SIZE, 0));
    want("third call", copy(pin2, pin), OK);
    holds("and copies", painted(pin2, SIZE, 3));
}

static void sets_errno(void)
{
    errno = 0;
    want("first call", copy(pin2, pin), OK);
    errno = 0;
    want("second call", copy(pin2, pin), OK);
    want("second call leaves errno", errno, 99);
}

static void *hang(void *)
{
    MUST(aclrtSetCurrentContext(home));
    copy(pin2, pin);
    copy(pin2, pin);
    return nullptr;
}

static void hangs(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, nullptr, hang, nullptr));
    while (ascendclSimCalls("aclrtMemcpy") < 2)
        sched_yield();
    /* A call that returns would let the thread end; one that hangs never does,
     * so this cannot fail by being slow. */
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    want("the thread does not come back", pthread_timedjoin_np(thread, nullptr, &until), ETIMEDOUT);
    want("other threads can copy meanwhile", copy(dev2, dev), OK);
}

/* Calls the function that FAULT_FUNCTION names, with nothing in it. */
static aclError call_named(const char *name)
{
    const aclrtMemcpyKind kind = ACL_MEMCPY_HOST_TO_DEVICE;
    size_t index = 0;
#define NAMED(function, ...)            \
    if (strcmp(name, #function) == 0) \
    return function(__VA_ARGS__)
    NAMED(aclrtMemcpy, NULL, 0, NULL, 0, kind);
    NAMED(aclrtMemcpyAsync, NULL, 0, NULL, 0, kind, NULL);
    NAMED(aclrtMemcpyAsyncWithCondition, NULL, 0, NULL, 0, kind, NULL);
    NAMED(aclrtMemcpy2d, NULL, 0, NULL, 0, 0, 0, kind);
    NAMED(aclrtMemcpy2dAsync, NULL, 0, NULL, 0, 0, 0, kind, NULL);
    NAMED(aclrtMemcpyBatch, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &index);
    NAMED(aclrtMemcpyBatchV2, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0);
    NAMED(aclrtMemcpyBatchAsync, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &index, NULL);
    NAMED(aclrtMemcpyBatchAsyncV2, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL);
    NAMED(aclrtMemcpyAsyncWithOffset, NULL, 0, 0, NULL, 0, 0, kind, NULL);
    NAMED(aclrtGetMemcpyDescSize, kind, &index);
    NAMED(aclrtSetMemcpyDesc, NULL, kind, NULL, NULL, 0, NULL);
    NAMED(aclrtMemcpyAsyncWithDesc, NULL, kind, NULL);
    NAMED(aclrtMemcpyFromSymbol, NULL, 0, NULL, 0, 0, kind);
    NAMED(aclrtMemcpyFromSymbolAsync, NULL, 0, NULL, 0, 0, kind, NULL);
    NAMED(aclrtMemcpyToSymbol, NULL, NULL, 0, 0, kind);
    NAMED(aclrtMemcpyToSymbolAsync, NULL, NULL, 0, 0, kind, NULL);
    NAMED(aclrtMemset, NULL, 0, 0, 0);
    NAMED(aclrtMemsetAsync, NULL, 0, 0, 0, NULL);
    NAMED(aclrtMemsetD32, NULL, 0, 0, 0);
    NAMED(aclrtMemsetD32Async, NULL, 0, 0, 0, NULL);
    printf("FAIL no such function: %s\n", name);
    exit(1);
}

static void each_fails(void)
{
    const char *name = getenv("FAULT_FUNCTION");
    want("the injected code", call_named(name), 123456);
    want("one entry", (long long)ascendclSimCalls(name), 1);
}

static void each_throws(void)
{
    const char *name = getenv("FAULT_FUNCTION");
    int got = -1;
    try {
        call_named(name);
    } catch (int number) {
        got = number;
    }
    want("the injected exception", got, 42);
    want("one entry", (long long)ascendclSimCalls(name), 1);
}

int main()
{
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"throw", throws}, {"throw-always", always_throws}, {"longjmp", jumps}, {"reenter", reenters},
        {"fail", fails},   {"errno", sets_errno},           {"hang", hangs},
        {"each-fails", each_fails}, {"each-throws", each_throws}};
    const char *which = getenv("FAULT_CASE");
    open_world();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (which && strcmp(all[i].name, which) == 0)
            all[i].run();
    int code = finish();
    _exit(code);
}
