// Fills its table from a static initialiser of C++, as clients do that register functions by name, and calls from
// another thread than the one that looked up.
#include <map>
#include <string>
#include <thread>

#include "bind_calls.h"

namespace {

void *vendor()
{
    static void *const handle = must(dlopen("libascendcl.so", RTLD_NOW | RTLD_GLOBAL), "libascendcl.so");
    return handle;
}

struct Registry {
    std::map<std::string, void *> functions;
    void add(const char *name) { functions[name] = must(dlsym(vendor(), name), name); }
    Registry()
    {
#define ADD(name, ...) add(#name);
        EACH_FUNCTION(ADD)
    }
};

const Registry registry;

} // namespace

extern "C" int bind_run(int, char **)
{
    calls table;
#define TAKE(name, ...) table.to_##name = reinterpret_cast<decltype(table.to_##name)>(registry.functions.at(#name));
    EACH_FUNCTION(TAKE)
    const tools with = tools_of(vendor());
    int code = 1;
    std::thread([&] { code = run_all(&table, &with); }).join();
    return code;
}
