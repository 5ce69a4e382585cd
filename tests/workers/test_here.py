"""This process as an engine."""

import pytest

from dqd.workers.here import Here


def test_what_is_submitted_is_done_at_once():
    here, done = Here(), []
    task = here.submit(done.append, 3)
    assert done == [3]
    assert here.wait([task], None) == [task]
    assert here.result(task) is None
    assert here.result(here.submit(max, 2, 5)) == 5


def test_an_error_waits_until_it_is_asked_for_and_ctrl_c_does_not():
    def fail(error):
        raise error

    task = Here().submit(fail, ArithmeticError("diverged"))
    assert isinstance(task.exception(), ArithmeticError)
    with pytest.raises(ArithmeticError, match="diverged"):
        Here().result(task)
    with pytest.raises(KeyboardInterrupt):
        Here().submit(fail, KeyboardInterrupt())
