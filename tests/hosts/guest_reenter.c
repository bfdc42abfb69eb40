/* The vendor calls its own public function once, from inside; the second call is plain again. */
#include "guest_host.h"

int main(void)
{
    limit();
    printf("code %d\n", copy());
    printf("code %d\n", copy());
    return 0;
}
