"""Which tests `make check` leaves out because of their time; `make test` runs them all.

    python -m tests.slow

runs every test that needs no server, browser or torch, and writes slow.txt anew: the test functions of which a case
takes more than a twentieth of a second of processor time on average. They are two in five, and take most of the time.
A new test is not in the file, so `make check` runs it.

    python -m tests.run --note FOLDER
    python -m tests.slow --noted FOLDER

writes it from what a run of all tests took.
"""

import sys
from pathlib import Path

from tests import noting

FILE = Path(__file__).with_name("slow.txt")
SECONDS_A_CASE = 0.05


def listed() -> frozenset[str]:
    return noting.read_list(FILE)


def slow_ones(costs: noting.Costs) -> set[str]:
    return {name for name in costs.fast if costs.seconds[name] / costs.cases[name] > SECONDS_A_CASE}


def main() -> int:
    status, costs = 0, noting.noted("sqlite")
    if costs is None:
        status, costs = noting.note(["--fast", "--also-listed"])
    if status:
        print("slow.txt stays as it is: not every test passed.")
        return status
    found = slow_ones(costs)
    noting.write_list(FILE, "Test functions that `make check` leaves out because of their time. See slow.py.", found)
    kept = sum(costs.seconds[name] for name in costs.fast - found)
    print(f"{len(found)} of {len(costs.fast)} test functions are slow; the others take {kept:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
