/* Prints which of the functions the library has: absent LIBRARY FUNCTION... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "absent: %s\n", dlerror());
        return 1;
    }
    for (int i = 2; i < argc; i++)
        printf("%s %s\n", dlsym(library, argv[i]) ? "has" : "lacks", argv[i]);
    return 0;
}
