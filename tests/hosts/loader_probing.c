/* loader_probing PLUGIN: the linked library probes before and after a plugin that needs it and the vendor's library. */
#include <dlfcn.h>
#include <stdio.h>

void probe(void);

#ifdef PLUGIN
void plugin(void)
{
    probe();
}
#else
int main(int argc, char **argv)
{
    (void)argc;
    probe();
    if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))
        printf("%s\n", dlerror());
    probe();
    return 0;
}
#endif
