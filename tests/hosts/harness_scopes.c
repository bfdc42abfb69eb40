/* harness_scopes WHAT: what scopes see.
 *   counts   by function, kind, direction, size, code, stream, name and module; calls, items and findings
 *   nested   scopes in scopes, of a thread and of the process, with another thread beside
 *   left     a call that the vendor never returns from, and one that it calls itself in
 *   first    the very first copy of the process
 *   refused  a good call, and one that breaks a rule
 *   inject   calls that are made to fail, by their place in the order and by names, in one scope and not after it */
#include "harness_host.h"
#include <setjmp.h>

static void show(const struct aclshim_call *call)
{
    printf("#%" PRIu64 " %s count %" PRIu64 " bytes %" PRIu64 " items %" PRIu64 " %" PRIu64 "x%" PRIu64 " kind %d way %d"
           " stream %d code %d state %d flags %d findings %" PRIu64 "%s%s\n",
           call->order, call->function, call->count, call->bytes, call->items, call->width, call->height, call->kind,
           call->direction, call->has_stream, call->code, call->state, call->flags, call->findings,
           call->state == ACLSHIM_DONE && call->duration_ns == 0 ? " no time" : "",
           call->thread == (uint64_t)getpid() ? "" : " elsewhere");
}

static int counts(void)
{
    struct aclshim_call calls[16];
    struct aclshim_item items[4];
    struct aclshim_finding findings[16];
    aclshim_name_stream(stream, "copies");
    aclshim_name_buffer(device, 4096, "weights");
    up(64); /* before */
    aclshim_scope scope = aclshim_scope_begin("counts", ACLSHIM_THIS_THREAD);
    up(4096);
    up_on(stream, 64);
    up_on(NULL, 128);
    aclrtMemcpy2d(device, 256, pinned, 256, 100, 3, H2D);
    batch(3, 256);
    aclrtMemset(device, 64, 1, 64);
    aclrtMemcpy(pinned, 32, device + 8192, 64, D2H); /* no room */
    aclshim_name_buffer(device, 4096, NULL);
    const char *selectors[] = {"",       "aclrtMemcpy", "aclrtMemcpy*", "kind=H2D",    "direction=h2d", "direction=d2h",
                               "code=0", "code=failed", "size=64",      "size=65..4K", "stream=copies", "stream=default",
                               "stream=none", "dst=weights", "dst=weights stream=none size=100..", "site=*harness_scopes*",
                               "site=libnone.so"};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++)
        printf("%s: %" PRId64 " calls, %" PRId64 " bytes\n", selectors[i], aclshim_count(scope, selectors[i]),
               aclshim_bytes(scope, selectors[i]));
    int64_t n = aclshim_calls(scope, NULL, calls, 16);
    for (int64_t i = 0; i < n; i++)
        show(&calls[i]);
    n = aclshim_items(scope, 4, items, 4);
    for (int64_t i = 0; i < n; i++)
        printf("item %td %td %" PRIu64 " %" PRIu64 "\n", (char *)items[i].dst - device, (char *)items[i].src - pinned,
               items[i].dst_max, items[i].size);
    n = aclshim_findings(scope, NULL, findings, 16);
    for (int64_t i = 0; i < n; i++)
        printf("finding %s %s %s severity %d code %d index %" PRId64 " call %" PRIu64 " %d %d\n", findings[i].rule,
               findings[i].function, findings[i].argument, findings[i].severity, findings[i].code, findings[i].index,
               findings[i].call, strstr(findings[i].message, "count = 64") != NULL, strlen(findings[i].fix) > 10);
    say("of the rule", aclshim_findings(scope, "DEST-MAX", findings, 16));
    say("of another", aclshim_findings(scope, "NULL-POINTER", findings, 16));
    say("end", aclshim_scope_end(scope));
    up(64); /* after */
    say("after", aclshim_count(scope, NULL));
    return 0;
}

static aclshim_scope whole, mine;

static void *beside(void *argument)
{
    (void)argument;
    aclrtSetCurrentContext(context);
    up(64);
    say("another's scope", aclshim_count(mine, NULL));
    say("another's end", aclshim_scope_end(mine));
    say("of all", aclshim_count(whole, NULL));
    aclshim_scope own = aclshim_scope_begin("own", ACLSHIM_THIS_THREAD);
    up(128);
    say("own", aclshim_count(own, NULL));
    say("own end", aclshim_scope_end(own));
    return NULL;
}

