/* A plugin that needs the vendor's library, as a Python module does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "acl/acl.h"

void plugin_looks(void)
{
    static const char *const wanted[] = {"aclrtMemcpy", "aclInit", "none_such"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(RTLD_DEFAULT, wanted[i]);
        const char *error = dlerror();
        printf("plugin: %s %s, %s\n", wanted[i], found ? "found" : "NULL", error ? error : "no error");
    }
    printf("plugin: its own is the one it finds: %d\n", dlsym(RTLD_DEFAULT, "aclrtMemcpy") == (void *)aclrtMemcpy);
    printf("plugin: code %d\n", aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT));
}
