/* garbage_cases each | sweep COUNT [bare]
 *
 * Calls every function with bad arguments and prints what came of each call: its code, what it did to *failIndex,
 * errno, the streams and the memory, or the signal that it died of.
 * each:  every argument in turn takes every bad value while the others are good; each case in a child of its own.
 * sweep: COUNT random combinations a function, always the same ones; a child makes cases until it dies of one.
 * bare:  no device was set. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "acl/ascendcl_sim.h"

enum { PAGE = 65536 /* a multiple of every page size */, ROOM = 4096, ITEMS = 4, ARGUMENTS = 10, CHOICES = 16 };

typedef uint64_t word;
typedef int any_function(word, word, word, word, word, word, word, word, word, word);

struct function {
    const char *name;
    any_function *call;
    const char *classes; /* one letter an argument: which pool its bad values come from */
    word good[ARGUMENTS];
};

struct pool {
    char letter;
    int size;
    word values[CHOICES];
};

struct outcome {
    int state; /* 0 not begun, 1 begun, 2 returned, 3 died */
    int signal, code, error, stream, device;
    word fail, sum;
};

static struct function functions[32];
static struct pool pools[32];
static int function_count, pool_count;

/* Shared with the children. */
static struct outcome *outcomes;
static volatile uint64_t *calls; /* how many calls of them were begun, by any thread */

static unsigned char *host, *pinned, *readonly, *zeros, *back;
static void *device, *device2, *nowhere = (void *)16, *hole;
static aclrtStream stream;
static size_t fail_index;
static char symbol, unknown_symbol;

/* `size` bytes that end where nothing may be touched any more. */
static void *guarded(size_t size)
{
    size_t pages = (size + PAGE - 1) / PAGE;
    unsigned char *at = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + PAGE, pages * PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(80);
    return at + (pages + 1) * PAGE - size;
}

static void *array(const void *values, size_t size)
{
    return memcpy(guarded(size), values, size);
}

static void must(int code, const char *what)
{
    if (code != 0) {
        printf("%s returned %d\n", what, code);
        exit(81);
    }
}

static word number(const void *pointer)
{
    return (word)(uintptr_t)pointer;
}

static void add_pool(char letter, int size, const word *values)
{
    struct pool *pool = &pools[pool_count++];
    pool->letter = letter;
    pool->size = size;
    memcpy(pool->values, values, (size_t)size * sizeof *values);
}

#define POOL(letter, ...)                                                              \
    do {                                                                               \
        const word values[] = {__VA_ARGS__};                                           \
        _Static_assert(sizeof values / sizeof *values <= CHOICES, "room");             \
        add_pool(letter, (int)(sizeof values / sizeof *values), values);               \
    } while (0)

static void add_function(const char *name, any_function *call, const char *classes, const word *good)
{
    struct function *function = &functions[function_count++];
    function->name = name;
    function->call = call;
    function->classes = classes;
    memcpy(function->good, good, strlen(classes) * sizeof *good);
}

