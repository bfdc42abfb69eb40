/* loader_two FIRST SECOND: opens one library for everybody, then another, and calls what that has to say. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 3 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
        printf("%s\n", dlerror());
        return 1;
    }
    void *second = dlopen(argv[2], RTLD_NOW);
    int (*go)(void);
    *(void **)&go = dlsym(second, "go");
    printf("go %d\n", go());
    return 0;
}
