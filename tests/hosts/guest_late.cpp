/* Calls from constructors and destructors of static and thread-local objects. */
#include "guest_host.h"
#include <thread>

struct Caller {
    Caller() { copies(1); }
    ~Caller() { copies(1); }
    void call() { copies(1); }
};

static Caller object;
static thread_local Caller local;

int main()
{
    limit();
    std::thread([] { local.call(); }).join();
    static Caller inside;
    own(2 + 3 + 2);
    printf("done\n");
    return 0;
}
