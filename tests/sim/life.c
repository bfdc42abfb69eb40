/*
 * Before a device is chosen, contexts, the last error, and the end: what the
 * library answers when it has not been opened yet or is closed again.
 */
#define _GNU_SOURCE
#include "conform.h"

static const aclrtMemcpyKind UP = ACL_MEMCPY_HOST_TO_DEVICE;

static void before_any_device(void)
{
    char a[16] = {0}, b[16] = {0};
    void *p = NULL;
    aclrtPtrAttributes at;
    aclrtContext context = NULL;
    want("no device yet: memcpy", aclrtMemcpy(a, 16, b, 16, UP), NO_CONTEXT);
    want("no device yet: async", aclrtMemcpyAsync(a, 16, b, 16, UP, NULL), NO_CONTEXT);
    want("no device yet: malloc", aclrtMalloc(&p, SIZE, ACL_MEM_MALLOC_HUGE_FIRST), NO_CONTEXT);
    want("no device yet: create a stream", aclrtCreateStream(&stream), NO_CONTEXT);
    want("no device yet: attributes", aclrtPointerGetAttributes(a, &at), BAD_HANDLE);
    want("no device yet: current context", aclrtGetCurrentContext(&context), NO_CONTEXT);
    holds("product name", aclrtGetSocName() != NULL && strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
    aclrtRunMode mode = ACL_DEVICE;
    want("run mode", aclrtGetRunMode(&mode), OK);
    want("run mode: host", mode, ACL_HOST);
    want("no such device", aclrtSetDevice(99), NO_DEVICE_ID);
    want("no such device, negative", aclrtSetDevice(-1), NO_DEVICE_ID);
}

static void contexts(void)
{
    aclrtContext second = NULL, now = NULL;
    aclrtStream own = NULL, standard = NULL;
    want("create a context", aclrtCreateContext(&second, 0), OK);
    MUST(aclrtGetCurrentContext(&now));
    holds("a new context is current", now == second);
    want("stream of another context", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream), FOREIGN_STREAM);
    MUST(aclrtCreateStream(&own));
    want("stream of this context", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, own), OK);
    MUST(aclrtSynchronizeStream(own));
    want("default stream", aclrtCtxGetCurrentDefaultStream(&standard), OK);
    want("default stream by its handle", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, standard), OK);
    MUST(aclrtSynchronizeStream(standard));
    MUST(aclrtDestroyStream(own));
    want("back home", aclrtSetCurrentContext(home), OK);
    want("destroy a context", aclrtDestroyContext(second), OK);
    want("home stream again", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
}

static void quiet_thread(void)
{
    want("last error: other threads have their own", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), OK);
}

static void last_error(void)
{
    (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    want("last error: none", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), OK);
    want("an error of the runtime", aclrtMemcpy(dev, 1, pin, 2, UP), PARAM);
    on_new_thread(quiet_thread);
    want("last error: peek", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), PARAM);
    want("last error: peek leaves it", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), PARAM);
    want("last error: a good call leaves it", aclrtMemcpy(dev, SIZE, pin, SIZE, UP), OK);
    want("last error: get", aclrtGetLastError(ACL_RT_THREAD_LEVEL), PARAM);
    want("last error: get clears it", aclrtGetLastError(ACL_RT_THREAD_LEVEL), OK);
    want("an unsupported copy", aclrtMemcpyAsync(pin2, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_HOST, stream), UNSUPPORTED);
    (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    (void)aclrtGetSocName();
    aclrtRunMode mode;
    MUST(aclrtGetRunMode(&mode));
    want("last error: asking for name and mode leaves it alone", aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), OK);
}

static void handles(void)
{
    aclrtStream gone = NULL;
    MUST(aclrtCreateStream(&gone));
    want("destroy a stream", aclrtDestroyStream(gone), OK);
    want("copy on memory that is no stream", aclrtMemcpyAsync(dev, SIZE, pin, SIZE, UP, no_stream), BAD_HANDLE);
    want("record on memory that is no stream", aclrtSynchronizeStream(no_stream), BAD_HANDLE);
}

static void versions(void)
{
    int32_t major = 0, minor = 0, patch = 0;
    want("interface version", aclrtGetVersion(&major, &minor, &patch), OK);
    want("interface version: major", major, 1);
}

int main(void)
{
    watch();
    want("init", aclInit(NULL), OK);
    want("init twice", aclInit(NULL), 100002);
    before_any_device();
    /* Devices are counted: two sets need two resets. */
    want("set device", aclrtSetDevice(0), OK);
    want("set device again", aclrtSetDevice(0), OK);
    want("reset once", aclrtResetDevice(0), OK);
    char a[16] = {0}, b[16] = {0};
    want("reset once: still there", aclrtMemcpy(a, 16, b, 16, ACL_MEMCPY_HOST_TO_HOST), OK);
    want("reset twice", aclrtResetDevice(0), OK);
    want("reset twice: gone", aclrtMemcpy(a, 16, b, 16, ACL_MEMCPY_HOST_TO_HOST), NO_CONTEXT);
    want("finalize", aclFinalize(), OK);
    want("finalize twice", aclFinalize(), 100037);

    open_world();
    contexts();
    last_error();
    handles();
    versions();
    want("reset the device", aclrtResetDevice(0), OK);
    want("after the reset: memcpy", aclrtMemcpy(dev, SIZE, pin, SIZE, UP), NO_CONTEXT);
    want("finalize at the end", aclFinalize(), OK);
    return finish();
}
