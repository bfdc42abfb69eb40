/*
 * A program for the doctor to look at. Whoever runs it, or only its
 * constructor, leaves the file that DOCTOR_MARK names.
 *
 * It copies once: by a call that the loader binds; or (DOCTOR_LOOKUP) by one
 * that it looks up; or (DOCTOR_OWN) to a function of that name in itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"

__attribute__((constructor)) static void leave_mark(void)
{
    const char *mark = getenv("DOCTOR_MARK");
    if (mark != NULL)
        close(open(mark, O_CREAT | O_WRONLY, 0600));
}

#ifdef DOCTOR_OWN
__attribute__((noinline)) aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                                               aclrtMemcpyKind kind)
{
    (void)dst, (void)destMax, (void)src, (void)count, (void)kind;
    return getpid() == 0;
}
#endif

#ifdef DOCTOR_BELOW
extern int rtMemcpyAsync(void) __attribute__((weak));
#endif

#ifdef DOCTOR_IMPL
extern int aclrtMemcpyImpl(void) __attribute__((weak));
#endif

int main(void)
{
    char from[64] = "doctor", to[64];
#if defined DOCTOR_OWN
    return aclrtMemcpy(to, 64, from, 64, ACL_MEMCPY_HOST_TO_HOST);
#elif defined DOCTOR_LOOKUP
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    if (vendor == NULL)
        return 2;
    __typeof__(aclInit) *init;
    __typeof__(aclrtSetDevice) *set_device;
    __typeof__(aclrtMemcpy) *copy;
    *(void **)&init = dlsym(vendor, "aclInit");
    *(void **)&set_device = dlsym(vendor, "aclrtSetDevice");
    *(void **)&copy = dlsym(vendor, "aclrtMemcpy");
    return init(NULL) || set_device(0) || copy(to, 64, from, 64, ACL_MEMCPY_HOST_TO_HOST);
#elif defined DOCTOR_NAMESPACE
    (void)from, (void)to;
    return dlmopen(LM_ID_NEWLM, "libascendcl.so", RTLD_NOW) == NULL;
#else
#ifdef DOCTOR_BELOW
    if (rtMemcpyAsync)
        return rtMemcpyAsync();
#endif
#ifdef DOCTOR_IMPL
    if (aclrtMemcpyImpl)
        return aclrtMemcpyImpl();
#endif
    return aclInit(NULL) || aclrtSetDevice(0) || aclrtMemcpy(to, 64, from, 64, ACL_MEMCPY_HOST_TO_HOST);
#endif
}
