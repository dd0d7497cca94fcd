"""Large reads do without the garbage collector, and it runs again afterwards."""

import gc

import pytest

from survey.services.base.garbage import collector_paused


def test_it_is_paused_inside_and_runs_again_also_after_an_error() -> None:
    def fail() -> None:
        with collector_paused():
            assert not gc.isenabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gc.isenabled()


def test_the_outermost_one_starts_it_again() -> None:
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
