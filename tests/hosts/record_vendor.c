/* A vendor's library that copies nothing: what it returns follows from the call's first argument, or from the place for
 * the failing index of a batch. Marks in the highest byte: 0x5B fails, 0x5C does not, 0x5D takes 3 seconds. */
#include "record_pattern.h"
#include "acl/acl.h"
#include <time.h>

static int answer(const void *first)
{
    uint64_t id = (uint64_t)first;
    struct timespec time = {.tv_sec = 3};
    switch (id >> 56) {
    case 0x5B:
        return 107000;
    case 0x5C:
        return 0;
    case 0x5D:
        while (nanosleep(&time, &time) != 0)
            ;
        return 0;
    default:
        return code_of(id);
    }
}

#define UNUSED __attribute__((unused))

aclError aclrtMemcpy(void *dst, size_t m UNUSED, const void *s UNUSED, size_t c UNUSED, aclrtMemcpyKind k UNUSED)
{
    return answer(dst);
}

aclError aclrtMemcpyAsync(void *dst, size_t m UNUSED, const void *s UNUSED, size_t c UNUSED, aclrtMemcpyKind k UNUSED,
                          aclrtStream t UNUSED)
{
    return answer(dst);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t d UNUSED, const void *s UNUSED, size_t p UNUSED, size_t w UNUSED,
                            size_t h UNUSED, aclrtMemcpyKind k UNUSED, aclrtStream t UNUSED)
{
    return answer(dst);
}

aclError aclrtMemset(void *dst, size_t m UNUSED, int32_t v UNUSED, size_t c UNUSED)
{
    return answer(dst);
}

aclError aclrtMemsetAsync(void *dst, size_t m UNUSED, int32_t v UNUSED, size_t c UNUSED, aclrtStream t UNUSED)
{
    return answer(dst);
}

aclError aclrtMemcpyBatch(void **d UNUSED, size_t *m UNUSED, void **s UNUSED, size_t *z UNUSED, size_t n UNUSED,
                          aclrtMemcpyBatchAttr *a UNUSED, size_t *i UNUSED, size_t k UNUSED, size_t *fail)
{
    return answer(fail);
}
