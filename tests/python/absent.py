"""Everything once, without the shim: nothing is said, nothing is objected to."""

import aclshim
import device

assert not aclshim.active()
aclshim.mark("nobody reads this")
aclshim.name_stream(device.stream, "a")
aclshim.name_buffer(device.device, 10, "b")
aclshim.fail_exit(3)
with aclshim.scope("unwatched") as scope:
    assert device.up() == 0
    scope.expect_calls("not even a selector =", 17)
    scope.expect_bytes(at_least=10**9)
    scope.expect_order(None, "a", "b")
    scope.expect_finding("NO-SUCH-RULE", 3)
    scope.expect_clean()
    scope.expect_golden("/no/such/file")
    assert scope.inject("return=1") == 0 and scope.injected() == 0
    assert (scope.count("*"), scope.bytes(), scope.calls(), scope.findings(), scope.items(0)) == (0, 0, [], [], [])
    assert device.up() == 0
assert aclshim.failures() == 0
print("done")
