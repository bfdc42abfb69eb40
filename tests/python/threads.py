"""Scopes of threads and of the whole process."""

import threading

import aclshim
import device

THREADS, ROUNDS = 4, 50
wrong, together = [], threading.Barrier(THREADS)


def work(number):
    try:
        device.need("aclrtSetDevice", 0)
        together.wait()
        for round in range(ROUNDS):
            with aclshim.scope(f"thread {number}") as scope:
                scope.expect_calls(exactly=number)
                for _ in range(number):
                    device.up(count=64 * number)
                assert scope.bytes() == 64 * number * number, scope.bytes()
                assert {call.thread for call in scope.calls()} <= {threading.get_native_id()}
    except BaseException as error:
        wrong.append(error)


with aclshim.scope("all", whole_process=True) as everything:
    with aclshim.scope("mine") as mine:
        threads = [threading.Thread(target=work, args=[number]) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert mine.count() == 0
        seen = []
        other = threading.Thread(target=lambda: seen.append(refused(mine)))

        def refused(scope):
            try:
                return scope.count()
            except aclshim.Error as error:
                return error.code

        other.start()
        other.join()
        assert seen == [aclshim.ErrorCode.THREAD], seen
    everything.expect_calls(exactly=ROUNDS * sum(range(THREADS)))
assert not wrong, wrong
print("done")
