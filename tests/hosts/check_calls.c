/* check_calls [entered]: one bad call of many kinds, each from its own place. `entered` prints how often the vendor was
 * entered for each, which is nothing that a program could see of it otherwise. */
#include "check_host.h"

static int shows_entered;

/* Each case in order: its name, what it returned, what stands in failIndex. */
#define SHOW(name, function, call)                                                             \
    do {                                                                                       \
        unsigned long long before_call = entered(#function);                                   \
        batch_fail = MARK;                                                                     \
        int code = call;                                                                       \
        unsigned long long times = entered(#function) - before_call;                           \
        printf("%s: %d, failIndex %zd", name, code, (ssize_t)batch_fail);                      \
        printf(shows_entered ? ", entered %llu\n" : "\n", times);                              \
    } while (0)

#define LINEAR(name, ...) SHOW(name, aclrtMemcpy, aclrtMemcpy(__VA_ARGS__))
#define ASYNC(name, ...) SHOW(name, aclrtMemcpyAsync, aclrtMemcpyAsync(__VA_ARGS__))
#define ROWS(name, ...) SHOW(name, aclrtMemcpy2d, aclrtMemcpy2d(__VA_ARGS__))
#define OFFSET(name, ...) SHOW(name, aclrtMemcpyAsyncWithOffset, aclrtMemcpyAsyncWithOffset(__VA_ARGS__))
#define DESC(name, ...) SHOW(name, aclrtSetMemcpyDesc, aclrtSetMemcpyDesc(__VA_ARGS__))
#define ITEMS_NOW(name, spoil)                      \
    do {                                            \
        struct batch b = fresh();                   \
        spoil;                                      \
        SHOW(name, aclrtMemcpyBatch, BATCH(b));     \
    } while (0)

static uint8_t variable[64];

static void linear(void)
{
    LINEAR("null", NULL, 64, pin, 64, H2D);
    LINEAR("room", dev, 63, pin, 64, H2D);
    LINEAR("no kind", dev, 64, pin, 64, (aclrtMemcpyKind)8);
    LINEAR("onto itself", dev, 64, dev, 64, D2D);
    LINEAR("overlap", dev + 32, 64, dev, 64, D2D);
    ASYNC("kind of others", dev, 64, pin, 64, INNER, stream);
    ASYNC("misaligned", dev + 1, 64, dev + 1024, 64, D2D, stream);
    ASYNC("host to host", pin, 64, pin2, 64, H2H, stream);
    SHOW("deprecated", aclrtMemcpyAsyncWithCondition, aclrtMemcpyAsyncWithCondition(dev, 64, pin, 64, H2D, stream));
}

static void rows(void)
{
    ROWS("width", dev, 64, pin, 64, 65, 4, H2D);
    ROWS("wide", dev, 5000001, pin, 5000001, 5000001, 1, H2D);
    ROWS("high", dev, 64, pin, 64, 1, 5242881, H2D);
    ROWS("rows inside", dev, 64, dev2, 64, 64, 4, D2D);
    ROWS("rows that wrap", dev, (size_t)1 << 62, pin, 64, 64, 8, H2D);
    ROWS("rows by default", dev, 64, pin, 64, 64, 4, ACL_MEMCPY_DEFAULT);
}

static void batches(void)
{
    ITEMS_NOW("null array", b.srcs = NULL);
    ITEMS_NOW("no index", b.fail = NULL);
    ITEMS_NOW("no items", b.items = 0);
    ITEMS_NOW("room of item 1", b.rooms[1] = ITEM - 1);
    ITEMS_NOW("reserved bytes", (b.attrs[1].rsv[3] = 1, b.ranges = 2, b.first[1] = 1));
    ITEMS_NOW("no attributes", b.ranges = 0);
    ITEMS_NOW("attributes over", (b.items = 1, b.ranges = 2, b.first[1] = 1));
    ITEMS_NOW("too many", b.items = MANY);
    ITEMS_NOW("first index", b.first[0] = 1);
    ITEMS_NOW("index order", (b.ranges = 3, b.first[1] = 2, b.first[2] = 2));
    ITEMS_NOW("index range", (b.ranges = 2, b.first[1] = ITEMS));
    ITEMS_NOW("empty item", b.sizes[2] = 0);
    ITEMS_NOW("unregistered", b.attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    ITEMS_NOW("one place", b.attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE);
    ITEMS_NOW("one destination twice", b.dsts[1] = b.dsts[0]);
    ITEMS_NOW("null item", b.dsts[1] = NULL);
    ITEMS_NOW("both ways", (b.items = b.ranges = 2, b.first[1] = 1, b.dsts[1] = pin2, b.srcs[1] = dev2,
                            b.attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST,
                            b.attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE));
    struct batch b = fresh();
    b.srcs[2] = NULL;
    SHOW("null item, on a stream", aclrtMemcpyBatchAsync, BATCH_ASYNC(b, stream));
    b = fresh();
    b.first[0] = 1;
    SHOW("first index, on a stream", aclrtMemcpyBatchAsync, BATCH_ASYNC(b, stream));
    b = fresh();
    b.rooms[2] = 0;
    SHOW("room, V2", aclrtMemcpyBatchV2, BATCH_V2(b));
    SHOW("room, on a stream", aclrtMemcpyBatchAsync, BATCH_ASYNC(b, stream));
    SHOW("room, on a stream, V2", aclrtMemcpyBatchAsyncV2, BATCH_ASYNC_V2(b, stream));
}

static void others(void)
{
    void **table = (void **)device_memory(64);
    const void **from = (const void **)(table + 1);
    OFFSET("long", (void **)table, (size_t)8 << 30, 0, from, ((size_t)4 << 30) + 1, 0, INNER, stream);
    OFFSET("far", (void **)table, (size_t)1 << 49, (size_t)1 << 48, from, 64, 0, INNER, stream);
    OFFSET("offset and count", (void **)table, 64, 1, from, 64, 0, INNER, stream);
    DESC("descriptor off its line", dev + 8, INNER, dev2, dev2 + 64, 64, NULL);
    DESC("config", dev, INNER, dev2, dev2 + 64, 64, dev);
    DESC("nothing", dev, INNER, dev2, dev2 + 64, 0, NULL);
    DESC("4 GiB, stored as 0", dev, INNER, dev2, dev2 + 64, (size_t)4 << 30, NULL);
    SHOW("descriptor without stream", aclrtMemcpyAsyncWithDesc, aclrtMemcpyAsyncWithDesc(dev, INNER, NULL));
    SHOW("no symbol", aclrtMemcpyFromSymbol, aclrtMemcpyFromSymbol(pin, 64, NULL, 64, 0, D2H));
    SHOW("symbol's room", aclrtMemcpyFromSymbol, aclrtMemcpyFromSymbol(pin, 63, variable, 64, 0, D2H));
    SHOW("symbol's offset", aclrtMemcpyFromSymbol, aclrtMemcpyFromSymbol(pin, 64, variable, 64, SIZE_MAX - 7, D2H));
    SHOW("symbol's kind", aclrtMemcpyToSymbol, aclrtMemcpyToSymbol(variable, pin, 64, 0, D2H));
    SHOW("set too much", aclrtMemset, aclrtMemset(dev, 63, 0, 64));
    SHOW("odd words", aclrtMemsetD32, aclrtMemsetD32(dev + 2, 64, 7, 4));
}

int main(int argc, char **argv)
{
    (void)argv;
    shows_entered = argc > 1;
    open_world();
    ascendclSimRegisterSymbol(variable, sizeof variable);
    printf("good: %d\n", good_copy());
    linear();
    rows();
    batches();
    others();
    MUST(aclrtSynchronizeStream(stream));
    return 7;
}
