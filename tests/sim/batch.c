/*
 * The four batch copies: every check, its code, its place in the order, and
 * whether failIndex is written, cleared or left alone. (Products without
 * batches are in product.c.)
 */
#define _GNU_SOURCE
#include "conform.h"

enum { N = 3, MANY = 4097, ITEM = 256 };
enum form { SYNC, SYNC_V2, ASYNC, ASYNC_V2, FORMS };
static const char *const form_name[] = {"batch", "batch V2", "batch async", "batch async V2"};

/* What becomes of failIndex. */
enum { UNTOUCHED = -1, NO_ITEM = -2 };
static const size_t MARK = 777;

/* The arguments of a call; each case spoils a fresh set. */
struct call {
    void **dsts, **srcs;
    size_t *rooms, *sizes, *first;
    size_t items, ranges;
    aclrtMemcpyBatchAttr *attrs;
    size_t *fail_index;
    aclrtStream on;
};

static void *dsts[MANY], *srcs[MANY];
static size_t rooms[MANY], sizes[MANY], first[8], fail_index;
static aclrtMemcpyBatchAttr attrs[8];

static struct call fresh(uint8_t *to, uint8_t *from)
{
    memset(attrs, 0, sizeof attrs);
    memset(first, 0, sizeof first);
    int up = to == dev || to == dev2;
    for (int k = 0; k < 8; k++) {
        attrs[k].dstLoc.type = up ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
        attrs[k].srcLoc.type = up ? ACL_MEM_LOCATION_TYPE_HOST : ACL_MEM_LOCATION_TYPE_DEVICE;
    }
    for (int i = 0; i < N; i++) {
        dsts[i] = to + i * ITEM;
        srcs[i] = from + i * ITEM;
        rooms[i] = sizes[i] = ITEM;
    }
    fail_index = MARK;
    struct call call = {dsts, srcs, rooms, sizes, first, N, 1, attrs, &fail_index, stream};
    return call;
}

static aclError run(enum form form, const struct call *c)
{
    switch (form) {
    case SYNC:
        return aclrtMemcpyBatch(c->dsts, c->rooms, c->srcs, c->sizes, c->items, c->attrs, c->first, c->ranges,
                                c->fail_index);
    case SYNC_V2:
        return aclrtMemcpyBatchV2(c->dsts, c->rooms, c->srcs, c->sizes, c->items, c->attrs, c->first, c->ranges);
    case ASYNC:
        return aclrtMemcpyBatchAsync(c->dsts, c->rooms, c->srcs, c->sizes, c->items, c->attrs, c->first, c->ranges,
                                     c->fail_index, c->on);
    default:
        return aclrtMemcpyBatchAsyncV2(c->dsts, c->rooms, c->srcs, c->sizes, c->items, c->attrs, c->first, c->ranges,
                                       c->on);
    }
}

static void expect(enum form form, const char *what, const struct call *call, aclError code, long failed)
{
    char name[160];
    snprintf(name, sizeof name, "%s: %s", form_name[form], what);
    want(name, run(form, call), code);
    if (form == SYNC_V2 || form == ASYNC_V2 || call->fail_index == NULL)
        return;
    snprintf(name, sizeof name, "%s: %s: failIndex", form_name[form], what);
    want(name, (long long)fail_index,
         failed == UNTOUCHED ? (long long)MARK : failed == NO_ITEM ? (long long)SIZE_MAX : failed);
}

/* Makes the call `c` with one thing changed. */
#define CASE(what, code, failed, ...)                  \
    do {                                               \
        struct call c = fresh(dev, pin);               \
        __VA_ARGS__;                                   \
        expect(form, what, &c, code, failed);          \
    } while (0)

