/* Everything that dladdr and dladdr1 tell of a copy function, by each kind of pointer, and of other addresses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include "acl/acl.h"

static int own_object;

static void one(const char *what, void *address)
{
    Dl_info info = {0};
    ElfW(Sym) *symbol = NULL;
    struct link_map *map = NULL;
    int ok = dladdr(address, &info);
    printf("%s: %d file %s symbol %s, offset %ld, start %d\n", what, ok, ok ? info.dli_fname : "-",
           info.dli_sname ? info.dli_sname : "-", info.dli_saddr ? (long)((char *)info.dli_saddr - (char *)info.dli_fbase) : 0,
           info.dli_saddr != NULL);
    ok = dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT);
    printf("  entry: %d size %s\n", ok, symbol && symbol->st_size ? "known" : "unknown");
    ok = dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP);
    printf("  map: %d name %s\n", ok, map ? map->l_name : "-");
    ok = dladdr1(address, &info, (void **)&map, 0);
    printf("  plain: %d file %s\n", ok, ok ? info.dli_fname : "-");
}

int main(void)
{
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    one("linked aclrtMemcpy", (void *)aclrtMemcpy);
    one("aclrtMemcpy by handle", dlsym(vendor, "aclrtMemcpy"));
    one("aclrtMemcpy by default", dlsym(RTLD_DEFAULT, "aclrtMemcpy"));
    one("aclrtMemcpyBatch by handle", dlsym(vendor, "aclrtMemcpyBatch"));
    one("aclrtMemcpyBatch by default", dlsym(RTLD_DEFAULT, "aclrtMemcpyBatch"));
    one("aclrtMemset by version", dlvsym(vendor, "aclrtMemset", "NONE_1.0"));
    one("aclInit", dlsym(vendor, "aclInit"));
    one("dlsym", (void *)dlsym);
    one("dlvsym", (void *)dlvsym);
    one("dladdr", (void *)dladdr);
    one("dladdr1", dlsym(RTLD_DEFAULT, "dladdr1"));
    one("main", (void *)main);
    one("an object", &own_object);
    one("nothing", (void *)16);
    one("NULL", NULL);
    return 0;
}
