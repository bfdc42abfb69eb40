"""Expectations that are not met, with and without another exception on its way."""

import sys

import aclshim
import device

aclshim.fail_exit(7)
try:
    with aclshim.scope("prefill") as scope:
        scope.expect_calls("aclrtMemcpyAsync direction=h2d", 2)
        scope.expect_bytes(at_least=1_000_000)
        device.up()
    print("not raised")
except AssertionError as error:
    print(type(error).__name__, error.failures, error)

try:
    with aclshim.scope("with an exception") as scope:
        scope.expect_calls(exactly=5)
        with aclshim.scope("inside"):
            device.up()
            raise KeyError("of the program")
except KeyError as error:
    print("KeyError", error)

# Both scopes have ended: the next one lies in none of them.
with aclshim.scope("afterwards") as scope:
    device.up()
    assert scope.count() == 1
print("failures", aclshim.failures())
sys.exit(0)