static void upper_checks(enum form form)
{
    int v1 = form == SYNC || form == ASYNC, async = form >= ASYNC;
    if (v1) {
        CASE("no failIndex", BAD, UNTOUCHED, c.fail_index = NULL);
        CASE("no failIndex, before all sizes zero", BAD, UNTOUCHED, c.fail_index = NULL; memset(sizes, 0, sizeof sizes));
    }
    CASE("no sizes", BAD, UNTOUCHED, c.sizes = NULL);
    CASE("no items", BAD, UNTOUCHED, c.items = 0);
    CASE("all sizes zero, all else wrong", OK, NO_ITEM, memset(sizes, 0, sizeof sizes); c.dsts = NULL; c.srcs = NULL;
         c.rooms = NULL; c.attrs = NULL; c.first = NULL; c.ranges = 0; c.on = no_stream);
    CASE("no dsts", BAD, UNTOUCHED, c.dsts = NULL; c.on = no_stream);
    CASE("no destMaxs", BAD, UNTOUCHED, c.rooms = NULL);
    CASE("no srcs", BAD, UNTOUCHED, c.srcs = NULL);
    CASE("no attrs", BAD, UNTOUCHED, c.attrs = NULL);
    CASE("no attrs, and none wanted", BAD, UNTOUCHED, c.attrs = NULL; c.ranges = 0);
    CASE("no attrsIndexes", BAD, UNTOUCHED, c.first = NULL);
    CASE("an item over its room", BAD, UNTOUCHED, rooms[1] = ITEM - 1);
    CASE("an item over its room, before the ranges", BAD, UNTOUCHED, rooms[1] = 0; c.ranges = 0);
    CASE("a reserved byte", BAD, UNTOUCHED, attrs[0].rsv[15] = 1);
    CASE("a reserved byte of a later range, before the ranges", BAD, UNTOUCHED, attrs[3].rsv[0] = 9; c.ranges = 4);
    CASE("a reserved byte of a range that is not passed", OK, NO_ITEM, attrs[1].rsv[0] = 9);
    if (async) {
        CASE("bad stream", BAD_HANDLE, UNTOUCHED, c.on = no_stream);
        CASE("bad stream, before the ranges", BAD_HANDLE, UNTOUCHED, c.on = no_stream; c.ranges = 0);
        CASE("a reserved byte, before stream", BAD, UNTOUCHED, attrs[0].rsv[0] = 1; c.on = no_stream);
    }
}

static void range_checks(enum form form)
{
    CASE("no ranges", PARAM, NO_ITEM, c.ranges = 0);
    CASE("more ranges than items", PARAM, NO_ITEM, c.ranges = 4; first[1] = 1; first[2] = 2; first[3] = 3);
    CASE("first range does not start at 0", PARAM, NO_ITEM, first[0] = 1);
    CASE("ranges fall", PARAM, NO_ITEM, c.ranges = 3; first[1] = 2; first[2] = 1);
    CASE("ranges stand", PARAM, NO_ITEM, c.ranges = 3; first[1] = 1; first[2] = 1);
    CASE("a range behind the last item", PARAM, NO_ITEM, c.ranges = 2; first[1] = N);
    CASE("ranges, before the items", PARAM, NO_ITEM, first[0] = 1; dsts[0] = pin2);
    CASE("a range an item", OK, NO_ITEM, c.ranges = 3; first[1] = 1; first[2] = 2);
}

