/* check_malformed [warm]: batches whose arrays end where nothing can be read any more, behind what the vendor looks at.
 * Each by all four functions. `warm`: after a copy, so that it is known what the vendor is. */
#include "check_host.h"
#include <sys/mman.h>

enum form { NOW, NOW_V2, ON_STREAM, ON_STREAM_V2, FORMS };

static void *nowhere; /* not to be read */

/* This many bytes that end at a page which cannot be read. */
static void *at_the_edge(const void *from, size_t bytes)
{
    const size_t room = 65536; /* a multiple of every page size */
    char *pages = (char *)mmap(NULL, 2 * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + room, room, PROT_NONE) != 0)
        exit(2);
    nowhere = pages + room;
    return memcpy(pages + room - bytes, from, bytes);
}

/* The same one byte further in front. */
static void *off_by_one(const void *from, size_t bytes)
{
    return memcpy((char *)at_the_edge(from, bytes) - 1, from, bytes);
}

static aclError call(enum form form, struct batch b, aclrtStream on)
{
    switch (form) {
    case NOW:
        return BATCH(b);
    case NOW_V2:
        return BATCH_V2(b);
    case ON_STREAM:
        return BATCH_ASYNC(b, on);
    default:
        return BATCH_ASYNC_V2(b, on);
    }
}

/* The first `n` entries of an array, at the edge. */
#define CUT(array, n) (b.array = at_the_edge(b.array, (n) * sizeof *b.array))
#define GONE(array) (b.array = nowhere)
#define ODD(array) (b.array = off_by_one(b.array, 8 * sizeof *b.array))
/* What the vendor comes to after everything that it checks first. */
#define GONE_ITEMS (GONE(dsts), GONE(srcs))
#define GONE_REST (GONE_ITEMS, GONE(attrs), GONE(first))

#define TRY(name, forms, on, spoil)                                                                        \
    for (int form = 0; form < FORMS; form++) {                                                             \
        if (!(forms >> form & 1))                                                                          \
            continue;                                                                                      \
        struct batch b = fresh();                                                                          \
        spoil;                                                                                             \
        aclError code = call((enum form)form, b, on);                                                      \
        printf("%s %d: %d, failIndex %zd\n", name, form, code, (ssize_t)batch_fail);                       \
        fflush(stdout);                                                                                    \
    }

enum { ALL = 15, NOWS = 3, STREAMS = 12, INDEXED = 5 };

static void counts(void)
{
    TRY("no items", ALL, stream, (b.items = 0, GONE(sizes), GONE(rooms), GONE_REST));
    TRY("no index", INDEXED, stream, (b.fail = NULL, GONE(sizes), GONE(rooms), GONE_REST));
    TRY("first room", ALL, stream, (b.rooms[0] = 1, b.items = 1000, CUT(rooms, 1), CUT(sizes, 1), GONE_REST));
    TRY("index nowhere", INDEXED, stream, (b.rooms[0] = 1, GONE(fail), GONE_REST));
    TRY("second room", ALL, stream,
        (b.sizes[0] = 0, b.rooms[1] = 1, b.items = SIZE_MAX, CUT(rooms, 2), CUT(sizes, 2), GONE_REST));
    TRY("most items", ALL, stream, (b.rooms[0] = 1, b.items = SIZE_MAX, CUT(rooms, 1), CUT(sizes, 1), GONE_REST));
    TRY("more items than can be", ALL, stream,
        (b.rooms[0] = 1, b.items = SIZE_MAX / 8, CUT(rooms, 1), CUT(sizes, 1), GONE_REST));
    TRY("too many", NOWS, stream, (b.items = MANY, GONE_ITEMS, GONE(first)));
    TRY("nothing", ALL, stream, (memset(b.sizes, 0, ITEMS * sizeof *b.sizes), CUT(sizes, ITEMS), b.items = ITEMS));
}

static void nulls(void)
{
    TRY("null sizes", ALL, stream, (GONE(rooms), GONE_REST, b.sizes = NULL));
    TRY("null destinations", ALL, stream, (CUT(sizes, 1), b.items = 1000, GONE(rooms), GONE_REST, b.dsts = NULL));
    TRY("null rooms", ALL, stream, (CUT(sizes, 1), b.items = 1000, GONE_REST, b.rooms = NULL));
    TRY("null sources", ALL, stream, (CUT(sizes, 1), b.items = 1000, GONE(rooms), GONE_REST, b.srcs = NULL));
    TRY("null attributes", ALL, stream, (CUT(sizes, 1), b.items = 1000, GONE(rooms), GONE_REST, b.attrs = NULL));
    TRY("null indexes", ALL, stream, (CUT(sizes, 1), b.items = 1000, GONE(rooms), GONE_REST, b.first = NULL));
    TRY("all null", ALL, stream,
        (b.dsts = NULL, b.srcs = NULL, b.rooms = NULL, b.sizes = NULL, b.attrs = NULL, b.first = NULL));
}

static void attributes(void)
{
    TRY("no attributes", ALL, stream, (b.ranges = 0, CUT(sizes, ITEMS), CUT(rooms, ITEMS), GONE_REST));
    TRY("reserved", ALL, stream, (b.ranges = 3, b.attrs[0].rsv[15] = 1, CUT(attrs, 1), GONE_ITEMS, GONE(first)));
    TRY("most attributes", ALL, stream,
        (b.ranges = SIZE_MAX, b.attrs[0].rsv[0] = 1, CUT(attrs, 1), GONE_ITEMS, GONE(first)));
    TRY("second of most", ALL, stream,
        (b.ranges = SIZE_MAX / 64, b.attrs[1].rsv[0] = 1, CUT(attrs, 2), GONE_ITEMS, GONE(first)));
    TRY("attributes over", ALL, stream, (b.ranges = ITEMS + 1, CUT(attrs, ITEMS + 1), GONE_ITEMS, GONE(first)));
    TRY("first index", ALL, stream, (b.ranges = 3, b.first[0] = 1, CUT(attrs, 3), CUT(first, 1), GONE_ITEMS));
    TRY("index order", ALL, stream, (b.ranges = 3, CUT(attrs, 3), CUT(first, 2), GONE_ITEMS));
    TRY("index range", ALL, stream, (b.ranges = 3, b.first[1] = ITEMS, CUT(attrs, 3), CUT(first, 2), GONE_ITEMS));
    TRY("no stream", STREAMS, no_stream, (CUT(attrs, 1), GONE_ITEMS, GONE(first)));
    TRY("empty first item", STREAMS, stream,
        (b.sizes[0] = 0, CUT(sizes, ITEMS), CUT(attrs, 1), CUT(first, 1), GONE_ITEMS));
}

static void odd(void)
{
    TRY("odd", ALL, stream, (ODD(sizes), ODD(rooms), ODD(dsts), ODD(srcs), ODD(attrs), ODD(first)));
    TRY("odd room", ALL, stream, (b.rooms[1] = 0, ODD(sizes), ODD(rooms), GONE_REST));
    TRY("odd indexes", ALL, stream, (b.ranges = 2, b.first[1] = 9, ODD(first)));
    static char place[24];
    TRY("odd index", INDEXED, stream, (b.fail = (size_t *)(place + 3), b.ranges = 0, memset(place, 7, sizeof place)));
    for (size_t i = 0; i < sizeof place; i++)
        printf("%d ", place[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    (void)argv;
    open_world();
    at_the_edge("", 0);
    if (argc > 1)
        printf("good: %d\n", good_copy());
    counts();
    nulls();
    attributes();
    odd();
    MUST(aclrtSynchronizeStream(stream));
    return 0;
}
