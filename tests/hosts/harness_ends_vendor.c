/* A library on the vendor's side, for it has a function of the vendor's: what it copies by itself is no call inside
 * another one. */
#include "acl/acl.h"

int copies_by_itself(void);

aclError aclrtMemset(void *dst, size_t max, int32_t value, size_t count)
{
    (void)dst, (void)max, (void)value, (void)count;
    return copies_by_itself();
}

int copies_by_itself(void)
{
    int code = aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_HOST);
    __asm__ volatile("" ::: "memory"); /* not by a jump */
    return code;
}
