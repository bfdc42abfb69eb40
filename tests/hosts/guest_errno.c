/* errno before and after the first call of the process, of a thread, and later ones; also of a call that fails. */
#include "guest_host.h"
#include <pthread.h>

static void *three(void *who)
{
    for (int i = 0; i < 3; i++) {
        errno = 70 + i;
        int code = i == 2 ? aclrtMemcpy(NULL, 1, NULL, 1, ACL_MEMCPY_HOST_TO_HOST) : copy();
        int after = errno;
        printf("%s call %d: code %d errno %d\n", (const char *)who, i, code, after);
    }
    return NULL;
}

int main(void)
{
    limit();
    pthread_t thread;
    three("main");
    pthread_create(&thread, NULL, three, "thread");
    pthread_join(thread, NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        three("child");
        fflush(stdout);
        _exit(0);
    }
    reap(child);
    return 0;
}
