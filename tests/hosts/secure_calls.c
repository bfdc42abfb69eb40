/* A program that has more privileges than its caller: says whether the system takes it for one, calls, and waits for a line
 * before it ends. */
#include "guest_host.h"
#include <dlfcn.h>
#include <sys/auxv.h>

int main(void)
{
    limit();
    char to[8], from[8] = "copied";
    size_t at = 5;
    printf("secure %d\n", getauxval(AT_SECURE) != 0);
    aclInit(NULL);
    aclrtSetDevice(0);
    for (int i = 0; i < 3; i++) {
        memset(to, 0, sizeof to);
        int code = aclrtMemcpy(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_HOST);
        printf("copy %d %s\n", code, to);
    }
    /* Which the library lacks. */
    for (int i = 0; i < 2; i++)
        printf("batch %d\n", aclrtMemcpyBatch(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &at));
    printf("lookup %d\n", dlsym(RTLD_DEFAULT, "aclrtMemcpy") != NULL);
    printf("waiting\n");
    fflush(stdout);
    getchar();
    return 0;
}