#define FUNCTION(name, classes, ...)                                                            \
    do {                                                                                        \
        const word good[] = {__VA_ARGS__};                                                      \
        _Static_assert(sizeof good / sizeof *good == sizeof classes - 1, "one value a letter"); \
        add_function(#name, (any_function *)(void (*)(void))name, classes, good);               \
    } while (0)

static const struct pool *pool_of(char letter)
{
    for (int i = 0; i < pool_count; i++)
        if (pools[i].letter == letter)
            return &pools[i];
    _exit(82);
}

static void *pointers(void *a, void *b, void *c, void *d)
{
    void *values[ITEMS] = {a, b, c, d};
    return array(values, sizeof values);
}

static void *sizes(size_t a, size_t b, size_t c, size_t d)
{
    size_t values[ITEMS] = {a, b, c, d};
    return array(values, sizeof values);
}

static void *attributes(aclrtMemLocationType to, aclrtMemLocationType from, uint32_t id, uint8_t reserved)
{
    aclrtMemcpyBatchAttr values[ITEMS];
    memset(values, 0, sizeof values);
    for (int i = 0; i < ITEMS; i++) {
        values[i].dstLoc.type = to;
        values[i].dstLoc.id = id;
        values[i].srcLoc.type = from;
        values[i].rsv[15] = reserved;
    }
    return array(values, sizeof values);
}

static void set_up(int bare)
{
    static void *cells[2];
    void *descriptor = NULL, *cell_room = NULL;
    aclrtStream gone = NULL;
    host = guarded(ROOM);
    pinned = guarded(PAGE);
    back = guarded(ROOM);
    zeros = guarded(ROOM);
    readonly = (unsigned char *)guarded(PAGE);
    hole = (char *)guarded(PAGE) + PAGE;
    memset(readonly, 0xA5, PAGE);
    mprotect(readonly, PAGE, PROT_READ);
    must(aclInit(NULL), "aclInit");
    must(aclrtSetDevice(0), "aclrtSetDevice");
    must(aclrtHostRegisterV2(pinned, PAGE, ACL_HOST_REG_PINNED), "aclrtHostRegisterV2");
    must(aclrtMalloc(&device, ROOM, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMalloc(&device2, ROOM, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMalloc(&descriptor, 4096, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtMalloc(&cell_room, 4096, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    must(aclrtCreateStream(&stream), "aclrtCreateStream");
    must(aclrtCreateStream(&gone), "aclrtCreateStream");
    must(aclrtDestroyStream(gone), "aclrtDestroyStream");
    must(ascendclSimRegisterSymbol(&symbol, 256), "ascendclSimRegisterSymbol");
    cells[0] = device;
    cells[1] = device2;
    must(aclrtMemcpy(cell_room, 64, cells, sizeof cells, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    ++*calls;
    descriptor = (void *)(((uintptr_t)descriptor + 63) & ~(uintptr_t)63);
    /* Not every product has descriptors. */
    aclrtSetMemcpyDesc(descriptor, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, device2, device, 64, NULL);
    ++*calls;
    if (bare)
        must(aclrtResetDevice(0), "aclrtResetDevice");

    char *d = device, *d2 = device2, *p = (char *)pinned, *h = (char *)host;
    void *to = pointers(d, d + 64, d + 128, d + 192);
    void *from = pointers(p, p + 64, p + 128, p + 192);
    void *maxs = sizes(64, 64, 64, 64), *counts = sizes(64, 32, 16, 8), *indexes = sizes(0, 1, 2, 3);
    void *up = attributes(ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST, 0, 0);
    const word nobody = number(nowhere), pit = number(hole), huge = SIZE_MAX, top = huge - 0xffff;

    POOL('p', 0, nobody, pit, number(readonly), number(zeros), number(h), number(h + ROOM - 16), number(p), number(d),
         number(d2), number(d + 8 * ROOM), number(d + 1), top, huge);
    POOL('n', 0, 1, 3, 63, 65, 2048, ROOM, ROOM + 1, huge, huge / 2, (1ull << 32) + 1, huge - 15);
    POOL('k', (word)-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, INT_MAX, (word)INT_MIN);
    POOL('v', 0, (word)-1, 0x12345678);
    POOL('t', 0, number(stream), number(gone), nobody, pit, number(zeros), number(readonly), number(readonly) + 1, top, huge);
    POOL('P', 0, nobody, pit, number(to), number(from), number(to) + 16, number(pointers(NULL, NULL, NULL, NULL)),
         number(pointers(d, nowhere, hole, h)), number(pointers(h, h + 64, h + 128, h + 192)), number(readonly),
         number(pointers(d, d2, p, h)), number(to) + 1);
    POOL('S', 0, nobody, pit, number(maxs) + 16, number(sizes(0, 0, 0, 0)), number(sizes(64, 0, 64, 64)),
         number(sizes(SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX)), number(sizes(1, SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX / 2)),
         number(sizes(65, 64, 64, 64)), number(sizes(0, 0, 0, 1)), number(readonly), number(zeros), number(maxs) + 1);
    POOL('I', 0, nobody, pit, number(sizes(1, 2, 3, 4)), number(sizes(0, 0, 0, 0)), number(sizes(0, 3, 2, 1)),
         number(sizes(0, 9, 10, 11)), number(sizes(0, SIZE_MAX, 1, 2)), number(indexes) + 24, number(indexes) + 32);
    POOL('A', 0, nobody, pit, number(up) + 96, number(up) + 128, number(attributes(0, 1, 0, 0)), number(attributes(1, 0, 7, 0)),
         number(attributes(1, 0, 0, 1)), number(attributes(1, 2, 0, 0)), number(attributes(1, 1, 0, 0)),
         number(attributes(99, 77, 0, 0)), number(attributes(1, 4, 0, 0)));
    POOL('N', 0, 1, 2, 5, 64, 4096, 4097, huge, huge / 2, 1ull << 61, huge / 8 + 1);
    POOL('M', 0, 2, 3, 4, 5, huge, huge / 32 + 2);
    POOL('f', 0, nobody, pit, number(readonly), number(zeros) + 1);
    POOL('c', 0, nobody, pit, number(cells), number((char *)cell_room + 8), number((char *)cell_room + 1), number(zeros),
         number(d + 8 * ROOM), top, huge);
    POOL('D', 0, nobody, pit, number(d), number(d2 + 64), number(d + 1), number(h), number(zeros), top, huge);
    POOL('y', 0, nobody, number(&unknown_symbol), number(&symbol) + 1, huge);
    POOL('g', nobody, number(zeros), huge);

    const word s = number(stream), fi = number(&fail_index);
    const word T = number(to), X = number(maxs), F = number(from), C = number(counts), A = number(up), I = number(indexes);
    const word c1 = number(cell_room), c2 = number((char *)cell_room + 8), y = number(&symbol);
    FUNCTION(aclrtMemcpy, "pnpnk", number(d), 64, number(h), 64, 1);
    FUNCTION(aclrtMemcpyAsync, "pnpnkt", number(d), 64, number(p), 64, 1, s);
    FUNCTION(aclrtMemcpyAsyncWithCondition, "pnpnkt", number(d), 64, number(p), 64, 1, s);
    FUNCTION(aclrtMemcpy2d, "pnpnnnk", number(d), 64, number(h), 64, 16, 4, 1);
    FUNCTION(aclrtMemcpy2dAsync, "pnpnnnkt", number(d), 64, number(p), 64, 16, 4, 1, s);
    FUNCTION(aclrtMemcpyBatch, "PSPSNAIMf", T, X, F, C, ITEMS, A, I, 1, fi);
    FUNCTION(aclrtMemcpyBatchV2, "PSPSNAIM", T, X, F, C, ITEMS, A, I, 1);
    FUNCTION(aclrtMemcpyBatchAsync, "PSPSNAIMft", T, X, F, C, ITEMS, A, I, 1, fi, s);
    FUNCTION(aclrtMemcpyBatchAsyncV2, "PSPSNAIMt", T, X, F, C, ITEMS, A, I, 1, s);
    FUNCTION(aclrtMemcpyAsyncWithOffset, "cnncnnkt", c1, 128, 0, c2, 64, 0, 6, s);
    FUNCTION(aclrtMemcpyAsyncWithDesc, "Dkt", number(descriptor), 6, s);
    FUNCTION(aclrtMemcpyFromSymbol, "pnynnk", number(h), 64, y, 64, 0, 2);
    FUNCTION(aclrtMemcpyFromSymbolAsync, "pnynnkt", number(p), 64, y, 64, 0, 2, s);
    FUNCTION(aclrtMemcpyToSymbol, "ypnnk", y, number(h), 64, 0, 1);
    FUNCTION(aclrtMemcpyToSymbolAsync, "ypnnkt", y, number(p), 64, 0, 1, s);
    FUNCTION(aclrtGetMemcpyDescSize, "kf", 6, fi);
    FUNCTION(aclrtSetMemcpyDesc, "Dkppng", number(descriptor), 6, number(d2), number(d), 64, 0);
    FUNCTION(aclrtMemset, "pnvn", number(d), 64, 7, 64);
    FUNCTION(aclrtMemsetAsync, "pnvnt", number(d), 64, 7, 64, s);
    FUNCTION(aclrtMemsetD32, "pnvn", number(d), 64, 7, 16);
    FUNCTION(aclrtMemsetD32Async, "pnvnt", number(d), 64, 7, 16, s);
}

static word sum_of(const unsigned char *bytes, size_t size, word sum)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static void fill(unsigned char *bytes, size_t size, int seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + (size_t)seed);
}

/* What is on the device, or nothing if there is none. */
static int device_into(void *room)
{
    ++*calls;
    return aclrtMemcpy(room, ROOM, device, ROOM, ACL_MEMCPY_DEVICE_TO_HOST);
}

static void one(const struct function *function, const word *a, struct outcome *outcome)
{
    fill(host, ROOM, 1);
    fill(pinned, ROOM, 2);
    fill(back, ROOM, 3);
    ++*calls;
    aclrtMemcpy(device, ROOM, back, ROOM, ACL_MEMCPY_HOST_TO_DEVICE);
    fail_index = 1234;
    outcome->state = 1;
    ++*calls;
    errno = 99;
    int code = function->call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    outcome->error = errno;
    outcome->code = code;
    outcome->fail = fail_index;
    outcome->stream = aclrtSynchronizeStream(stream);
    aclrtSynchronizeStream(NULL);
    outcome->device = device_into(back);
    word sum = sum_of(host, ROOM, 14695981039346656037u);
    sum = sum_of(pinned, ROOM, sum);
    /* A descriptor holds addresses, which are others in each run. */
    outcome->sum = strstr(function->name, "Desc") ? 0 : sum_of(back, ROOM, sum);
    outcome->state = 2;
}

/* The files of a child that is gone; a sweep leaves too many. */
static void forget(pid_t child)
{
    char prefix[32];
    const char *path = getenv("ACLSHIM_RING_DIR");
    DIR *folder = path ? opendir(path) : NULL;
    int length = snprintf(prefix, sizeof prefix, "aclshim-%d-", (int)child);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, prefix, (size_t)length) == 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* The arguments of a case of a sweep: each is bad once in four times. */
static void draw_arguments(const struct function *function, int number_of_case, word *a)
{
    random_state = (uint64_t)number_of_case * 2654435761u + (uint64_t)(function - functions) * 97 + 20240229;
    draw(2);
    for (int i = 0; function->classes[i]; i++)
        if (draw(4) == 0) {
            const struct pool *pool = pool_of(function->classes[i]);
            a[i] = pool->values[draw((uint32_t)pool->size)];
        }
}

/* The arguments of case `number_of_case` of the systematic run; 0 if there are no more. */
static int bad_argument(const struct function *function, int number_of_case, word *a)
{
    if (number_of_case-- == 0)
        return 1; /* all good */
    for (int i = 0; function->classes[i]; i++) {
        const struct pool *pool = pool_of(function->classes[i]);
        if (number_of_case < pool->size) {
            a[i] = pool->values[number_of_case];
            return 1;
        }
        number_of_case -= pool->size;
    }
    return 0;
}

static void tell(const struct function *function, int count)
{
    for (int i = 0; i < count; i++) {
        const struct outcome *o = &outcomes[i];
        if (o->state == 2)
            printf("%s %d: code %d fail %lld errno %d stream %d device %d sum %llx\n", function->name, i, o->code,
                   (long long)o->fail, o->error, o->stream, o->device, (unsigned long long)o->sum);
        else
            printf("%s %d: signal %d\n", function->name, i, o->signal);
    }
}

/* Runs the cases from `first` to `last` in a child; the first one that it did not survive, or `last`. */
static int in_child(const struct function *function, int first, int last, int sweep)
{
    int status = 0, at = first;
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
        for (int i = first; i < last; i++) {
            word a[ARGUMENTS];
            memcpy(a, function->good, sizeof a);
            if (sweep)
                draw_arguments(function, i, a);
            else
                bad_argument(function, i, a);
            one(function, a, &outcomes[i]);
        }
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        exit(83);
    if (sweep)
        forget(child);
    while (at < last && outcomes[at].state == 2)
        at++;
    if (at < last) {
        outcomes[at].state = 3;
        outcomes[at].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
    }
    return at;
}

int main(int argc, char **argv)
{
    int sweep = argc > 1 && !strcmp(argv[1], "sweep");
    int count = sweep && argc > 2 ? atoi(argv[2]) : 0;
    int bare = !strcmp(argv[argc - 1], "bare");
    size_t room = (size_t)(count > 1000 ? count : 1000) * sizeof *outcomes;
    outcomes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    calls = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    set_up(bare);
    fflush(stdout);
    for (int f = 0; f < function_count; f++) {
        const struct function *function = &functions[f];
        word unused[ARGUMENTS];
        int cases = count;
        memset(outcomes, 0, room);
        while (!sweep && bad_argument(function, cases, unused))
            cases++;
        for (int i = 0; i < cases; i++) {
            int died_at = in_child(function, i, sweep ? cases : i + 1, sweep);
            i = sweep ? died_at : i;
        }
        tell(function, cases);
        fflush(stdout);
    }
    FILE *own = fopen("own", "w");
    fprintf(own, "%llu\n", (unsigned long long)*calls);
    fclose(own);
    return 0;
}
