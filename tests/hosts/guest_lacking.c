/* Linked lazily to a function that the library it meets does not have. */
#include "guest_host.h"

int main(void)
{
    limit();
    size_t at = 5;
    printf("copy %d\n", copy());
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        printf("batch %d\n", aclrtMemcpyBatch(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, &at));
    printf("at %zu\n", at);
    return 0;
}
