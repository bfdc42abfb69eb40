/*
 * Where memory lies and who may touch it: allocation, attributes, the fault on
 * direct access to device memory, freed memory, registered memory, two devices.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "conform.h"

static void attributes(const char *name, const void *place, int type, int id)
{
    char text[96];
    aclrtPtrAttributes at;
    memset(&at, 0xFF, sizeof at);
    want(name, aclrtPointerGetAttributes(place, &at), OK);
    snprintf(text, sizeof text, "%s: type", name);
    want(text, at.location.type, type);
    if (id >= 0) {
        snprintf(text, sizeof text, "%s: id", name);
        want(text, at.location.id, id);
    }
}

/* The signal that a child dies of when it touches the place; 0 if it lives. */
static int touch(volatile uint8_t *place, int write_it)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        if (write_it)
            *place = 1;
        else
            (void)*place;
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void direct_access(void)
{
    want("reading device memory", touch(dev, 0), SIGSEGV);
    want("writing device memory", touch(dev, 1), SIGSEGV);
    want("reading its last byte", touch(dev + SIZE - 1, 0), SIGSEGV);
    want("reading pinned memory", touch(pin, 0), 0);
    want("writing pinned memory", touch(pin, 1), 0);
    holds("device addresses start at 0x100000000000", (uintptr_t)dev >= 0x100000000000ULL);
    holds("pinned memory is not device memory", (uintptr_t)pin != (uintptr_t)dev);
}

