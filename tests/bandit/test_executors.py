"""Blocks of scores worked on by an executor: the same results as by threads, few tiles at a time, and no wrong result
where it fails.
"""

import dataclasses
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from bandit import (
    DesignError,
    EpsilonGreedy,
    TestSet,
    WorkersDiffer,
    WorkersLost,
    draw_exhaustively,
    factored,
    find_cut,
    rank_of,
    shortlist,
)
from tests.bandit.test_factored import HAPPENED, some_factors

EXCLUDE = [0, 1, 13, 30, 41, 83]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(factored, "_COLUMNS", 3)
    monkeypatch.setattr(factored, "_BLOCK", 6)
    monkeypatch.setattr(factored, "_TILE", 6)
    monkeypatch.setattr(factored, "_LOOK_AGAIN", 0.01)


@pytest.fixture(scope="module")
def processes():
    """Two processes that have nothing of this one but what is sent to them."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


class Inline(Executor):
    """Does the work when it is sent, pickled on its way there and back as for another machine."""

    def __init__(self, change=lambda tile: tile):
        self.sent, self.received, self.change = [], [], change

    def submit(self, fn, tile):
        self.sent.append(pickle.dumps((fn, self.change(tile))))
        future = Future()
        try:
            work, there = pickle.loads(self.sent[-1])  # noqa: S301  our own bytes
            content = pickle.dumps(work(there))
            self.received.append(len(content))
            future.set_result(pickle.loads(content))  # noqa: S301
        except Exception as exc:
            future.set_exception(exc)
        return future


class Silent(Executor):
    """Never gives a result."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, tile):
        self.futures.append(Future())
        return self.futures[-1]


def place_and_scores(block):
    return block.outcome, block.evidence.tolist(), block.first_target, block.scores.tolist(), len(block.missing[0])


def own_process(_block):
    return os.getpid()


def die(_block):
    os._exit(1)


def fail(text, _block):
    raise TimeoutError(text)


@pytest.mark.parametrize("happened", [None, HAPPENED, np.ones(7, dtype=int)], ids=["all", "mixed", "all right"])
@pytest.mark.parametrize("tile", [1, 5, 6, 100])
def test_an_executor_gives_the_results_of_threads_in_their_order(happened, tile, monkeypatch):
    monkeypatch.setattr(factored, "_TILE", tile)
    scores = dataclasses.replace(some_factors(), happened=happened)
    expected = list(scores.map_blocks(place_and_scores, exclude=EXCLUDE, threads=2))
    assert list(scores.map_blocks(place_and_scores, exclude=EXCLUDE, executor=Inline())) == expected
    assert len(expected) > 4


@pytest.mark.slow
@pytest.mark.parametrize("design", [EpsilonGreedy(epsilon=0.4, top_fraction=0.3), TestSet(4, 2, 0.2, 0.2)])
@pytest.mark.parametrize("happened", [None, HAPPENED], ids=["all", "mixed"])
def test_other_processes_draw_the_same(design, happened, processes, monkeypatch):
    monkeypatch.setattr("bandit.exhaustive._RARE", 1)
    scores = dataclasses.replace(some_factors(largest=9), happened=happened)

    def drawn(**how):
        draw = draw_exhaustively(
            design=design, n=8, scores=scores, rng=np.random.default_rng(1), exclude=EXCLUDE, **how
        )
        listed = shortlist(scores, size=9, rng=np.random.default_rng(1), exclude=EXCLUDE, **how)
        return rank_of(draw.pairs, 7).tolist(), draw.inclusion_probability.tolist(), draw.strata, listed.tolist()

    assert drawn(executor=processes, threads=2) == drawn(threads=2)
    workers = set(scores.map_blocks(own_process, executor=processes))
    assert workers and os.getpid() not in workers


