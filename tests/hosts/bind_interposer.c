/*
 * Another library that stands in front of the same functions and passes each
 * call on: to the next in line (BIND_NEXT), or to what it finds in the vendor's
 * library by lookup. Says at the end how often it was called.
 */
#define BIND_PLUGIN
#include "bind_calls.h"

static unsigned entered;

#ifdef BIND_NEXT
#define BEHIND(name) must(dlsym(RTLD_NEXT, #name), #name)
#else
#define BEHIND(name) must(dlsym(must(dlopen("libascendcl.so", RTLD_NOW), "libascendcl.so"), #name), #name)
#endif

#define FORWARD(name, parameters, arguments)                                                                           \
    aclError name parameters                                                                                           \
    {                                                                                                                  \
        static __typeof__(name) *behind;                                                                               \
        if (behind == NULL)                                                                                            \
            *(void **)&behind = BEHIND(name);                                                                          \
        entered++;                                                                                                     \
        return behind arguments;                                                                                       \
    }

typedef aclrtMemcpyKind kind_t;
#define BATCH_OF void **d, size_t *m, void **s, size_t *z, size_t n, aclrtMemcpyBatchAttr *a, size_t *i, size_t c

FORWARD(aclrtMemcpy, (void *d, size_t m, const void *s, size_t n, kind_t k), (d, m, s, n, k))
FORWARD(aclrtMemcpyAsync, (void *d, size_t m, const void *s, size_t n, kind_t k, aclrtStream on), (d, m, s, n, k, on))
FORWARD(aclrtMemcpyAsyncWithCondition, (void *d, size_t m, const void *s, size_t n, kind_t k, aclrtStream on),
        (d, m, s, n, k, on))
FORWARD(aclrtMemcpy2d, (void *d, size_t p, const void *s, size_t q, size_t w, size_t h, kind_t k), (d, p, s, q, w, h, k))
FORWARD(aclrtMemcpy2dAsync, (void *d, size_t p, const void *s, size_t q, size_t w, size_t h, kind_t k, aclrtStream on),
        (d, p, s, q, w, h, k, on))
FORWARD(aclrtMemcpyBatch, (BATCH_OF, size_t *f), (d, m, s, z, n, a, i, c, f))
FORWARD(aclrtMemcpyBatchV2, (BATCH_OF), (d, m, s, z, n, a, i, c))
FORWARD(aclrtMemcpyBatchAsync, (BATCH_OF, size_t *f, aclrtStream on), (d, m, s, z, n, a, i, c, f, on))
FORWARD(aclrtMemcpyBatchAsyncV2, (BATCH_OF, aclrtStream on), (d, m, s, z, n, a, i, c, on))
FORWARD(aclrtMemcpyAsyncWithOffset,
        (void **d, size_t m, size_t o, const void **s, size_t n, size_t p, kind_t k, aclrtStream on),
        (d, m, o, s, n, p, k, on))
FORWARD(aclrtGetMemcpyDescSize, (kind_t k, size_t *n), (k, n))
FORWARD(aclrtSetMemcpyDesc, (void *e, kind_t k, void *s, void *d, size_t n, void *c), (e, k, s, d, n, c))
FORWARD(aclrtMemcpyAsyncWithDesc, (void *e, kind_t k, aclrtStream on), (e, k, on))
FORWARD(aclrtMemcpyToSymbol, (const void *v, const void *s, size_t n, size_t o, kind_t k), (v, s, n, o, k))
FORWARD(aclrtMemcpyFromSymbol, (void *d, size_t m, const void *v, size_t n, size_t o, kind_t k), (d, m, v, n, o, k))
FORWARD(aclrtMemcpyToSymbolAsync, (const void *v, const void *s, size_t n, size_t o, kind_t k, aclrtStream on),
        (v, s, n, o, k, on))
FORWARD(aclrtMemcpyFromSymbolAsync,
        (void *d, size_t m, const void *v, size_t n, size_t o, kind_t k, aclrtStream on), (d, m, v, n, o, k, on))
FORWARD(aclrtMemset, (void *d, size_t m, int32_t v, size_t n), (d, m, v, n))
FORWARD(aclrtMemsetAsync, (void *d, size_t m, int32_t v, size_t n, aclrtStream on), (d, m, v, n, on))
FORWARD(aclrtMemsetD32, (void *d, size_t m, uint32_t v, size_t n), (d, m, v, n))
FORWARD(aclrtMemsetD32Async, (void *d, size_t m, uint32_t v, size_t n, aclrtStream on), (d, m, v, n, on))

__attribute__((destructor)) static void report(void)
{
    printf("the interposer was entered %u times\n", entered);
}
