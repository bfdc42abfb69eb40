/* A vendor's library that copies nothing, may be called from a signal handler, and counts who asks what it is. With
 * -DNESTS an asynchronous copy makes another one inside; a question meanwhile might wait for it. */
#include "acl/acl.h"
#include <string.h>

#define UNUSED __attribute__((unused))
#ifndef RELEASE
#define RELEASE "8.5.0"
#endif

static int asked[4];
static __thread int is_inside;
int checkVendorAsked(int what)
{
    return __atomic_load_n(&asked[what], __ATOMIC_RELAXED);
}

static void count(int what)
{
    __atomic_add_fetch(&asked[is_inside ? 3 : what], 1, __ATOMIC_RELAXED);
}

const char *aclrtGetSocName(void)
{
    count(0);
    return "Ascend310P3";
}

aclError aclrtGetRunMode(aclrtRunMode *mode)
{
    count(1);
    *mode = ACL_HOST;
    return 0;
}

/* The newer question is there and answers, is there and fails, or is not there. */
#ifndef NO_VERSION_TEXT
aclError aclsysGetVersionStr(char *package UNUSED, char *version)
{
    count(2);
#ifdef VERSION_TEXT_FAILS
    strcpy(version, "1.2.3");
    return 100000;
#else
    strcpy(version, RELEASE);
    return 0;
#endif
}
#endif

#if defined NO_VERSION_TEXT || defined VERSION_TEXT_FAILS
aclError aclsysGetCANNVersion(aclCANNPackageName package, aclCANNPackageVersion *version)
{
    if (package != 0)
        return 100000;
    memset(version, 0, sizeof *version);
    strcpy(version->version, RELEASE);
    return 0;
}
#endif

aclError aclrtMemcpy(void *d UNUSED, size_t room, const void *s UNUSED, size_t count, aclrtMemcpyKind k UNUSED)
{
    return count > room ? 107000 : 0;
}

aclError aclrtMemcpyBatch(void **d UNUSED, size_t *rooms, void **s UNUSED, size_t *sizes, size_t n,
                          aclrtMemcpyBatchAttr *a UNUSED, size_t *i UNUSED, size_t k UNUSED, size_t *fail UNUSED)
{
    for (size_t at = 0; at < n; at++)
        if (sizes[at] > rooms[at])
            return 100000;
    return 0;
}

#ifdef NESTS
aclError aclrtMemcpyAsync(void *d, size_t room, const void *s, size_t count, aclrtMemcpyKind k, aclrtStream t UNUSED)
{
    is_inside = 1;
    aclError code = aclrtMemcpy(d, room, s, count, k);
    is_inside = 0;
    return code;
}
#endif
