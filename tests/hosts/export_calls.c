/* export_calls THREADS ROUNDS [die]: every form of call, good and bad, on THREADS threads. Prints one JSON object for each
 * call: what an export must say of it. `die` ends the program amid one more call. */
#include "check_host.h"
#include <inttypes.h>
#include <sys/syscall.h>

static uint8_t variable[64];
static aclrtStream streams[2];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define AT(pointer) (uint64_t)(uintptr_t)(pointer)
#define ENDS "\"dst\":\"0x%" PRIx64 "\",\"src\":\"0x%" PRIx64 "\""
#define STREAM ",\"stream\":\"0x%" PRIx64 "\""

/* The call, and what is known of it. */
#define CALL(name, arguments, bytes, ...)                                                                        \
    do {                                                                                                         \
        int code = name arguments;                                                                               \
        printf("{\"thread\":%ld,\"function\":\"%s\",\"code\":%d,\"bytes\":%s,", syscall(SYS_gettid), #name, code, bytes); \
        printf(__VA_ARGS__);                                                                                     \
        printf("}\n");                                                                                           \
    } while (0)

static void round_of_calls(aclrtStream on)
{
    CALL(aclrtMemcpy, (dev, 64, pin, 64, H2D), "64", ENDS ",\"count\":64,\"dst_max\":64,\"kind\":1,\"stream\":null", AT(dev), AT(pin));
    CALL(aclrtMemcpy, (dev, 63, pin, 64, H2D), "64", ENDS ",\"count\":64,\"dst_max\":63,\"code_name\":\"ACL_ERROR_RT_PARAM_INVALID\"",
         AT(dev), AT(pin));
    CALL(aclrtMemcpy, (dev, SIZE_MAX, pin, SIZE_MAX, H2D), "18446744073709551615", "\"count\":18446744073709551615");
    CALL(aclrtMemcpyAsync, (pin, 256, dev, 128, D2H, on), "128",
         ENDS ",\"count\":128,\"dst_max\":256,\"kind_name\":\"DEVICE_TO_HOST\",\"direction\":\"device to host\"" STREAM, AT(pin), AT(dev), AT(on));
    CALL(aclrtMemcpyAsync, (dev, 64, pin, 64, H2D, NULL), "64", "\"stream\":\"0x0\"");
    CALL(aclrtMemcpy2d, (dev, 64, pin, 32, 16, 3, H2D), "48", ENDS ",\"dst_pitch\":64,\"src_pitch\":32,\"width\":16,\"height\":3,\"count\":null",
         AT(dev), AT(pin));
    CALL(aclrtMemcpy2dAsync, (dev, 64, pin, 32, 16, 3, H2D, on), "48", "\"width\":16" STREAM, AT(on));
    CALL(aclrtMemset, (dev, 128, -1, 100), "100", "\"dst\":\"0x%" PRIx64 "\",\"src\":null,\"value\":-1,\"count\":100,\"dst_max\":128", AT(dev));
    CALL(aclrtMemsetD32Async, (dev, 128, 4000000000u, 10, on), "40", "\"value\":4000000000,\"count\":10,\"kind\":null" STREAM, AT(on));
    CALL(aclrtMemcpyFromSymbol, (pin, 64, variable, 32, 16, D2H), "32", ENDS ",\"src_offset\":16,\"dst_offset\":null,\"count\":32", AT(pin),
         AT(variable));
    CALL(aclrtMemcpyToSymbolAsync, (variable, pin, 8, 4, H2D, on), "8", ENDS ",\"src_offset\":null,\"dst_offset\":4,\"count\":8", AT(variable),
         AT(pin));
    struct batch b = fresh();
    b.sizes[1] = 10;
    CALL(aclrtMemcpyBatch, (ARGUMENTS(b), b.fail), "522", "\"items\":3,\"smallest\":10,\"largest\":256,\"direction\":\"host to device\"");
    CALL(aclrtMemcpyBatchAsyncV2, (ARGUMENTS(b), on), "522", "\"items\":3,\"kind\":null" STREAM, AT(on));
    b.first[0] = 1;
    CALL(aclrtMemcpyBatchV2, (ARGUMENTS(b)), "null", "\"items\":3,\"smallest\":null,\"direction\":null");
}

static void *thread(void *argument)
{
    MUST(aclrtSetDevice(0));
    for (int i = 0; i < *(int *)argument; i++) {
        /* One at a time: a line is whole, and a batch has its arrays for itself. */
        pthread_mutex_lock(&turn);
        round_of_calls(streams[i % 2]);
        pthread_mutex_unlock(&turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int rounds = atoi(argv[2]);
    open_world();
    ascendclSimRegisterSymbol(variable, sizeof variable);
    MUST(aclrtCreateStream(&streams[0]));
    MUST(aclrtCreateStream(&streams[1]));
    pthread_t threads[16];
    int count = atoi(argv[1]) < 16 ? atoi(argv[1]) : 16;
    for (int i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, thread, &rounds));
    for (int i = 0; i < count; i++)
        MUST(pthread_join(threads[i], NULL));
    MUST(aclrtSynchronizeStream(streams[0]));
    MUST(aclrtSynchronizeStream(streams[1]));
    fflush(stdout);
    if (argc > 3)
        aclrtMemcpy(pin, 4096, (void *)16, 4096, H2H);
    return 0;
}