def test_a_tile_holds_its_own_factors_and_no_others(monkeypatch):
    """What is sent for a tile does not grow with the bank."""
    monkeypatch.setattr(factored, "_COLUMNS", 32)
    monkeypatch.setattr(factored, "_BLOCK", 32 * 32)
    monkeypatch.setattr(factored, "_TILE", 64)
    sizes = []
    for questions in (128, 512):
        scores = some_factors(questions=questions, rank=20)
        executor = Inline()
        assert sum(1 for _ in scores.map_blocks(own_process, executor=executor)) == 2 * (questions // 32) ** 2
        assert len(executor.sent) == 2 * (questions // 64) ** 2
        sizes.append(max(map(len, executor.sent)))
    assert sizes[1] < 1.1 * sizes[0] and sizes[0] < 2 * 64 * 20 + 4096


@pytest.mark.slow
@pytest.mark.parametrize("happened", [None, np.arange(600) % 2], ids=["all", "mixed"])
def test_what_comes_back_for_a_tile_stays_small_where_all_scores_are_alike(happened, monkeypatch):
    """Every score is in the window then: one by one they would be 16 million numbers a tile of a large bank."""
    monkeypatch.setattr(factored, "_COLUMNS", 100)
    monkeypatch.setattr(factored, "_BLOCK", 100 * 100)
    monkeypatch.setattr(factored, "_TILE", 300)
    seen = []
    scores = dataclasses.replace(
        some_factors(questions=600, largest=1, rank=2, bias=0),
        happened=happened,
        progress=lambda *place: seen.append(place),
    )
    executor = Inline()
    expected = find_cut(scores, count=1000, threads=2)
    by_threads, seen[:] = list(seen), []
    assert find_cut(scores, count=1000, executor=executor) == expected
    assert expected.tied > 10_000
    assert max(executor.received) < 2000 < 300 * 300
    assert seen[-1] == by_threads[-1] and seen[-1][0] == seen[-1][1] and len(seen) < len(by_threads)


def test_few_tiles_are_out_at_a_time_and_the_rest_is_cancelled():
    executor = Silent()

    def progress(_done, _of):
        if len(asked) == 3:
            raise InterruptedError
        asked.append(1)

    asked = []
    scores = dataclasses.replace(some_factors(questions=40), progress=progress)
    with pytest.raises(InterruptedError):
        list(scores.map_blocks(own_process, threads=2, executor=executor))
    assert len(executor.futures) == 5  # Two a worker, and the one that is waited for.
    assert all(future.cancelled() for future in executor.futures[1:])


def test_progress_is_said_while_there_is_no_result():
    seen, first = [], threading.Event()

    def progress(done, of):
        seen.append((done, of))
        if len(seen) == 3:
            first.set()

    scores = dataclasses.replace(some_factors(), progress=progress)
    executor = WaitsFor(first)
    count = sum(1 for _ in scores.map_blocks(own_process, executor=executor))
    executor.shutdown()
    assert {done for done, _of in seen[:3]} == {0} and {of for _done, of in seen} == {count}
    assert seen[-1] == (count, count) and [done for done, _of in seen] == sorted(done for done, _of in seen)


class WaitsFor(ThreadPoolExecutor):
    """A thread that begins with its work when something has happened."""

    def __init__(self, event):
        super().__init__(1)
        self.event = event

    def submit(self, fn, tile):
        return super().submit(lambda: self.event.wait(60) and fn(tile))


def test_an_executor_that_never_answers_is_lost(monkeypatch):
    monkeypatch.setattr(factored, "_PATIENCE", 0.05)
    executor = Silent()
    with pytest.raises(WorkersLost, match="gave no result"):
        list(some_factors().map_blocks(own_process, executor=executor))
    assert all(future.cancelled() for future in executor.futures)


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_and_no_result():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(WorkersLost, match="BrokenProcessPool"):
            list(some_factors().map_blocks(die, executor=pool))
        # What is sent to it later fails at once.
        with pytest.raises(WorkersLost, match="BrokenProcessPool"):
            list(some_factors().map_blocks(own_process, executor=pool))


def test_cancelled_work_is_an_error_and_no_result():
    class Cancels(Silent):
        def submit(self, fn, tile):
            future = super().submit(fn, tile)
            future.cancel()
            return future

    with pytest.raises(WorkersLost, match="CancelledError"):
        list(some_factors().map_blocks(own_process, executor=Cancels()))


def test_an_error_of_the_work_itself_comes_back_as_it_is():
    with pytest.raises(TimeoutError, match="of its own"):
        list(some_factors().map_blocks(partial(fail, "of its own"), executor=Inline()))


def test_a_worker_with_other_code_refuses():
    executor = Inline(lambda tile: dataclasses.replace(tile, code="0" * 64))
    with pytest.raises(WorkersDiffer, match="install the same version"):
        list(some_factors().map_blocks(own_process, executor=executor))


def test_an_executor_works_on_at_least_one_task_at_a_time():
    with pytest.raises(DesignError, match="threads: must be at least 1"):
        list(some_factors().map_blocks(own_process, executor=Inline(), threads=0))
