"""A Dask cluster that works on blocks of scores, where HUNCH_COMPUTE names one. Imports bandit and exceptions.

Loaded when blocks are worked on, and never by a web process that only serves pages: `distributed` costs a second.
What is sent are factors of questions and what to count in their products: numbers of a bank, nothing of a person.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from distributed import Client
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from bandit.factored import code_sha256
from survey.exceptions import ComputeAway, ComputeRefused

# Each is generous: on a busy machine a worker needs seconds to start, and a step that gives up costs a try.
ANSWERS_WITHIN = 30  # seconds until the scheduler must have answered
WORKERS_WITHIN = 60  # seconds until it must have a worker
SCHEMES = {"dask": "tcp", "dask+tls": "tls"}


@contextmanager
def executor(address: str) -> Iterator[tuple[Executor, int]]:
    """What works on the cluster, and how many tasks it works on at a time.

    Raises:
        ComputeAway: the scheduler does not answer, has no workers, or loses them.
        ComputeRefused: the scheduler or a worker has other code than this process, or none of it.
    """
    with _connected(address) as client:
        threads = _threads(client, address)
        # Not pure: that would hash the factors of each task, to find one that was sent before.
        pool = client.get_executor(pure=False)
        try:
            yield pool, threads
        except (KilledWorker, CommClosedError) as exc:
            raise ComputeAway(f"HUNCH_COMPUTE: {address} has lost its workers ({type(exc).__name__})") from exc
        finally:
            pool.shutdown(wait=False)


def looked_at(address: str) -> tuple[int, int]:
    """How many workers the cluster has, and how many threads these have.

    Raises: as `executor`.
    """
    with _connected(address) as client:
        threads = _threads(client, address)
        return len(client.scheduler_info(n_workers=-1)["workers"]), threads


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    scheme, _, place = address.partition("://")
    try:
        client = Client(f"{SCHEMES[scheme]}://{place}", timeout=ANSWERS_WITHIN, set_as_default=False)
    except Exception as exc:  # Of the network, of TLS, or of what answers there and is no scheduler.
        raise ComputeAway(
            f"HUNCH_COMPUTE: no scheduler answers at {address} ({type(exc).__name__}); start it with dask scheduler, "
            "or unset HUNCH_COMPUTE and the threads of this machine work"
        ) from exc
    with client:
        yield client


def _threads(client: Client, address: str) -> int:
    """How many threads the workers have, once there is one, and all that are there have our code."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_WITHIN)
    except TimeoutError as exc:
        raise ComputeAway(
            f"HUNCH_COMPUTE: the scheduler at {address} has no workers; start some with dask worker"
        ) from exc
    try:
        # The scheduler reads what it passes on, so it needs the code too.
        codes: dict[str, Any] = {"its scheduler": client.run_on_scheduler(code_sha256), **client.run(code_sha256)}
    except CommClosedError as exc:
        raise ComputeAway(f"HUNCH_COMPUTE: a worker of {address} went away while it was asked") from exc
    except Exception as exc:
        raise ComputeRefused(
            f"HUNCH_COMPUTE: the scheduler or a worker of {address} cannot load the package bandit of this version "
            f'({type(exc).__name__}); run there: pip install "hunch[dask]", of the same version as here'
        ) from exc
    if others := sorted(worker for worker, code in codes.items() if code != code_sha256()):
        raise ComputeRefused(
            f"HUNCH_COMPUTE: {address}: {', '.join(others[:5])} with other code in the package bandit than this "
            "process has; install the same version of Hunch there and start them again"
        )
    return max(1, sum(client.nthreads().values()))
