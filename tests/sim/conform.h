/*
 * The frame of the conformance programs: named cases, one line each, and the
 * buffers, streams and threads that most of them need. A program prints
 * "ok NAME" or "FAIL NAME: got X, want Y" and exits non-zero on any FAIL.
 *
 * Define _GNU_SOURCE before including this.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "acl/ascendcl_sim.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* the vendor's header marks some */
#endif

/* The codes that the cases expect, as the facts write them. */
enum {
    OK = 0,
    BAD = 100000,          /* upper layer: invalid parameter */
    PARAM = 107000,        /* runtime: invalid parameter */
    NO_DEVICE_ID = 107001, /* no such device */
    NO_CONTEXT = 107002,
    FOREIGN_STREAM = 107003,
    BAD_HANDLE = 107017,
    STREAM_CAPTURED = 107027,
    CAPTURE_MODE = 107030,
    CAPTURE_BLOCK = 107041,
    BAD_SYMBOL = 107043,
    UNSUPPORTED = 207000,
    NO_MEMORY = 207001,
    FAILURE = 500001,
    STREAM_TIMEOUT = 507046,
    EVENT_TIMEOUT = 507047,
    DRIVER = 507899
};

/* ---- Cases ---- */

static int failures, cases;
static const char *volatile running = "start";

static inline void want(const char *name, long long got, long long expected)
{
    cases++;
    running = name;
    if (got == expected) {
        printf("ok %s\n", name);
    } else {
        failures++;
        printf("FAIL %s: got %lld, want %lld\n", name, got, expected);
    }
    fflush(stdout);
}

/* A condition that must hold; got and want are then 0 and 1. */
static inline void holds(const char *name, int condition)
{
    want(name, condition != 0, 1);
}

/* What a case needs to be a case at all. */
#define MUST(call)                                                                     \
    do {                                                                               \
        long long must_code = (long long)(call);                                       \
        if (must_code != 0) {                                                          \
            printf("FAIL set-up, line %d: %s: got %lld, want 0\n", __LINE__, #call, must_code); \
            fflush(stdout);                                                            \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

static inline void conform_hung(int signal_number)
{
    (void)signal_number;
    static const char text[] = "FAIL hung after: ";
    ssize_t ignored = write(1, text, sizeof text - 1);
    ignored = write(1, running, strlen(running));
    ignored = write(1, "\n", 1);
    (void)ignored;
    _exit(3);
}

/* A call that never returns must end the test, not stop it. */
static inline void watch(void)
{
    signal(SIGALRM, conform_hung);
    alarm(600);
}

static inline int finish(void)
{
    printf("%d cases, %d failed\n", cases, failures);
    fflush(stdout);
    return failures != 0 || cases == 0;
}

/* ---- Buffers ---- */

enum { SIZE = 4096 };

static inline void paint(void *buffer, size_t size, unsigned seed)
{
    uint8_t *bytes = (uint8_t *)buffer;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(seed * 61 + i * 7 + i / 256);
}

static inline int painted(const void *buffer, size_t size, unsigned seed)
{
    const uint8_t *bytes = (const uint8_t *)buffer;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (uint8_t)(seed * 61 + i * 7 + i / 256))
            return 0;
    return 1;
}

static inline int all_bytes(const void *buffer, size_t size, int value)
{
    const uint8_t *bytes = (const uint8_t *)buffer;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (uint8_t)value)
            return 0;
    return 1;
}

/* ---- The world of a case ---- */

static uint8_t *dev, *dev2;   /* device 0 */
static uint8_t *pin, *pin2;   /* pinned */
static uint8_t *page, *page2; /* malloc */
static aclrtStream stream;    /* of the current context */
static aclrtStream foreign;   /* of another context of device 0 */
static aclrtContext home;     /* the current context */

/* Memory that is no stream: the handle check looks into it and says 107017. */
static uint64_t no_stream_memory[512];
static const aclrtStream no_stream = no_stream_memory;

static inline void *device_memory(size_t size)
{
    void *p = NULL;
    MUST(aclrtMalloc(&p, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return p;
}

static inline void *pinned_memory(size_t size)
{
    void *p = NULL;
    MUST(aclrtMallocHost(&p, size));
    return p;
}

static inline void open_world(void)
{
    watch();
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(aclrtGetCurrentContext(&home));
    dev = (uint8_t *)device_memory(SIZE);
    dev2 = (uint8_t *)device_memory(SIZE);
    pin = (uint8_t *)pinned_memory(SIZE);
    pin2 = (uint8_t *)pinned_memory(SIZE);
    page = (uint8_t *)malloc(SIZE);
    page2 = (uint8_t *)malloc(SIZE);
    MUST(aclrtCreateStream(&stream));

    aclrtContext other;
    MUST(aclrtCreateContext(&other, 0));
    MUST(aclrtSetCurrentContext(other));
    MUST(aclrtCreateStream(&foreign));
    MUST(aclrtSetCurrentContext(home));
}

/* Puts a pattern into any memory, device or host. */
static inline void put(void *place, size_t size, unsigned seed)
{
    uint8_t *bytes = (uint8_t *)malloc(size);
    paint(bytes, size, seed);
    MUST(aclrtMemcpy(place, size, bytes, size, ACL_MEMCPY_DEFAULT));
    free(bytes);
}

static inline int has(const void *place, size_t size, unsigned seed)
{
    uint8_t *bytes = (uint8_t *)malloc(size);
    memset(bytes, 0xA5, size);
    MUST(aclrtMemcpy(bytes, size, place, size, ACL_MEMCPY_DEFAULT));
    int good = painted(bytes, size, seed);
    free(bytes);
    return good;
}

/* ---- Threads ---- */

static inline void *conform_thread(void *function)
{
    void (*run)(void);
    memcpy(&run, function, sizeof run);
    run();
    return NULL;
}

/* Runs `function` on a new thread: one without device and context. */
static inline void on_new_thread(void (*function)(void))
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, conform_thread, (void *)&function));
    MUST(pthread_join(thread, NULL));
}

/* A gate stops a stream: what is queued behind it has not run, however slow or
 * fast the machine, until it is opened. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int open, reached;
};
#define GATE_CLOSED {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0}

static inline void gate_wait(void *argument)
{
    struct gate *gate = (struct gate *)argument;
    pthread_mutex_lock(&gate->lock);
    gate->reached = 1;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static inline void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = 1;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* Queues the gate and returns when the stream stands before it. */
static inline void gate_close(struct gate *gate, aclrtStream on)
{
    struct gate closed = GATE_CLOSED;
    *gate = closed;
    MUST(aclrtLaunchHostFunc(on, gate_wait, gate));
    pthread_mutex_lock(&gate->lock);
    while (!gate->reached)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static inline int stream_is_ready(aclrtStream which)
{
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    MUST(aclrtStreamQuery(which, &status));
    return status == ACL_STREAM_STATUS_COMPLETE;
}

#endif