static int nested(void)
{
    whole = aclshim_scope_begin("whole", ACLSHIM_WHOLE_PROCESS);
    up(1);
    mine = aclshim_scope_begin("mine", ACLSHIM_THIS_THREAD);
    aclshim_scope inner = aclshim_scope_begin("inner", ACLSHIM_THIS_THREAD);
    up(2);
    run(beside);
    say("wrong order", aclshim_scope_end(mine));
    say("wrong order too", aclshim_scope_end(whole));
    say("inner", aclshim_count(inner, NULL));
    say("inner end", aclshim_scope_end(inner));
    up(3);
    say("mine", aclshim_count(mine, NULL));
    say("mine bytes", aclshim_bytes(mine, NULL));
    say("mine end", aclshim_scope_end(mine));
    say("whole", aclshim_count(whole, NULL));
    say("whole bytes", aclshim_bytes(whole, NULL));
    say("whole end", aclshim_scope_end(whole));
    return 0;
}

static jmp_buf back;
static aclshim_scope asked;

static int left(void)
{
    struct aclshim_call calls[4];
    asked = aclshim_scope_begin("left", ACLSHIM_WHOLE_PROCESS);
    ascendclSimSetJump(&back);
    if (setjmp(back) == 0)
        up(64);
    ascendclSimSetJump(NULL);
    say("left", aclshim_calls(asked, NULL, calls, 4));
    show(&calls[0]);
    up(128);
    int64_t n = aclshim_calls(asked, NULL, calls, 4);
    for (int64_t i = 0; i < n; i++)
        show(&calls[i]);
    say("bytes", aclshim_bytes(asked, NULL));
    say("end", aclshim_scope_end(asked));
    return 0;
}

static int first(void)
{
    aclshim_scope scope = aclshim_scope_begin("first", ACLSHIM_THIS_THREAD);
    say("code", aclrtMemcpyAsync(device + 4096, 64, device, 64, ACL_MEMCPY_HOST_TO_HOST, stream));
    struct aclshim_finding finding;
    say("findings", aclshim_findings(scope, "ASYNC-HOST-TO-HOST", &finding, 1));
    say("end", aclshim_scope_end(scope));
    return 0;
}

static int inject(void)
{
    struct aclshim_call calls[8];
    aclshim_name_buffer(device, 4096, "weights");
    aclshim_scope scope = aclshim_scope_begin("inject", ACLSHIM_THIS_THREAD);
    say("set", aclshim_inject(scope, "aclrtMemcpy nth=2 return=207000; dst=weights aclrtMemset then_return=5"));
    say("first", up(64));
    say("second", up(64));
    say("named", aclrtMemset(device, 64, 1, 64));
    say("not named", aclrtMemset(device + 8192, 64, 1, 64));
    say("struck", aclshim_injected(scope));
    int64_t n = aclshim_calls(scope, NULL, calls, 8);
    for (int64_t i = 0; i < n; i++)
        show(&calls[i]);
    say("end", aclshim_scope_end(scope));
    say("after", aclrtMemset(device, 64, 1, 64));
    say("struck after", aclshim_injected(scope));
    return 0;
}

static int refused(void)
{
    struct aclshim_call calls[4] = {{0}};
    aclshim_scope scope = aclshim_scope_begin("refused", ACLSHIM_THIS_THREAD);
    say("good", up(64));
    say("no room", aclrtMemcpy(device, 63, pinned, 64, H2D));
    say("calls", aclshim_calls(scope, NULL, calls, 4));
    say("flags", calls[0].flags);
    say("flags", calls[1].flags);
    say("refused", (calls[1].flags & ACLSHIM_WAS_REFUSED) != 0);
    say("end", aclshim_scope_end(scope));
    return 0;
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "counts"))
        return counts();
    if (!strcmp(argv[1], "nested"))
        return nested();
    if (!strcmp(argv[1], "left"))
        return left();
    if (!strcmp(argv[1], "refused"))
        return refused();
    if (!strcmp(argv[1], "inject"))
        return inject();
    return first();
}
