/* Preloaded: when the process ends, writes the vendor's own number of calls of each function to the file
 * VENDOR_COUNT. */
#include "guest_host.h"
#include "names.h"
#include <dlfcn.h>

__attribute__((destructor)) static void tell(void)
{
    uint64_t (*calls)(const char *);
    *(void **)&calls = dlsym(RTLD_DEFAULT, "ascendclSimCalls");
    const char *path = getenv("VENDOR_COUNT");
    FILE *file = path && calls ? fopen(path, "w") : NULL;
    for (size_t i = 0; file && i < NAMES; i++)
        fprintf(file, "%s %llu\n", names[i], (unsigned long long)calls(names[i]));
    if (file)
        fclose(file);
}
