/* harness_ends_full: what a scope counts does not change when there is no room for records any more. */
#include "harness_host.h"

int copies_by_itself(void);

static void round_of(const char *what)
{
    aclshim_scope scope = aclshim_scope_begin("round", ACLSHIM_THIS_THREAD);
    copy();
    copies_by_itself();
    aclrtMemset(NULL, 0, 0, 0); /* copies inside */
    say(what, aclshim_count(scope, NULL));
    say("end", aclshim_scope_end(scope));
}

int main(void)
{
    limit();
    copy();
    round_of("with room");
    copies(1000);
    round_of("without");
    return 0;
}
