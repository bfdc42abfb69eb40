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

int main()
{
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"throw", throws}, {"throw-always", always_throws}, {"longjmp", jumps}, {"reenter", reenters},
        {"fail", fails},   {"errno", sets_errno},           {"hang", hangs}};
    const char *which = getenv("FAULT_CASE");
    open_world();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (which && strcmp(all[i].name, which) == 0)
            all[i].run();
    int code = finish();
    _exit(code);
}
