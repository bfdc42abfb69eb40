/*
 * Stand-in, used only where CANN is not installed (see acl.h): memory that is
 * taken and given back in stream order. The vendor keeps it in a header of
 * its own too.
 */
#ifndef ACLSHIM_STAND_IN_ACL_RT_MEMORY_SOMA_H
#define ACLSHIM_STAND_IN_ACL_RT_MEMORY_SOMA_H

#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtMemPool;

aclError aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream);
aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
