"""How a process that works for hours leaves the machine to the pages. Imports the standard library.

Called before numpy or torch are loaded: they read then how many threads they may start.
"""

import os
from contextlib import suppress
from pathlib import Path

NICENESS = 15
# Linux shares processor time between sessions before it looks at the niceness of processes (sched_autogroup). So nice
# alone counts only inside a session, and the process manager gives each service one of its own.
AUTOGROUP = Path("/proc/self/autogroup")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Set in this process's environment, which what it starts inherits.
HAS_STEPPED_BACK = "_HUNCH_HAS_STEPPED_BACK"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_in_background(cores: set[int]) -> set[int]:
    """All but the first one, and at least one."""
    return set(sorted(cores)[1:]) or cores


def niceness_of_session() -> int | None:
    """The niceness of this process's session as a whole. None: the kernel has none, or does not show it."""
    with suppress(OSError):  # No such file, as outside Linux.
        words = AUTOGROUP.read_text().split()
        return int(words[-1]) if words else None
    return None


def step_back() -> None:
    """Be nice to others, and leave one core to them. What this process starts inherits both.

    Done once: a pool's process is started by one that has stepped back already, and must not leave another core.
    """
    if os.environ.get(HAS_STEPPED_BACK):
        return
    os.environ[HAS_STEPPED_BACK] = "true"
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, str(max(1, cores() - 1)))
    # A waiting thread leaves its core to the web server. If it spun, a shared machine would be half as fast.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # It may be as nice already, as the unit of systemd starts it. Nobody but root may become less nice again.
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    if os.getsid(0) == os.getpid():  # Otherwise the session is somebody else's, such as a shell's.
        with suppress(OSError):  # Not on every kernel, and not in every container, where the group's share counts.
            AUTOGROUP.write_text(str(NICENESS))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores_in_background(os.sched_getaffinity(0)))
