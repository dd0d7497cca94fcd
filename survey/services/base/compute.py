"""Who works on blocks of scores: threads of this process, or the machines that HUNCH_COMPUTE names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from bandit.errors import WorkersDiffer, WorkersLost
from survey.exceptions import ComputeAway, ComputeRefused
from survey.processes import background


def check() -> None:
    """Check whether the cluster answers and has workers with our code, where HUNCH_COMPUTE names one.

    Raises:
        ComputeAway, ComputeRefused: it does not.
    """
    if settings.HUNCH_COMPUTE:
        from survey.processes import dask_cluster

        dask_cluster.looked_at(settings.HUNCH_COMPUTE)


@contextmanager
def workers() -> Iterator[dict[str, Any]]:
    """The arguments `threads` and `executor` of the functions of bandit that go through all scores.

    The results are the same no matter which process works. Inside, the linear algebra library takes one thread for each
    product, since more would wait for each other.

    Raises:
        ComputeAway: the cluster cannot be reached or was lost. The same work succeeds later.
        ComputeRefused: its workers have other code.
    """
    if settings.HUNCH_COMPUTE:
        from survey.processes import dask_cluster

        try:
            with dask_cluster.executor(settings.HUNCH_COMPUTE) as (executor, threads):
                yield {"threads": threads, "executor": executor}
        except WorkersLost as exc:
            raise ComputeAway(f"HUNCH_COMPUTE: {settings.HUNCH_COMPUTE}: {exc}; see the logs of its workers") from exc
        except WorkersDiffer as exc:
            raise ComputeRefused(f"HUNCH_COMPUTE: {settings.HUNCH_COMPUTE}: {exc}") from exc
        return
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:  # It comes with the extra `ml`. Without it the library's own threads do what they can.
        yield {"threads": 1}
        return
    with threadpool_limits(1, user_api="blas"):
        yield {"threads": settings.HUNCH_SCORING_THREADS or background.cores()}
