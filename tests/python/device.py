"""The simulated device for the programs here, by ctypes: a stream, device memory, pinned memory."""

import ctypes
from ctypes import byref, c_size_t, c_void_p

acl = ctypes.CDLL("libascendcl.so")
H2D, D2H = 1, 2
SIZE = 4096


def need(name, *arguments):
    code = getattr(acl, name)(*arguments)
    assert code == 0, (name, code)


def memory(function, *more):
    made = c_void_p()
    need(function, byref(made), c_size_t(16 * SIZE), *more)
    return made.value


need("aclInit", None)
need("aclrtSetDevice", 0)
made = c_void_p()
need("aclrtCreateStream", byref(made))
stream = made.value
device, pinned = memory("aclrtMalloc", 0), memory("aclrtMallocHost")


def up(count=SIZE, at=0):
    """One copy to the device; its code."""
    return acl.aclrtMemcpyAsync(
        c_void_p(device + at), c_size_t(16 * SIZE - at), c_void_p(pinned + at), c_size_t(count), H2D, c_void_p(stream)
    )


def batch(sizes):
    """Copies to the device in one call; its code."""
    pair, words = c_void_p * len(sizes), c_size_t * len(sizes)
    down = (ctypes.c_int * 8)(0, 1, 0, 0)  # aclrtMemcpyBatchAttr: to the device, from the host, nothing reserved
    failed, zero = c_size_t(0), c_size_t(0)
    places = range(0, SIZE * len(sizes), SIZE)
    dsts, srcs = pair(*(device + at for at in places)), pair(*(pinned + at for at in places))
    return acl.aclrtMemcpyBatchAsync(
        dsts, words(*sizes), srcs, words(*sizes), c_size_t(len(sizes)), byref(down), byref(zero), c_size_t(1),
        byref(failed), c_void_p(stream)
    )
