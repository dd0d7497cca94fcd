"""Run a command that dies with the process that started it. A script by path: imports only the standard library.

`python die_with_parent.py PARENT COMMAND…` asks the kernel (Linux) for a SIGKILL at the parent's death and becomes
COMMAND.
It is a separate program because code between fork and exec may deadlock in a parent that has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call above
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
