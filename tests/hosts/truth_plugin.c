/* truth_plugin LIBRARY SCOPE: a program that knows nothing of the vendor opens a plugin that does; SCOPE is `local` or
 * `global`. Before, between and after it looks itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void look(const char *when)
{
    static const char *const wanted[] = {"aclrtMemcpy", "aclrtMemcpyBatch", "aclInit"};
    void *self = dlopen(NULL, RTLD_NOW);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(RTLD_DEFAULT, wanted[i]);
        const char *error = dlerror();
        const char *text = error ? strstr(error, "undefined symbol") : NULL;
        printf("%s: %s %s, %s", when, wanted[i], found ? "found" : "NULL", error ? text : "no error");
        printf(", in the program %s\n", dlsym(self, wanted[i]) ? "found" : "NULL");
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    look("before");
    int scope = strcmp(argv[2], "global") ? RTLD_LOCAL : RTLD_GLOBAL;
    void *plugin = dlopen(argv[1], RTLD_NOW | scope);
    void (*looks)(void);
    *(void **)&looks = dlsym(plugin, "plugin_looks");
    looks();
    printf("through the plugin: %d\n", dlsym(plugin, "aclrtMemcpy") != NULL);
    look("after");
    return 0;
}
