/* Sizes, offsets and numbers of the header, as the vendor's compiles them. */
#define _GNU_SOURCE
#include "conform.h"

#define SIZE_OF(type, size) want("size of " #type, (long long)sizeof(type), size)
#define AT(type, member, offset) want("offset of " #type "." #member, (long long)offsetof(type, member), offset)
#define IS(constant, value) want(#constant, (long long)(constant), value)
#define ALIGN_OF(type, align)                                                                   \
    do {                                                                                        \
        struct { char c; type t; } probe;                                                       \
        want("alignment of " #type, (long long)((char *)&probe.t - (char *)&probe), align);     \
    } while (0)

int main(void)
{
    SIZE_OF(aclError, 4);
    SIZE_OF(aclrtMemcpyKind, 4);
    SIZE_OF(aclrtMemLocationType, 4);
    SIZE_OF(aclrtRunMode, 4);
    SIZE_OF(aclmdlRICaptureMode, 4);
    SIZE_OF(aclrtHostRegisterType, 4);
    SIZE_OF(aclrtMemMallocPolicy, 4);
    SIZE_OF(aclrtStream, 8);

    SIZE_OF(aclrtMemLocation, 8);
    ALIGN_OF(aclrtMemLocation, 4);
    AT(aclrtMemLocation, id, 0);
    AT(aclrtMemLocation, type, 4);
    SIZE_OF(aclrtMemcpyBatchAttr, 32);
    ALIGN_OF(aclrtMemcpyBatchAttr, 4);
    AT(aclrtMemcpyBatchAttr, dstLoc, 0);
    AT(aclrtMemcpyBatchAttr, srcLoc, 8);
    AT(aclrtMemcpyBatchAttr, rsv, 16);
    SIZE_OF(aclrtPtrAttributes, 28);
    ALIGN_OF(aclrtPtrAttributes, 4);
    AT(aclrtPtrAttributes, location, 0);
    AT(aclrtPtrAttributes, pageSize, 8);
    AT(aclrtPtrAttributes, rsv, 12);
    SIZE_OF(aclrtMallocConfig, 16);
    AT(aclrtMallocConfig, attrs, 0);
    AT(aclrtMallocConfig, numAttrs, 8);
    SIZE_OF(aclrtMallocAttribute, 12);
    AT(aclrtMallocAttribute, attr, 0);
    AT(aclrtMallocAttribute, value, 4);
    SIZE_OF(aclrtPhysicalMemProp, 32);
    SIZE_OF(aclrtStreamConfigHandle, 32);

    IS(ACL_MEMCPY_HOST_TO_HOST, 0);
    IS(ACL_MEMCPY_HOST_TO_DEVICE, 1);
    IS(ACL_MEMCPY_DEVICE_TO_HOST, 2);
    IS(ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
    IS(ACL_MEMCPY_DEFAULT, 4);
    IS(ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, 5);
    IS(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, 6);
    IS(ACL_MEMCPY_INTER_DEVICE_TO_DEVICE, 7);
    IS(ACL_MEM_LOCATION_TYPE_HOST, 0);
    IS(ACL_MEM_LOCATION_TYPE_DEVICE, 1);
    IS(ACL_MEM_LOCATION_TYPE_UNREGISTERED, 2);
    IS(ACL_MEM_LOCATION_TYPE_MANAGED, 3);
    IS(ACL_MEM_LOCATION_TYPE_HOST_NUMA, 4);
    IS(ACL_DEVICE, 0);
    IS(ACL_HOST, 1);
    IS(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, 0);
    IS(ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL, 1);
    IS(ACL_MODEL_RI_CAPTURE_MODE_RELAXED, 2);
    IS(ACL_HOST_REGISTER_IOMEMORY, 4);
    IS(ACL_HOST_REGISTER_READONLY, 8);
    IS(ACL_HOST_REG_MAPPED, 2);
    IS(ACL_HOST_REG_PINNED, 0x10000000);
    IS(ACL_SUCCESS, OK);
    IS(ACL_ERROR_INVALID_PARAM, BAD);
    IS(ACL_ERROR_FAILURE, FAILURE);
    IS(ACL_ERROR_RT_PARAM_INVALID, PARAM);
    IS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, UNSUPPORTED);
    IS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, STREAM_TIMEOUT);
    return finish();
}
