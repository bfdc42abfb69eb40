/* marks_all WHAT: annotates itself, and copies in between.
 *   names          a buffer and a stream get names; marks, one of which is meant to do harm
 *   scopes         the same within scopes, two of one name; another thread copies while one is open
 *   threads N M    N threads leave M marks each, with copies between them
 *   full           more marks than there is room for: says how many there were, and how many were refused
 *   fork           parent and child
 *   kill           and is gone */
#include "acl/acl.h"
#include "aclshim.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4096 };

static aclrtContext context;
static char *device, *host;
static aclrtStream stream;

static void begin(void)
{
    aclInit(NULL);
    aclrtSetDevice(0);
    aclrtGetCurrentContext(&context);
    aclrtCreateStream(&stream);
    aclrtMalloc((void **)&device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMallocHost((void **)&host, SIZE);
}

static void copy(size_t from, size_t size)
{
    aclrtMemcpy(device + from, SIZE - from, host, size, ACL_MEMCPY_HOST_TO_DEVICE);
}

static void copy_on_stream(size_t size)
{
    aclrtMemcpyAsync(host, SIZE, device, size, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    aclrtSynchronizeStream(stream);
}

static int names(void)
{
    char text[300];
    copy_on_stream(64); /* before it has a name */
    copy(0, 64);
    int64_t told = aclshim_mark("begin") | aclshim_name_stream(stream, "copies");
    told |= aclshim_name_buffer(device, SIZE, "weights");
    copy(128, 256);
    copy_on_stream(128);
    told |= aclshim_mark("\x1b[2J</script><b>\"harm\"</b>\n,'=1+1\xff");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    told |= aclshim_mark(text);
    told |= aclshim_name_buffer(device, SIZE, NULL);
    told |= aclshim_name_stream(stream, NULL);
    copy(0, 512);
    copy_on_stream(512);
    printf("%d %d %d %d\n", (int)told, (int)aclshim_mark(NULL), (int)aclshim_name_stream(NULL, "x"),
           (int)aclshim_name_buffer(device, 0, "x"));
    return 0;
}

static void *beside(void *unused)
{
    aclrtSetCurrentContext(context);
    copy(0, 1024);
    return unused;
}

static int scopes(void)
{
    pthread_t thread;
    copy(0, 64);
    aclshim_scope outer = aclshim_scope_begin("prefill", ACLSHIM_WHOLE_PROCESS);
    copy(0, 128);
    pthread_create(&thread, NULL, beside, NULL);
    pthread_join(thread, NULL);
    aclshim_scope inner = aclshim_scope_begin("layer <7>", ACLSHIM_THIS_THREAD);
    copy(0, 256);
    aclshim_mark("within");
    int64_t ends = aclshim_scope_end(inner);
    ends |= aclshim_scope_end(outer);
    copy(0, 512);
    outer = aclshim_scope_begin("prefill", ACLSHIM_THIS_THREAD);
    aclshim_expect_calls(outer, "", 7, 7);
    copy(0, 2048);
    int64_t failed = aclshim_scope_end(outer);
    printf("%d %d\n", (int)ends, (int)failed);
    return 0;
}

static int marks_of_each;

static void *marks(void *number)
{
    char text[100];
    aclrtSetCurrentContext(context);
    for (int i = 0; i < marks_of_each; i++) {
        snprintf(text, sizeof text, "%d/%d %.*s", (int)(intptr_t)number, i, i % 80,
                 "................................................................................");
        if (aclshim_mark(text) != 0)
            abort();
        copy(0, (size_t)i % SIZE);
    }
    return NULL;
}

static int threads(int count, int each)
{
    pthread_t all[16];
    marks_of_each = each;
    copy(0, 64); /* no thread has to wait for the ring file */
    for (int i = 0; i < count; i++)
        pthread_create(&all[i], NULL, marks, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    return 0;
}

static int full(void)
{
    enum { MARKS = 100 };
    int refused = 0;
    for (int i = 0; i < MARKS; i++)
        refused += aclshim_mark("this one takes two slots of a ring") != 0;
    printf("%d %d\n", MARKS, refused);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    begin();
    if (!strcmp(what, "names"))
        return names();
    if (!strcmp(what, "scopes"))
        return scopes();
    if (!strcmp(what, "threads"))
        return threads(atoi(argv[2]), atoi(argv[3]));
    if (!strcmp(what, "full"))
        return full();
    if (!strcmp(what, "fork")) {
        aclshim_mark("parent");
        copy(0, 64);
        pid_t child = fork();
        if (child == 0) {
            int failed = aclshim_mark("child") != 0;
            copy(0, 128);
            _exit(failed);
        }
        int status = 1;
        waitpid(child, &status, 0);
        aclshim_mark("parent again");
        return status;
    }
    if (!strcmp(what, "kill")) {
        aclshim_mark("before the end");
        copy(0, 64);
        aclshim_mark("and it is a long one, so that it does not fit into one slot of the ring");
        raise(SIGKILL);
    }
    return 1;
}