static void allocation(void)
{
    void *p = NULL;
    want("malloc: nowhere to put it", aclrtMalloc(NULL, SIZE, ACL_MEM_MALLOC_HUGE_FIRST), BAD);
    want("malloc: nothing", aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST), BAD);
    want("malloc host: nowhere to put it", aclrtMallocHost(NULL, SIZE), BAD);
    want("malloc host: nothing", aclrtMallocHost(&p, 0), BAD);
    want("free: nothing", aclrtFree(NULL), BAD);
    want("free host: nothing", aclrtFreeHost(NULL), BAD);

    /* Each way to get device memory gives memory that copies work on. */
    for (int way = 0; way < 5; way++) {
        static const char *const names[] = {"malloc", "align 32", "cached", "with config", "task scheduler"};
        char name[64];
        snprintf(name, sizeof name, "%s: allocate", names[way]);
        want(name,
             way == 0   ? aclrtMalloc(&p, 1000, ACL_MEM_MALLOC_NORMAL_ONLY)
             : way == 1 ? aclrtMallocAlign32(&p, 1000, ACL_MEM_MALLOC_NORMAL_ONLY)
             : way == 2 ? aclrtMallocCached(&p, 1000, ACL_MEM_MALLOC_NORMAL_ONLY)
             : way == 3 ? aclrtMallocWithCfg(&p, 1000, ACL_MEM_MALLOC_NORMAL_ONLY, NULL)
                        : aclrtMallocForTaskScheduler(&p, 1000, ACL_MEM_MALLOC_NORMAL_ONLY, NULL),
             OK);
        attributes(names[way], p, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
        put(p, 1000, (unsigned)way);
        snprintf(name, sizeof name, "%s: bytes", names[way]);
        holds(name, has(p, 1000, (unsigned)way));
        snprintf(name, sizeof name, "%s: aligned", names[way]);
        want(name, (long long)((uintptr_t)p % 64), 0);
        snprintf(name, sizeof name, "%s: free", names[way]);
        want(name, way % 2 ? aclrtFreeWithDevSync(p) : aclrtFree(p), OK);
    }
    want("pinned with config", aclrtMallocHostWithCfg(&p, 1000, NULL), OK);
    attributes("pinned with config", p, ACL_MEM_LOCATION_TYPE_HOST, -1);
    want("free pinned with synchronise", aclrtFreeHostWithDevSync(p), OK);

    size_t free_before = 0, free_after = 0, total = 0;
    MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
    holds("memory info: free is within total", free_before <= total && total > 0);
    p = device_memory(1 << 20);
    MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    holds("memory info: an allocation takes from free", free_after + (1 << 20) <= free_before);
    MUST(aclrtFree(p));
    MUST(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    want("memory info: and gives it back", (long long)free_after, (long long)free_before);
}

static void places(void)
{
    attributes("device", dev, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    attributes("inside device memory", dev + 100, ACL_MEM_LOCATION_TYPE_DEVICE, 0);
    attributes("pinned", pin, ACL_MEM_LOCATION_TYPE_HOST, -1);
    attributes("inside pinned memory", pin + SIZE - 1, ACL_MEM_LOCATION_TYPE_HOST, -1);
    attributes("malloc", page, ACL_MEM_LOCATION_TYPE_UNREGISTERED, -1);
    int local = 0;
    attributes("stack", &local, ACL_MEM_LOCATION_TYPE_UNREGISTERED, -1);

    aclrtPtrAttributes at;
    want("attributes of nothing", aclrtPointerGetAttributes(NULL, &at), BAD);
    want("attributes to nowhere", aclrtPointerGetAttributes(dev, NULL), BAD);

    void *registered = NULL, *mapped = NULL;
    MUST(posix_memalign(&registered, 4096, SIZE));
    want("register", aclrtHostRegister(registered, SIZE, ACL_HOST_REGISTER_MAPPED, &mapped), OK);
    attributes("registered", registered, ACL_MEM_LOCATION_TYPE_HOST, -1);
    want("unregister", aclrtHostUnregister(registered), OK);
    attributes("unregistered", registered, ACL_MEM_LOCATION_TYPE_UNREGISTERED, -1);
    want("register by flags", aclrtHostRegisterV2(registered, SIZE, ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED), OK);
    attributes("registered by flags", registered, ACL_MEM_LOCATION_TYPE_HOST, -1);
    want("unregister again", aclrtHostUnregister(registered), OK);
    free(registered);

    void *gone = device_memory(SIZE);
    MUST(aclrtFree(gone));
    want("attributes of freed memory", aclrtPointerGetAttributes(gone, &at), DRIVER);
    want("asynchronous copy to freed memory",
         aclrtMemcpyAsync(gone, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream), DRIVER);
}

static void two_devices(void)
{
    uint32_t count = 0;
    int32_t can = -1, current = -1;
    want("devices", aclrtGetDeviceCount(&count), OK);
    want("devices: number", count, 2);
    want("no such device", aclrtSetDevice(2), NO_DEVICE_ID);
    MUST(aclrtSetDevice(1));
    MUST(aclrtGetDevice(&current));
    want("current device", current, 1);
    uint8_t *there = (uint8_t *)device_memory(SIZE);
    attributes("memory of device 1", there, ACL_MEM_LOCATION_TYPE_DEVICE, 1);
    MUST(aclrtDeviceEnablePeerAccess(0, 0));
    MUST(aclrtSetDevice(0));
    MUST(aclrtGetDevice(&current));
    want("back on device 0", current, 0);
    want("peer access possible", aclrtDeviceCanAccessPeer(&can, 0, 1), OK);
    want("peer access possible: yes", can, 1);
    want("peer access to itself", aclrtDeviceCanAccessPeer(&can, 0, 0), BAD);
    want("enable peer access", aclrtDeviceEnablePeerAccess(1, 0), OK);

    put(dev, SIZE, 8);
    want("device 0 to device 1", aclrtMemcpy(there, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE), OK);
    holds("device 0 to device 1: bytes", has(there, SIZE, 8));
    put(there, SIZE, 9);
    want("device 1 to device 0, on a stream",
         aclrtMemcpyAsync(dev, SIZE, there, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    holds("device 1 to device 0: bytes", has(dev, SIZE, 9));
    MUST(aclrtFree(there));
}

/* With ASCENDCL_SIM_MEMORY=1M. */
static void little_memory(void)
{
    void *p = NULL, *q = NULL;
    want("little memory: too much", aclrtMalloc(&p, 2 << 20, ACL_MEM_MALLOC_HUGE_FIRST), NO_MEMORY);
    want("little memory: most of it", aclrtMalloc(&p, 700 << 10, ACL_MEM_MALLOC_NORMAL_ONLY), OK);
    want("little memory: no more", aclrtMalloc(&q, 700 << 10, ACL_MEM_MALLOC_NORMAL_ONLY), NO_MEMORY);
    MUST(aclrtFree(p));
    want("little memory: again", aclrtMalloc(&q, 700 << 10, ACL_MEM_MALLOC_NORMAL_ONLY), OK);
}

/* With ASCENDCL_SIM_DEVICES set to another number than two. */
static void other_number_of_devices(unsigned number)
{
    uint32_t count = 0;
    want("devices", aclrtGetDeviceCount(&count), OK);
    want("devices: number", count, number);
    want("the last device", aclrtSetDevice((int32_t)number - 1), OK);
    want("one more", aclrtSetDevice((int32_t)number), NO_DEVICE_ID);
}

int main(void)
{
    open_world();
    if (getenv("ASCENDCL_SIM_DEVICES")) {
        other_number_of_devices((unsigned)atoi(getenv("ASCENDCL_SIM_DEVICES")));
        return finish();
    }
    if (getenv("ASCENDCL_SIM_MEMORY")) {
        little_memory();
        return finish();
    }
    direct_access();
    allocation();
    places();
    two_devices();
    return finish();
}
