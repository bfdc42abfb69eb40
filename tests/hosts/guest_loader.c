/* guest_loader LIBRARY: one thread opens and closes a library while another looks symbols up, 100,000 rounds. */
#include "guest_host.h"
#include <dlfcn.h>
#include <pthread.h>

enum { ROUNDS = 100000 };

static volatile int done;

static void *open_and_close(void *path)
{
    unsigned long rounds = 0;
    for (; !done; rounds++) {
        void *handle = dlopen(path, RTLD_NOW);
        if (!handle || dlclose(handle) != 0)
            _exit(93);
    }
    return (void *)rounds;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 2)
        return 2;
    pthread_t thread;
    void *rounds;
    void *vendor = dlopen("libascendcl.so", RTLD_NOW);
    void *first = dlsym(vendor, "aclrtMemcpy");
    pthread_create(&thread, NULL, open_and_close, argv[1]);
    for (int i = 0; i < ROUNDS; i++) {
        if (dlsym(vendor, "aclrtMemcpy") != first || !dlsym(RTLD_DEFAULT, "aclrtMemset"))
            return 3;
        if (!dlsym(vendor, "aclInit") || !dlsym(RTLD_DEFAULT, "strlen"))
            return 4;
        if (i % 10 == 0 && (dlsym(vendor, "aclrtMemcpyNone") || dlsym(RTLD_DEFAULT, "none_such")))
            return 5;
        if (i % 100 == 0 && ((aclError(*)(void *, size_t, const void *, size_t, aclrtMemcpyKind))first)(
                                NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT) != 0)
            return 6;
    }
    done = 1;
    pthread_join(thread, &rounds);
    printf("%s\n", rounds ? "both ran" : "the other never ran");
    own(ROUNDS / 100);
    return 0;
}
