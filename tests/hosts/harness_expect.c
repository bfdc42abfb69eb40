/* harness_expect WHAT: expectations that are met, and one kind that is not. The exit status is how many were not. */
#include "harness_host.h"

int main(int argc, char **argv)
{
    begin();
    const char *what = argc > 1 ? argv[1] : "";
    aclshim_name_stream(stream, "s1");
    aclshim_name_buffer(device, ROOM, "weights");
    aclshim_scope scope = aclshim_scope_begin("prefill", ACLSHIM_THIS_THREAD);
    int is = 0;
#define ON(name) if ((is = !strcmp(what, name) || !strcmp(what, "met")))
    int met = !strcmp(what, "met");
    ON("calls") aclshim_expect_calls(scope, "aclrtMemcpyAsync kind=H2D", met ? 3 : 2, met ? 3 : 2);
    ON("least") aclshim_expect_calls(scope, "aclrtMemset", met ? 0 : 1, UINT64_MAX);
    ON("most") aclshim_expect_calls(scope, NULL, 0, met ? 5 : 4);
    ON("bytes") aclshim_expect_bytes(scope, "stream=s1", met ? 192 : 100, met ? 192 : 191);
    ON("order") aclshim_expect_order(scope, stream, met ? "aclrtMemcpyAsync size=64; * size=128" : "size=64; size=4096;");
    ON("fewer") aclshim_expect_order(scope, stream, met ? "*;*" : "*;*;*");
    ON("none") aclshim_expect_order(scope, met ? other : stream, "");
    ON("finding") aclshim_expect_finding(scope, met ? "DEST-MAX" : "NULL-POINTER", 1);
    ON("clean") aclshim_expect_clean(scope, met ? ACLSHIM_PERF : ACLSHIM_ERROR);
    ON("golden") aclshim_expect_golden(scope, argc > 2 ? argv[2] : "golden.txt");
    if (argc > 3)
        aclshim_fail_exit(atoi(argv[3]));
    (void)is;
    up_on(stream, 64);
    up_on(stream, 128);
    up_on(NULL, 4096);
    aclrtMemcpy(device + 64, 32, pinned, 64, H2D); /* no room */
    batch(2, 256);
    int64_t failed = aclshim_scope_end(scope);
    if (failed != aclshim_failures())
        return 100;
    return argc > 3 ? 0 : (int)failed;
}
