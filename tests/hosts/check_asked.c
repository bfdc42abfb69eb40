/* check_asked: how often the vendor was asked what it is, after calls of many kinds. */
#include "guest_host.h"
#include <dlfcn.h>
#include <pthread.h>

/* Not to be linked: the library to link to is the simulated one, which does not count. */
static int (*asked)(int what);

static void say(const char *when)
{
    printf("%s: %d %d %d\n", when, asked(0), asked(1), asked(2));
}

static char here[64], there[64];

static void *copies_of_a_thread(void *unused)
{
    for (int i = 0; i < 1000; i++)
        aclrtMemcpy(here, 64, there, 64, ACL_MEMCPY_HOST_TO_HOST);
    return unused;
}

int main(void)
{
    limit();
    asked = (int (*)(int))dlsym(RTLD_DEFAULT, "checkVendorAsked");
    if (!asked)
        return 2;
    say("nothing");
    aclrtMemcpy(here, 63, there, 64, ACL_MEMCPY_HOST_TO_HOST);
    say("a failure");
    copies(3);
    say("copies of nothing");
    void *dsts[] = {here}, *srcs[] = {there};
    size_t sizes[] = {0}, rooms[] = {64}, first[] = {0}, fail;
    aclrtMemcpyBatchAttr attrs[1] = {0};
    aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 1, attrs, first, 1, &fail);
    say("a batch of nothing");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, copies_of_a_thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    say("copies of threads");
    return 0;
}
