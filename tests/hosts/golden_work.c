/* golden_work [CHANGE]: what a program of this platform does in small: two kinds of workers beside the main thread, with
 * streams, batches, buffers on heap, stack and device, memory that is freed and used again, and calls that fail. CHANGE is
 * one thing done otherwise: add, drop, enlarge, misalign, turn, stream, batch. With SCOPE_GOLDEN in the environment all of it
 * is in a scope whose golden file that is. */
#define _GNU_SOURCE
#include <acl/acl.h>
#include <aclshim.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const aclrtMemcpyKind H2D = ACL_MEMCPY_HOST_TO_DEVICE, D2H = ACL_MEMCPY_DEVICE_TO_HOST,
                             D2D = ACL_MEMCPY_DEVICE_TO_DEVICE;

enum { SIZE = 4096, ITEMS = 5, UPLOADERS = 3, READERS = 2 };

static const char *change = "";
static pthread_barrier_t all;

static int is(const char *what) { return strcmp(change, what) == 0; }

static void check(aclError code)
{
    if (code != 0) {
        fprintf(stderr, "code %d\n", code);
        exit(3);
    }
}

static void *on_device(size_t size)
{
    void *memory = NULL;
    check(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return memory;
}

/* Blocks of a size that depends on who runs first, so that heaps differ from run to run. */
static void *noise(void *seed) { return malloc(64 + ((uintptr_t)seed ^ (uintptr_t)pthread_self()) % 4096); }

static void *upload(void *seed)
{
    static aclrtMemcpyBatchAttr to_device = {{0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0, ACL_MEM_LOCATION_TYPE_HOST}, {0}};
    void *disorder = noise(seed);
    check(aclrtSetDevice(0));
    pthread_barrier_wait(&all);
    aclrtStream streams[2];
    check(aclrtCreateStream(&streams[0]));
    check(aclrtCreateStream(&streams[1]));
    char *memory = on_device(ITEMS * SIZE);
    void *pinned = NULL;
    check(aclrtMallocHost(&pinned, ITEMS * SIZE));
    memset(pinned, 7, ITEMS * SIZE);
    for (int i = 0; i < ITEMS; i++)
        check(aclrtMemcpyAsync(memory + i * SIZE, SIZE, (char *)pinned + i * SIZE, SIZE, H2D, streams[i % 2]));
    void *dsts[ITEMS], *srcs[ITEMS];
    size_t rooms[ITEMS], sizes[ITEMS], first = 0, failed = SIZE_MAX;
    for (int i = 0; i < ITEMS; i++) {
        dsts[i] = memory + i * SIZE;
        srcs[i] = (char *)pinned + (ITEMS - 1 - i) * SIZE;
        rooms[i] = SIZE;
        sizes[i] = 64 * (i + 1);
    }
    if (is("batch"))
        sizes[2] = 1024;
    check(aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, ITEMS, &to_device, &first, 1, &failed, streams[1]));
    check(aclrtSynchronizeStream(streams[0]));
    check(aclrtSynchronizeStream(streams[1]));
    check(aclrtFreeHost(pinned));
    check(aclrtFree(memory));
    free(disorder);
    return NULL;
}

static void *read_back(void *seed)
{
    void *disorder = noise(seed);
    char on_stack[512];
    check(aclrtSetDevice(0));
    pthread_barrier_wait(&all);
    char *memory = on_device(SIZE);
    char *heap = calloc(1, SIZE);
    check(aclrtMemset(memory, SIZE, 1, SIZE));
    check(aclrtMemcpy(on_stack, sizeof on_stack, memory + 128, sizeof on_stack, D2H));
    check(aclrtMemcpy(heap, SIZE, memory, SIZE, D2H));
    check(aclrtMemcpy(heap + 64, SIZE - 64, memory + 64, 64, D2H));
    free(heap);
    check(aclrtFree(memory));
    free(disorder);
    return NULL;
}

static void more_stack(char *memory)
{
    char buffer[256] = {0};
    check(aclrtMemcpy(memory, SIZE, buffer, sizeof buffer, H2D));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        change = argv[1];
    const char *golden = getenv("SCOPE_GOLDEN");
    aclshim_scope scope = golden ? aclshim_scope_begin("all of it", ACLSHIM_WHOLE_PROCESS) : 0;
    if (golden && (scope <= 0 || aclshim_expect_golden(scope, golden) != 0))
        return 5;
    check(aclInit(NULL));
    check(aclrtSetDevice(0));
    pthread_barrier_init(&all, NULL, UPLOADERS + READERS);
    char *memory = on_device(2 * SIZE), *host = malloc(SIZE);
    memset(host, 3, SIZE);
    check(aclrtMemcpy(memory, SIZE, host, SIZE, H2D));
    if (is("add"))
        check(aclrtMemcpy(memory, SIZE, host, 64, H2D));
    if (!is("drop"))
        check(aclrtMemset(memory + SIZE, SIZE, 0, SIZE));
    check(aclrtMemcpy(memory + 1024 + (is("misalign") ? 1 : 0), 1024, host, is("enlarge") ? 512 : 256, H2D));
    if (is("turn"))
        check(aclrtMemcpy(host, SIZE, memory, 128, D2H));
    else
        check(aclrtMemcpy(memory, SIZE, host, 128, H2D));
    more_stack(memory);
    for (int i = 0; i < 20; i++)
        check(aclrtMemcpy(host, SIZE, memory, SIZE, D2H));
    aclrtStream stream = NULL;
    if (is("stream"))
        check(aclrtCreateStream(&stream));
    check(aclrtMemcpyAsync(memory, SIZE, memory + SIZE, 64, D2D, stream));
    check(aclrtSynchronizeStream(stream));
    if (aclrtMemcpy(memory, 16, host, SIZE, H2D) == 0 || aclrtMemcpy(NULL, SIZE, host, SIZE, H2D) == 0)
        return 4;
    free(host);
    /* Freed and used again, as often as not at the same place. */
    for (int i = 0; i < 3; i++) {
        host = malloc(SIZE);
        memset(host, i, SIZE);
        check(aclrtMemcpy(memory, SIZE, host, SIZE, H2D));
        free(host);
    }
    pthread_t threads[UPLOADERS + READERS];
    for (uintptr_t i = 0; i < UPLOADERS + READERS; i++)
        pthread_create(&threads[i], NULL, i % 2 == 0 ? upload : read_back, (void *)(i * 64));
    for (int i = 0; i < UPLOADERS + READERS; i++)
        pthread_join(threads[i], NULL);
    check(aclrtFree(memory));
    if (golden && aclshim_scope_end(scope) != 0)
        return 6;
    printf("done\n");
    return 0;
}