static void item_checks(enum form form)
{
    CASE("dst is not where its range says", PARAM, 0, attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST);
    CASE("src is not where its range says", PARAM, 0, attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE);
    CASE("the second range is wrong", PARAM, 2, c.ranges = 2; first[1] = 2;
         attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE);
    CASE("another device", PARAM, 0, attrs[0].dstLoc.id = 1);
    CASE("the id of a host location means nothing", OK, NO_ITEM, attrs[0].srcLoc.id = 12345);
    CASE("the host by its NUMA name", OK, NO_ITEM, attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA);
    CASE("pinned memory called unregistered", PARAM, 0, attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CASE("malloc memory called unregistered", PARAM, 1, c.ranges = 2; first[1] = 1; srcs[1] = page;
         attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    CASE("malloc memory called host", OK, NO_ITEM, srcs[1] = page);
    CASE("an item from host to host", PARAM, 1, c.ranges = 2; first[1] = 1; dsts[1] = pin2;
         attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST);
    CASE("an item from pinned to malloc memory", PARAM, 1, c.ranges = 2; first[1] = 1; dsts[1] = page;
         attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST);
    CASE("an item from device to device", PARAM, 2, c.ranges = 2; first[1] = 2; srcs[2] = dev2;
         attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE);
    CASE("no dst in an item", PARAM, 1, dsts[1] = NULL);
    CASE("no src in an item", PARAM, 2, srcs[2] = NULL);
    MUST(aclrtSynchronizeStream(stream));

    void *gone = device_memory(SIZE);
    MUST(aclrtFree(gone));
    CASE("freed device memory in an item", DRIVER, 1, dsts[1] = gone);
    /* The driver refuses the empty item of a synchronous batch, and names none. */
    CASE("one size zero among others", PARAM, form >= ASYNC ? 1 : NO_ITEM, sizes[1] = 0);
    MUST(aclrtSynchronizeStream(stream));

    if (form >= ASYNC)
        CASE("foreign stream", FOREIGN_STREAM, NO_ITEM, c.on = foreign);
}

/* A synchronous batch is checked as a whole before it moves anything; an
 * asynchronous one has moved the items before the bad one, except on the
 * Ascend950, which checks first too. */
static void partial_copies(enum form form)
{
    char name[96];
    put(dev, SIZE, 1);
    paint(pin, SIZE, 2);
    struct call c = fresh(dev, pin);
    srcs[2] = NULL;
    (void)run(form, &c);
    MUST(aclrtSynchronizeStream(stream));
    int moved = has(dev, ITEM, 2);
    snprintf(name, sizeof name, "%s: items before the bad one", form_name[form]);
    want(name, moved, form >= ASYNC && strcmp(aclrtGetSocName(), "Ascend950") != 0);
}

static void number_of_items(enum form form)
{
    char name[96];
    uint8_t *many = (uint8_t *)pinned_memory(MANY * 16), *target = (uint8_t *)device_memory(MANY * 16);
    paint(many, MANY * 16, 3);
    MUST(aclrtMemset(target, MANY * 16, 0, MANY * 16));
    struct call c = fresh(dev, pin);
    for (int i = 0; i < MANY; i++) {
        dsts[i] = target + i * 16;
        srcs[i] = many + i * 16;
        rooms[i] = sizes[i] = 16;
    }
    c.items = MANY;
    expect(form, "4097 items", &c, form >= ASYNC ? OK : PARAM, NO_ITEM);
    fail_index = MARK;
    c.items = 4096;
    expect(form, "4096 items", &c, OK, NO_ITEM);
    MUST(aclrtSynchronizeStream(stream));
    snprintf(name, sizeof name, "%s: 4096 items: bytes", form_name[form]);
    holds(name, has(target, 4096 * 16, 3));
    MUST(aclrtFree(target));
    MUST(aclrtFreeHost(many));
}

static void data(enum form form)
{
    char name[96];
    static const char *const where[] = {"pinned", "pageable"};
    uint8_t *in[] = {pin, page}, *out[] = {pin2, page2};
    for (int p = 0; p < 2; p++) {
        put(dev, SIZE, 9);
        paint(in[p], SIZE, 4);
        memset(out[p], 0, SIZE);
        struct call up = fresh(dev, in[p]);
        expect(form, "up", &up, OK, NO_ITEM);
        if (p == 0)
            MUST(aclrtSynchronizeStream(stream));
        snprintf(name, sizeof name, "%s: %s up: bytes", form_name[form], where[p]);
        holds(name, has(dev, N * ITEM, 4));
        struct call down = fresh(out[p], dev);
        expect(form, "down", &down, OK, NO_ITEM);
        if (p == 0)
            MUST(aclrtSynchronizeStream(stream));
        snprintf(name, sizeof name, "%s: %s down: bytes", form_name[form], where[p]);
        holds(name, painted(out[p], N * ITEM, 4) && all_bytes(out[p] + N * ITEM, SIZE - N * ITEM, 0));
    }

    /* Both directions in one batch: not documented, not refused. */
    put(dev, SIZE, 5);
    put(dev2, SIZE, 9);
    paint(pin, SIZE, 6);
    memset(pin2, 0, SIZE);
    struct call both = fresh(dev2, pin);
    dsts[0] = pin2;
    srcs[0] = dev;
    attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    attrs[0].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    both.ranges = 2;
    first[1] = 1;
    expect(form, "both directions", &both, OK, NO_ITEM);
    MUST(aclrtSynchronizeStream(stream));
    uint8_t got[SIZE];
    MUST(aclrtMemcpy(got, SIZE, dev2, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    snprintf(name, sizeof name, "%s: both directions: bytes", form_name[form]);
    holds(name, painted(pin2, ITEM, 5) && memcmp(got + ITEM, pin + ITEM, 2 * ITEM) == 0);
}

/* Pinned items wait for the stream; a pageable item makes the call wait. */
static void asynchrony(enum form form)
{
    char name[96];
    struct gate gate;
    put(dev, SIZE, 1);
    paint(pin, SIZE, 7);
    gate_close(&gate, stream);
    struct call c = fresh(dev, pin);
    expect(form, "behind a gate", &c, OK, NO_ITEM);
    snprintf(name, sizeof name, "%s: behind a gate: nothing moved", form_name[form]);
    holds(name, has(dev, SIZE, 1));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    snprintf(name, sizeof name, "%s: gate open: bytes", form_name[form]);
    holds(name, has(dev, N * ITEM, 7));
}

static void without_context(void)
{
    for (enum form form = ASYNC; form < FORMS; form++) {
        CASE("no context", NO_CONTEXT, NO_ITEM, c.on = NULL);
        CASE("no context, a good stream does not help", NO_CONTEXT, NO_ITEM, (void)c);
        CASE("no context: ranges are looked at first", PARAM, NO_ITEM, c.ranges = 0);
        CASE("no context comes before the items", NO_CONTEXT, NO_ITEM, dsts[0] = NULL);
    }
    for (enum form form = SYNC; form <= SYNC_V2; form++)
        CASE("no context is needed", OK, NO_ITEM, (void)c);
}

int main(void)
{
    open_world();
    for (enum form form = SYNC; form < FORMS; form++) {
        upper_checks(form);
        range_checks(form);
        item_checks(form);
        partial_copies(form);
        number_of_items(form);
        data(form);
        if (form >= ASYNC)
            asynchrony(form);
    }
    on_new_thread(without_context);
    return finish();
}
