"""aclshim for Python programs: what did this piece of code copy, and was it right?

    import aclshim

    with aclshim.scope("prefill") as scope:
        scope.expect_calls("aclrtMemcpyAsync direction=h2d", exactly=2)
        scope.expect_clean()
        model.prefill(tokens)

When the block ends, what was expected and did not happen is printed on standard error, call by call, and
`aclshim.NotMet` is raised, which is an AssertionError. An exception of the block itself passes through.

One file, no dependency, nothing to install: copy it, or put its folder on PYTHONPATH. The same program runs without
the shim: `active()` is then False, scopes see nothing and object to nothing, and every other function does nothing.
(`aclshim test -- python3 program.py`, or LD_PRELOAD, loads the shim.)

Selectors ("which calls") and injections are the texts of include/aclshim.h. What the functions there return as an error
is raised as `aclshim.Error`. A scope belongs to the thread that began it, unless it is one of the whole process; in
asyncio, where tasks share a thread, it also sees what other tasks copy while the block waits.
"""

import ctypes
import enum
import os
from collections import namedtuple
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

__all__ = [
    "Call", "Error", "ErrorCode", "Finding", "Item", "NotMet", "Scope", "Severity", "active", "fail_exit", "failures",
    "mark", "name_buffer", "name_stream", "scope",
]


class ErrorCode(enum.IntEnum):
    """enum aclshim_error: why a function could not do what it was asked for."""

    INVALID = -1
    NO_SCOPE = -2
    ROOM = -3
    NONSENSE = -4
    BUSY = -5
    REFUSED = -7
    MEMORY = -8
    ORDER = -9
    THREAD = -10


_REASONS = {
    ErrorCode.INVALID: "an argument is out of range",
    ErrorCode.NO_SCOPE: "the scope has ended, or was begun before a fork: ask inside of its `with` block",
    ErrorCode.NONSENSE: "a text cannot be read; standard error says what is wrong with it",
    ErrorCode.BUSY: "called from a signal handler that has interrupted the harness",
    ErrorCode.REFUSED: "injection is refused under the production preset",
    ErrorCode.MEMORY: "no memory left for it",
    ErrorCode.ORDER: "a scope that was begun inside of this one is still open",
    ErrorCode.THREAD: "the scope is another thread's",
}


class Severity(enum.IntEnum):
    """enum aclshim_severity: how bad a finding is, rising."""

    PORTABILITY = 0
    PERF = 1
    VIOLATION = 2
    ERROR = 3


class Error(RuntimeError):
    """A function of the harness could not do what it was asked for; `code` says why."""

    def __init__(self, function, code):
        self.code = ErrorCode(code) if code in ErrorCode._value2member_map_ else code
        super().__init__(f"aclshim_{function}: {_REASONS.get(self.code, f'error {code}')}")


class NotMet(AssertionError):
    """What was expected of a scope did not happen; `failures` is how much of it."""

    def __init__(self, name, failures):
        self.failures = failures
        what = "1 expectation was" if failures == 1 else f"{failures} expectations were"
        super().__init__(f'scope "{name}": {what} not met; standard error says what happened')


# The structures of include/aclshim.h. Their sizes go along with each call, so that both sides may grow.


class _Call(ctypes.Structure):
    _fields_ = [
        ("function", c_char_p), ("dst", c_void_p), ("src", c_void_p), ("dst_max", c_uint64), ("count", c_uint64),
        ("bytes", c_uint64), ("items", c_uint64), ("width", c_uint64), ("height", c_uint64), ("dst_pitch", c_uint64),
        ("src_pitch", c_uint64), ("kind", c_int32), ("direction", c_int32), ("stream", c_void_p),
        ("has_stream", c_int32), ("code", c_int32), ("state", c_int32), ("flags", c_int32), ("duration_ns", c_uint64),
        ("thread", c_uint64), ("order", c_uint64), ("site", c_void_p), ("findings", c_uint64),
    ]


class _Item(ctypes.Structure):
    _fields_ = [("dst", c_void_p), ("src", c_void_p), ("dst_max", c_uint64), ("size", c_uint64)]


