// A bad copy from a function in a namespace, so that its name has to be read back from what the linker made of it; in a
// program, or (SYMBOLS_PLUGIN) in a plugin for bind_open.c.
#include "acl/acl.h"

namespace cache {
template <typename Item> struct Offload {
    __attribute__((noinline)) int copy(Item *to, const Item *from)
    {
        int code = aclrtMemcpy(to, 1, from, sizeof(Item), ACL_MEMCPY_HOST_TO_HOST); // the line
        return code == 0;
    }
};
} // namespace cache

#ifdef SYMBOLS_PLUGIN
extern "C" int bind_run(int, char **);
int bind_run(int, char **)
#else
int main()
#endif
{
    long from = 1, to = 0;
    if (aclInit(nullptr) || aclrtSetDevice(0))
        return 2;
    return cache::Offload<long>().copy(&to, &from);
}
