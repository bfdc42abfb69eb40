"""What a scope sees, and what it says afterwards."""

import aclshim
import device

assert aclshim.active()
aclshim.name_stream(device.stream, "loader")
aclshim.name_buffer(device.device, 16 * device.SIZE, "weights")
aclshim.mark("begin")

assert device.up() == 0  # outside of any scope
with aclshim.scope("outer") as outer:
    assert device.up() == 0
    with aclshim.scope("inner") as inner:
        assert device.up(count=100, at=8) == 0
        assert device.batch([64, 128]) == 0
        assert (inner.count(), inner.bytes()) == (2, 292), (inner.count(), inner.bytes())
        assert inner.count("aclrtMemcpyAsync direction=h2d size=..100 dst=weights stream=loader") == 1
        assert inner.count("aclrtMemcpyBatch*") == 1 and inner.count("direction=d2h") == 0
        one, many = inner.calls()
        assert one.function == "aclrtMemcpyAsync" and (one.count, one.bytes, one.items, one.kind) == (100, 100, 0, 1), one
        assert (one.dst, one.src, one.stream) == (device.device + 8, device.pinned + 8, device.stream), one
        assert (one.code, one.state, one.flags, one.order, one.has_stream) == (0, 0, 0, 0, 1), one
        assert (many.function, many.items, many.bytes, many.order) == ("aclrtMemcpyBatchAsync", 2, 192, 1), many
        assert [item.size for item in inner.items(many)] == [64, 128] and inner.items(0) == []
        assert inner.items(1)[1].dst == device.device + device.SIZE
        [finding] = inner.findings()
        assert (finding.rule, finding.function, finding.call) == ("ALIGN-64", "aclrtMemcpyAsync", 0), finding
        assert finding.severity == aclshim.Severity.PORTABILITY and finding.message and finding.fix, finding
        assert inner.findings("DEST-MAX") == []
        inner.expect_finding("ALIGN-64")
        inner.expect_clean()
        inner.expect_calls(exactly=2)
        inner.expect_calls("aclrtMemcpyAsync", at_least=1, at_most=5)
        inner.expect_bytes("direction=h2d", 292)
        inner.expect_order(device.stream, "aclrtMemcpyAsync", "aclrtMemcpyBatchAsync size=192")
    assert outer.count() == 3
    for _ in range(300):  # more than one room full of structures
        assert device.up(count=64) == 0
    assert len(outer.calls()) == 303 and outer.calls()[302].order == 302
assert aclshim.failures() == 0

with aclshim.scope("batches fail") as scope:
    assert scope.inject("aclrtMemcpyBatchAsync return=207000") == 1
    assert device.batch([64]) == 207000 and device.up() == 0
    assert scope.injected() == 1
assert device.batch([64]) == 0

for ask in (inner.count, inner.calls, lambda: inner.expect_calls(exactly=1), aclshim.scope("never begun").bytes):
    try:
        ask()
        raise SystemExit("a scope that is not open answers")
    except aclshim.Error as error:
        assert error.code == aclshim.ErrorCode.NO_SCOPE and "with" in str(error), error
with aclshim.scope("nonsense") as scope:
    try:
        scope.count("sise=7")
        raise SystemExit("nonsense is understood")
    except aclshim.Error as error:
        assert error.code == aclshim.ErrorCode.NONSENSE, error
print("done")