class _Finding(ctypes.Structure):
    _fields_ = [
        ("rule", c_char_p), ("function", c_char_p), ("argument", c_char_p), ("message", c_char_p), ("fix", c_char_p),
        ("severity", c_int32), ("code", c_int32), ("index", c_int64), ("values", c_uint64 * 2), ("call", c_uint64),
    ]


def _tuple_of(structure, doc):
    made = namedtuple(structure.__name__[1:], [name for name, _ in structure._fields_])
    made.__doc__ = doc
    return made


Call = _tuple_of(_Call, "A call, as struct aclshim_call: addresses are numbers, `stream` is None for the default stream.")
Item = _tuple_of(_Item, "An item of a batch, as struct aclshim_item.")
Finding = _tuple_of(_Finding, "Something that is wrong with a call, as struct aclshim_finding.")

_NUMBER = c_int64
_SCOPE, _TEXT = c_int64, c_char_p
_RANGE = (_SCOPE, _TEXT, c_uint64, c_uint64)


class _Harness(ctypes.Structure):
    """The table that the shim exports; members are only ever added at the end."""

    _fields_ = [("size", c_uint32), ("version", c_uint32)] + [
        (name, ctypes.CFUNCTYPE(returned, *arguments))
        for name, returned, *arguments in [
            ("active", c_int),
            ("scope_begin", _SCOPE, _TEXT, c_int),
            ("scope_end", _NUMBER, _SCOPE),
            ("count", _NUMBER, _SCOPE, _TEXT),
            ("bytes", _NUMBER, _SCOPE, _TEXT),
            ("calls", _NUMBER, _SCOPE, _TEXT, POINTER(_Call), c_size_t, c_size_t),
            ("items", _NUMBER, _SCOPE, c_uint64, POINTER(_Item), c_size_t, c_size_t),
            ("findings", _NUMBER, _SCOPE, _TEXT, POINTER(_Finding), c_size_t, c_size_t),
            ("expect_calls", _NUMBER, *_RANGE),
            ("expect_bytes", _NUMBER, *_RANGE),
            ("expect_order", _NUMBER, _SCOPE, c_void_p, _TEXT),
            ("expect_finding", _NUMBER, _SCOPE, _TEXT, c_uint64),
            ("expect_clean", _NUMBER, _SCOPE, c_int),
            ("expect_golden", _NUMBER, _SCOPE, _TEXT),
            ("inject", _NUMBER, _SCOPE, _TEXT),
            ("injected", _NUMBER, _SCOPE),
            ("mark", _NUMBER, _TEXT),
            ("name_stream", _NUMBER, c_void_p, _TEXT),
            ("name_buffer", _NUMBER, c_void_p, c_size_t, _TEXT),
            ("failures", _NUMBER),
            ("fail_exit", _NUMBER, c_int),
        ]
    ]


_found = None


def _table():
    """The loaded shim's table, or None. What is not there may still come: a drop-in library brings it along."""
    global _found
    if _found is None:
        # Preloaded or linked it is seen by everybody; brought along by a library that Python opened, by its name only.
        for name, mode in ((None, ctypes.DEFAULT_MODE), ("libaclshim.so", os.RTLD_NOLOAD | os.RTLD_NOW)):
            try:
                _found = _Harness.in_dll(ctypes.CDLL(name, mode=mode), "aclshim_harness")
                break
            except (OSError, ValueError):
                pass
    return _found


def _ask(name, *arguments):
    """Calls a function of the table: 0 where there is none, also in a shim that is older than this file."""
    table = _table()
    if table is None or getattr(_Harness, name).offset >= table.size:
        return 0
    function = getattr(table, name)
    return function(*arguments) if function else 0


def _told(name, *arguments):
    """The same, where what is negative is an error."""
    answer = _ask(name, *arguments)
    if answer < 0:
        raise Error(name, answer)
    return answer


def _encoded(text):
    return None if text is None else os.fsencode(text)


