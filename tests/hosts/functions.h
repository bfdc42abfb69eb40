/* The function table. Made by `make docs`. */
#define EACH_FUNCTION(X) \
    X(aclrtMemcpy, (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind), (dst, destMax, src, count, kind)) \
    X(aclrtMemcpyAsync, (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream), (dst, destMax, src, count, kind, stream)) \
    X(aclrtMemcpyAsyncWithCondition, (void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream), (dst, destMax, src, count, kind, stream)) \
    X(aclrtMemcpy2d, (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind), (dst, dpitch, src, spitch, width, height, kind)) \
    X(aclrtMemcpy2dAsync, (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream), (dst, dpitch, src, spitch, width, height, kind, stream)) \
    X(aclrtMemcpyBatch, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex), (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex)) \
    X(aclrtMemcpyBatchV2, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs), (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs)) \
    X(aclrtMemcpyBatchAsync, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex, aclrtStream stream), (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex, stream)) \
    X(aclrtMemcpyBatchAsyncV2, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, aclrtStream stream), (dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, stream)) \
    X(aclrtMemcpyAsyncWithOffset, (void **dst, size_t destMax, size_t dstDataOffset, const void **src, size_t count, size_t srcDataOffset, aclrtMemcpyKind kind, aclrtStream stream), (dst, destMax, dstDataOffset, src, count, srcDataOffset, kind, stream)) \
    X(aclrtMemcpyAsyncWithDesc, (void *desc, aclrtMemcpyKind kind, aclrtStream stream), (desc, kind, stream)) \
    X(aclrtMemcpyFromSymbol, (void *dst, size_t dstMax, const void *symbol, size_t count, size_t offset, aclrtMemcpyKind kind), (dst, dstMax, symbol, count, offset, kind)) \
    X(aclrtMemcpyFromSymbolAsync, (void *dst, size_t dstMax, const void *symbol, size_t count, size_t offset, aclrtMemcpyKind kind, aclrtStream stream), (dst, dstMax, symbol, count, offset, kind, stream)) \
    X(aclrtMemcpyToSymbol, (const void *symbol, const void *src, size_t count, size_t offset, aclrtMemcpyKind kind), (symbol, src, count, offset, kind)) \
    X(aclrtMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t count, size_t offset, aclrtMemcpyKind kind, aclrtStream stream), (symbol, src, count, offset, kind, stream)) \
    X(aclrtGetMemcpyDescSize, (aclrtMemcpyKind kind, size_t *descSize), (kind, descSize)) \
    X(aclrtSetMemcpyDesc, (void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr, size_t count, void *config), (desc, kind, srcAddr, dstAddr, count, config)) \
    X(aclrtMemset, (void *devPtr, size_t maxCount, int32_t value, size_t count), (devPtr, maxCount, value, count)) \
    X(aclrtMemsetAsync, (void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream), (devPtr, maxCount, value, count, stream)) \
    X(aclrtMemsetD32, (void *ptr, size_t memSize, uint32_t value, size_t N), (ptr, memSize, value, N)) \
    X(aclrtMemsetD32Async, (void *ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream), (ptr, memSize, value, N, stream))
