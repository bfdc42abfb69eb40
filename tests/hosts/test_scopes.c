/* test_scopes CASE: a test program with the harness, which goes as CASE says: well, or with a copy too many, or leaves a
 * scope open, and with "gone" nobody can say so any more. It expects what it breaks. */
#include "aclshim.h"
#include "check_host.h"

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "well";
    open_world();
    aclshim_name_buffer(dev, 4096, "cache");
    aclshim_name_stream(stream, "upload");
    aclshim_scope scope = aclshim_scope_begin("prefill", ACLSHIM_THIS_THREAD);
    aclshim_expect_calls(scope, "aclrtMemcpy", 1, 1);
    aclshim_expect_clean(scope, ACLSHIM_VIOLATION);
    good_copy();
    if (strcmp(how, "extra") == 0)
        good_copy();
    if (strcmp(how, "open") == 0)
        return 0;
    if (strcmp(how, "gone") == 0)
        _exit(0);
    aclshim_scope_end(scope);
    scope = aclshim_scope_begin("refused", ACLSHIM_THIS_THREAD);
    aclshim_expect_finding(scope, "DEST-MAX", 1);
    if (strcmp(how, "golden") == 0)
        aclshim_expect_golden(scope, "refused.golden");
    aclrtMemcpy(dev, 63, pin, 64, H2D);
    aclrtMemcpyAsync(dev + 128, 64, pin, 64, H2D, stream);
    aclshim_scope_end(scope);
    return 0;
}
