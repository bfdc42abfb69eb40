/* Calls every function of the header once, with a scope if there is one: what each returns. C99 and C++. */
#include "aclshim.h"
#include "acl/acl.h"
#include "aclshim.h"
#include <stdio.h>

int main(void)
{
    struct aclshim_call calls[2];
    struct aclshim_item items[2];
    struct aclshim_finding findings[2];
    int stream = 0;
    aclshim_scope scope = aclshim_scope_begin("all", ACLSHIM_WHOLE_PROCESS);
    long long returned[] = {
        aclshim_active(),
        aclshim_count(scope, NULL),
        aclshim_bytes(scope, "aclrtMemcpy*"),
        aclshim_calls(scope, NULL, calls, 2),
        aclshim_items(scope, 0, items, 2),
        aclshim_findings(scope, NULL, findings, 2),
        aclshim_expect_calls(scope, NULL, 0, UINT64_MAX),
        aclshim_expect_bytes(scope, NULL, 0, 0),
        aclshim_expect_order(scope, NULL, ""),
        aclshim_expect_finding(scope, "NULL-POINTER", 0),
        aclshim_expect_clean(scope, ACLSHIM_VIOLATION),
        aclshim_expect_golden(scope, "golden.txt"),
        aclshim_inject(scope, "aclrtMemcpy nth=1 return=207000"),
        aclshim_injected(scope),
        aclshim_mark("here"),
        aclshim_name_stream(&stream, "copies"),
        aclshim_name_buffer(&stream, sizeof stream, "word"),
        aclshim_fail_exit(3),
        aclshim_scope_end(scope),
        aclshim_failures(),
    };
    printf("scope %s", scope > 0 ? "yes" : scope == 0 ? "0" : "error");
    for (size_t i = 0; i < sizeof returned / sizeof returned[0]; i++)
        printf(" %lld", returned[i]);
    printf("\n");
    return 0;
}
