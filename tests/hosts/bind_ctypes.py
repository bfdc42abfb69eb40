"""Every function, each called once, as a Python program calls them that opens the vendor's library by ctypes.

Prints what bind_calls.h prints.
"""
import ctypes
import sys
from ctypes import addressof, byref, c_char, c_int, c_size_t, c_uint64, c_void_p

acl = ctypes.CDLL("libascendcl.so")
acl.ascendclSimCalls.restype = c_uint64
H2D, D2H, D2D, INNER = 1, 2, 3, 6
SIZE = 1 << 16


class Attribute(ctypes.Structure):
    """aclrtMemcpyBatchAttr: the types of destination and source, and their reserved bytes."""

    _fields_ = [("dst_id", c_int), ("dst_type", c_int), ("src_id", c_int), ("src_type", c_int), ("rsv", c_char * 16)]


def need(name, *arguments):
    code = getattr(acl, name)(*arguments)
    if code != 0:
        sys.exit(f"{name}: {code}")


stream, device, pinned, returned = c_void_p(), c_void_p(), c_void_p(), c_void_p()
variable = (c_char * 2048)()
need("aclInit", None)
need("aclrtSetDevice", 0)
need("aclrtCreateStream", byref(stream))
need("aclrtMalloc", byref(device), c_size_t(SIZE), 0)
need("aclrtMallocHost", byref(pinned), c_size_t(SIZE))
need("aclrtMallocHost", byref(returned), c_size_t(SIZE))
need("ascendclSimRegisterSymbol", variable, c_size_t(2048))
ctypes.memmove(pinned, bytes((i * 7 + (i >> 8)) & 0xFF for i in range(SIZE)), SIZE)
ctypes.memset(returned, 0, SIZE)
results = []


def dev(at):
    return c_void_p(device.value + at)


def pin(at):
    return c_void_p(pinned.value + at)


def back(at):
    return c_void_p(returned.value + at)


def do(name, size, *arguments):
    """One call; numbers are size_t unless they say otherwise."""
    arguments = [c_size_t(a) if isinstance(a, int) else a for a in arguments]
    results.append((name, getattr(acl, name)(*arguments), size))
    need("aclrtSynchronizeStream", stream)


def batch(to, start, sizes):
    attr = Attribute(dst_type=1)
    pair, words = c_void_p * 2, c_size_t * 2
    dsts = pair(*(dev(to + 512 * i).value for i in range(2)))
    srcs = pair(*(pin(start + 512 * i).value for i in range(2)))
    return [dsts, words(512, 512), srcs, words(*sizes), 2, byref(attr), words(0, 0), 1]


cells = (c_void_p * 2)(dev(0x9000).value, dev(0x1000).value)
ctypes.memmove(pinned, addressof(cells), 16)
failed, desc_size = c_size_t(0), c_size_t(0)
desc = dev(0xF000 + (-device.value & 63))
do("aclrtMemcpy", SIZE, dev(0), SIZE, pin(0), SIZE, H2D)
do("aclrtMemcpyAsync", 1001, dev(0x4000), 2000, dev(0x100), 1001, D2D, stream)
do("aclrtMemcpy2d", 300, back(0x8000), 64, dev(0x200), 32, 30, 10, D2H)
do("aclrtMemcpy2dAsync", 341, back(0x8400), 64, dev(0x300), 32, 31, 11, D2H, stream)
do("aclrtMemcpyBatch", 503, *batch(0x5000, 0x400, (201, 302)), byref(failed))
do("aclrtMemcpyBatchV2", 504, *batch(0x5400, 0x800, (201, 303)))
do("aclrtMemcpyBatchAsync", 505, *batch(0x5800, 0xC00, (201, 304)), byref(failed), stream)
do("aclrtMemcpyBatchAsyncV2", 506, *batch(0x5C00, 0x1000, (201, 305)), stream)
do("aclrtMemcpyAsyncWithOffset", 701, dev(0), 2000, 16, dev(8), 701, 32, INNER, stream)
do("aclrtGetMemcpyDescSize", 0, INNER, byref(desc_size))
do("aclrtSetMemcpyDesc", 0, desc, INNER, dev(0x1000), dev(0xA000), 800, None)
do("aclrtMemcpyAsyncWithDesc", 0, desc, INNER, stream)
do("aclrtMemcpyToSymbol", 101, variable, pin(0x40), 101, 5, H2D)
do("aclrtMemcpyFromSymbol", 102, back(0x9000), 2000, variable, 102, 4, D2H)
do("aclrtMemcpyToSymbolAsync", 103, variable, pin(0x80), 103, 600, H2D, stream)
do("aclrtMemcpyFromSymbolAsync", 104, back(0x9100), 2000, variable, 104, 599, D2H, stream)
do("aclrtMemset", 41, back(0xA000), 64, 0x5A, 41)
do("aclrtMemsetAsync", 42, back(0xA040), 64, 0x5B, 42, stream)
do("aclrtMemsetD32", 52, back(0xA080), 64, 0x01020304, 13)
do("aclrtMemsetD32Async", 56, back(0xA0C0), 64, 0x05060708, 14, stream)
do("aclrtMemcpyAsyncWithCondition", 0x7003, back(0), SIZE, dev(0x4000), 0x7003, D2H, stream)

for name, code, size in results:
    print(f"{name} code={code} vendor={acl.ascendclSimCalls(name.encode())} bytes={size}")
total = desc_size.value
for byte in ctypes.string_at(returned, SIZE):
    total = (total * 31 + byte) & 0xFFFF_FFFF_FFFF_FFFF
print(f"copied back: {total}, failed item: {ctypes.c_ssize_t(failed.value).value}")
