/* The 21 names of the function table. */
static const char *const names[] = {
    "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition", "aclrtMemcpy2d", "aclrtMemcpy2dAsync",
    "aclrtMemcpyBatch", "aclrtMemcpyBatchV2", "aclrtMemcpyBatchAsync", "aclrtMemcpyBatchAsyncV2",
    "aclrtMemcpyAsyncWithOffset", "aclrtMemcpyAsyncWithDesc", "aclrtMemcpyFromSymbol", "aclrtMemcpyFromSymbolAsync",
    "aclrtMemcpyToSymbol", "aclrtMemcpyToSymbolAsync", "aclrtGetMemcpyDescSize", "aclrtSetMemcpyDesc", "aclrtMemset",
    "aclrtMemsetAsync", "aclrtMemsetD32", "aclrtMemsetD32Async",
};
enum { NAMES = sizeof names / sizeof *names };
