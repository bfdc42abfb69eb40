/* Says whether the shim is there; includes the header twice, as two other headers might. */
#include "aclshim.h"
#include "aclshim.h"
#include <stdio.h>

int main(void)
{
    printf("active %d\n", aclshim_active());
    return 0;
}
