/*
 * Another library that stands in front of the same functions and passes each
 * call on: to the next in line (BIND_NEXT), or to what it finds in the vendor's
 * library by lookup. Says at the end how often it was called.
 */
#define BIND_PLUGIN
#include "bind_calls.h"

static unsigned entered;

#ifdef BIND_NEXT
#define BEHIND(name) must(dlsym(RTLD_NEXT, #name), #name)
#else
#define BEHIND(name) must(dlsym(must(dlopen("libascendcl.so", RTLD_NOW), "libascendcl.so"), #name), #name)
#endif

#define FORWARD(name, parameters, arguments)                                                                           \
    aclError name parameters                                                                                           \
    {                                                                                                                  \
        static __typeof__(name) *behind;                                                                               \
        if (behind == NULL)                                                                                            \
            *(void **)&behind = BEHIND(name);                                                                          \
        entered++;                                                                                                     \
        return behind arguments;                                                                                       \
    }

EACH_FUNCTION(FORWARD)

__attribute__((destructor)) static void report(void)
{
    printf("the interposer was entered %u times\n", entered);
}
