"""The module under a shim that is older or newer than it is."""

import sys

import aclshim

assert aclshim.active()
with aclshim.scope("any") as scope:
    assert scope.count() == 7
    assert scope.bytes() == 0
    assert scope.findings() == []
    scope.expect_calls(exactly=3)
    calls = scope.calls()
if sys.argv[1] == "older":
    assert calls == [], calls
else:
    assert [(call.function, call.count) for call in calls] == [(None, 0), ("aclrtMemcpy", 9)], calls
assert aclshim.failures() == 0
aclshim.fail_exit(3)
print("done")
