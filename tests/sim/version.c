/*
 * What depends on the version of CANN: run once for each ASCENDCL_SIM_CANN.
 * Until 9.0 nothing to copy was an error, and null was looked at before it;
 * since 9.1 it is success, before anything else.
 */
#define _GNU_SOURCE
#include "conform.h"

int main(void)
{
    const char *cann = getenv("ASCENDCL_SIM_CANN");
    int old = cann && (strcmp(cann, "8.5") == 0 || strcmp(cann, "9.0") == 0);
    const aclrtMemcpyKind up = ACL_MEMCPY_HOST_TO_DEVICE, bad = (aclrtMemcpyKind)99;
    open_world();

    want("memcpy of nothing", aclrtMemcpy(dev, SIZE, pin, 0, up), old ? PARAM : OK);
    want("memcpy of nothing to nowhere", aclrtMemcpy(NULL, SIZE, pin, 0, up), old ? BAD : OK);
    want("memcpy of nothing from nowhere", aclrtMemcpy(dev, SIZE, NULL, 0, up), old ? BAD : OK);
    want("memcpy of nothing, bad kind", aclrtMemcpy(dev, SIZE, pin, 0, bad), old ? BAD : OK);
    want("async of nothing", aclrtMemcpyAsync(dev, SIZE, pin, 0, up, stream), old ? PARAM : OK);
    want("async of nothing to nowhere", aclrtMemcpyAsync(NULL, SIZE, pin, 0, up, stream), old ? BAD : OK);
    want("condition, of nothing", aclrtMemcpyAsyncWithCondition(dev, SIZE, pin, 0, up, stream), old ? PARAM : OK);
    want("set nothing", aclrtMemset(dev, SIZE, 1, 0), old ? PARAM : OK);
    want("set nothing nowhere", aclrtMemset(NULL, SIZE, 1, 0), old ? BAD : OK);
    want("set nothing async", aclrtMemsetAsync(dev, SIZE, 1, 0, stream), old ? PARAM : OK);
    want("rows of no width", aclrtMemcpy2d(dev, 64, pin, 64, 0, 4, up), old ? BAD : OK);
    want("no rows", aclrtMemcpy2d(dev, 64, pin, 64, 64, 0, up), old ? BAD : OK);
    want("rows of no width, async", aclrtMemcpy2dAsync(dev, 64, pin, 64, 0, 4, up, stream), old ? BAD : OK);
    want("no rows, async", aclrtMemcpy2dAsync(dev, 64, pin, 64, 64, 0, up, stream), old ? BAD : OK);
    want("rows of no width, nowhere", aclrtMemcpy2d(NULL, 64, NULL, 64, 0, 4, up), old ? BAD : OK);

    /* The rest is the same in all of them. */
    paint(pin, SIZE, 1);
    want("memcpy", aclrtMemcpy(dev, SIZE, pin, SIZE, up), OK);
    holds("memcpy: bytes", has(dev, SIZE, 1));
    want("memcpy, room too small", aclrtMemcpy(dev, 1, pin, 2, up), PARAM);

    char text[ACL_PKG_VERSION_MAX_SIZE] = "", name[] = "runtime";
    if (aclsysGetVersionStr(name, text) == 0) {
        const char *wanted = cann ? cann : "9.2";
        printf("version string: %s\n", text);
        holds("version string begins with the version", strncmp(text, wanted, strlen(wanted)) == 0);
    }
    return finish();
}