def _decoded(value):
    """A member of a structure as Python has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, ctypes.Array) else value


class Scope:
    """What the block of a `with` statement copies. Made by `scope`."""

    def __init__(self, name, whole_process=False):
        self.name = name
        self._reach = 1 if whole_process else 0
        self._id = -1  # no scope yet: asking is an error. 0 is one that nobody watches

    def __enter__(self):
        self._id = _told("scope_begin", _encoded(self.name), self._reach)
        return self

    def __exit__(self, kind, error, traceback):
        if self._id == 0:
            return
        failures = _ask("scope_end", self._id)
        if kind is not None:
            return  # what went wrong first is what the caller should see
        if failures < 0:
            raise Error("scope_end", failures)
        if failures > 0:
            raise NotMet(self.name, failures)

    def _ask(self, name, *arguments):
        return _told(name, self._id, *arguments) if self._id else 0

    def _list(self, name, which, structure, made):
        """The structures that a function fills: there may be more of them each time, if other threads copy."""
        room = 64
        while self._id:
            array = (structure * room)()
            filled = _ask(name, self._id, which, array, ctypes.sizeof(structure), room)
            if filled >= 0:
                return [made(*(_decoded(getattr(one, field)) for field in made._fields)) for one in array[:filled]]
            if filled != ErrorCode.ROOM:
                raise Error(name, filled)
            room *= 4
        return []

    def count(self, selector=None):
        """How many calls there were so far."""
        return self._ask("count", _encoded(selector))

    def bytes(self, selector=None):
        """How many bytes they have moved or set."""
        return self._ask("bytes", _encoded(selector))

    def calls(self, selector=None):
        """The calls so far, in order: a list of `Call`."""
        return self._list("calls", _encoded(selector), _Call, Call)

    def items(self, call):
        """The items of a batch: a list of `Item`. `call` is a `Call` or its `order`."""
        return self._list("items", getattr(call, "order", call), _Item, Item)

    def findings(self, rule=None):
        """What is wrong with the calls so far: a list of `Finding`."""
        return self._list("findings", _encoded(rule), _Finding, Finding)

    def expect_calls(self, selector=None, exactly=None, *, at_least=0, at_most=None):
        """Expects so many calls when the block ends."""
        self._ask("expect_calls", _encoded(selector), *_limits(exactly, at_least, at_most))

    def expect_bytes(self, selector=None, exactly=None, *, at_least=0, at_most=None):
        """Expects so many bytes when the block ends."""
        self._ask("expect_bytes", _encoded(selector), *_limits(exactly, at_least, at_most))

    def expect_order(self, stream, *selectors):
        """Expects the calls on a stream (an address, or None) to be these, one selector each."""
        self._ask("expect_order", stream, _encoded(";".join(selectors)))

    def expect_finding(self, rule, count=1):
        """Expects a rule to be broken exactly so often."""
        self._ask("expect_finding", _encoded(rule), count)

    def expect_clean(self, severity=Severity.PORTABILITY):
        """Expects no finding of at least this severity, but the expected ones."""
        self._ask("expect_clean", severity)

    def expect_golden(self, path):
        """Expects the calls to be those of a golden file; ACLSHIM_GOLDEN=update writes it."""
        self._ask("expect_golden", _encoded(path))

    def inject(self, injections):
        """Makes calls fail or dawdle until the block ends. Returns how many injections were set."""
        return self._ask("inject", _encoded(injections))

    def injected(self):
        """How often one has struck."""
        return self._ask("injected")


def _limits(exactly, at_least, at_most):
    if exactly is not None:
        return exactly, exactly
    return at_least, 2**64 - 1 if at_most is None else at_most


def scope(name="", *, whole_process=False):
    """A scope for a `with` statement: of this thread, or of all threads."""
    return Scope(name, whole_process)


def active():
    """Whether the shim is loaded and sees this process's copies."""
    return _ask("active") == 1


def mark(text):
    """Leaves a mark in records and reports, at this moment of this thread."""
    _told("mark", _encoded(text))


def name_stream(stream, name):
    """Names a stream (its address, such as torch.npu.current_stream().npu_stream); None takes the name back."""
    _told("name_stream", stream, _encoded(name))


def name_buffer(begin, size, name):
    """Names a piece of memory (such as tensor.data_ptr(), tensor.nbytes); None takes the names in it back."""
    _told("name_buffer", begin, size, _encoded(name))


def failures():
    """How many expectations were not met in this process so far."""
    return _told("failures")


def fail_exit(status=1):
    """If the process exits with 0 although an expectation was not met, it exits with this status instead."""
    _told("fail_exit", status)
