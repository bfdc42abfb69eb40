// A peer: each call is a line of text through spdlog's asynchronous logger, which waits when its queue is full.
#include "acl/acl.h"
#include "ticks.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <string>

namespace {

using function = decltype(&aclrtMemcpyAsync);

struct Peer {
    function real;
    std::shared_ptr<spdlog::logger> log;

    Peer() : real(reinterpret_cast<function>(dlsym(RTLD_NEXT, "aclrtMemcpyAsync")))
    {
        const char *folder = std::getenv("ACLSHIM_DIR");
        std::string path = std::string(folder ? folder : ".") + "/spdlog.log";
        // The defaults: 8,192 messages of room, one thread.
        log = spdlog::basic_logger_mt<spdlog::async_factory>("calls", path);
    }

    // What is queued is written before the process ends, as every user of it must see to.
    ~Peer()
    {
        log.reset();
        spdlog::shutdown();
    }
};

} // namespace

extern "C" aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                     aclrtStream stream)
{
    static Peer peer;
    uint64_t begin = ticks();
    aclError code = peer.real(dst, destMax, src, count, kind, stream);
    uint64_t duration = ticks() - begin;
    peer.log->info("aclrtMemcpyAsync dst={} destMax={} src={} count={} kind={} stream={} code={} duration={}", dst,
                   destMax, src, count, static_cast<int>(kind), static_cast<const void *>(stream), code, duration);
    return code;
}
