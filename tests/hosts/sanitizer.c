/* A sanitized program that copies by a linked call and by a looked-up one, and frees what it took. */
#include "acl/acl.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef aclError (*copy_function)(void *, size_t, const void *, size_t, aclrtMemcpyKind);

int main(void)
{
    void *device = NULL;
    char *host = calloc(1, 64);
    aclInit(NULL);
    aclrtSetDevice(0);
    printf("malloc %d\n", aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    copy_function copy = (copy_function)dlsym(dlopen("libascendcl.so", RTLD_NOW), "aclrtMemcpy");
    printf("linked %d\n", aclrtMemcpy(device, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    printf("looked up %d\n", copy(host, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    aclrtFree(device);
    free(host);
    return 0;
}
