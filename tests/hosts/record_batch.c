/* record_batch: batches of many sizes, the last of which fails; and one copy that takes 3 seconds if there is an argument.
 * The number of a batch is what it has for a failing index, behind the mark. */
#include "record_host.h"

enum { MOST = 300 };

int main(int argc, char **argv)
{
    begin();
    static const size_t counts[] = {1, 2, 3, 63, 64, 65, 100, 300, 0, 5, 7};
    enum { BATCHES = sizeof counts / sizeof *counts };
    static void *dsts[MOST], *srcs[MOST];
    static size_t rooms[MOST], sizes[MOST], indexes[12];
    static aclrtMemcpyBatchAttr attributes[12];
    (void)argv;
    take(0);
    if (argc > 1) {
        truth->lanes[0].begun++;
        printf("slow %d\n", aclrtMemcpy((void *)(0x5Dull << 56), 8, NULL, 8, ACL_MEMCPY_HOST_TO_HOST));
        truth->lanes[0].ended++;
        return 0;
    }
    for (size_t i = 0; i < MOST; i++) {
        dsts[i] = (void *)mix(i, 1);
        srcs[i] = (void *)mix(i, 2);
        sizes[i] = 1 + (mix(i, 3) & 0xffffff);
        rooms[i] = sizes[i] + i;
    }
    for (uint32_t i = 0; i < 12; i++) {
        attributes[i].dstLoc.id = i;
        attributes[i].dstLoc.type = (aclrtMemLocationType)1;
        attributes[i].srcLoc.id = 100 + i;
        indexes[i] = 5 * i;
    }
    for (size_t i = 0; i < BATCHES; i++) {
        uint64_t mark = i + 1 == BATCHES ? 0x5B : 0x5C;
        truth->lanes[0].begun++;
        printf("%zu: %d\n", counts[i],
               aclrtMemcpyBatch(dsts, rooms, srcs, sizes, counts[i], attributes, indexes, i + 1, (size_t *)(mark << 56 | i)));
        truth->lanes[0].ended++;
    }
    truth->rest[0] = (uint64_t)dsts;
    truth->rest[1] = (uint64_t)sizes;
    return 0;
}
