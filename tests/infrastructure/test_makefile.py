"""Which Python `make` takes: the first of 3.11 to 3.14 that runs, unless PYTHON names one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")
# The programs that the recipe needs besides Python.
TOOLS = ("cat", "cksum", "cut", "env", "head", "rm", "touch")


class Machine:
    """A path that holds make's tools and the Pythons that a test puts there, and no pyenv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or name)

    def add(self, name: str, program: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def add_python(self, name: str, version: tuple[int, int]) -> Path:
        """A fake Python that reports this version and records everything else that it is asked to run."""
        claim = f"import sys; sys.version_info = {(*version, 0)!r}; exec(sys.argv[2])"
        return self.add(
            name,
            f"""if [ "$1" = -c ]; then exec "{sys.executable}" -c '{claim}' "$@"; fi
echo "{name} $*" >> "{self.folder}/asked"; exit 3""",
        )

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=ROOT,
            env={"PATH": str(self.bin), "HOME": str(self.folder), "PYENV_ROOT": str(self.folder / "pyenv")},
            capture_output=True,
            text=True,
        )

    def install(self, *variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(MAKE), "install", f"VENV={self.folder}/venv", *variables)

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if MAKE is None:
        pytest.fail("make is not installed")
    return Machine(tmp_path)


def test_a_name_that_does_not_run_is_passed_over(machine: Machine) -> None:
    machine.add("python3.11", "echo 'pyenv: python3.11: command not found' >&2; exit 127")
    machine.add_python("python3.12", (3, 12))
    machine.add_python("python3.13", (3, 13))
    assert machine.run("tools/pythons.sh").stdout.split() == ["python3.12", "python3.13"]
    assert machine.install().returncode != 0  # It cannot make an environment here, but make chose it.
    assert machine.asked == [f"python3.12 -m venv {machine.folder}/venv"]


@pytest.mark.parametrize(("version", "taken"), [((3, 10), []), ((3, 14), ["python3"]), ((3, 15), [])])
def test_plain_python3_counts_where_it_is_in_the_range(
    machine: Machine, version: tuple[int, int], taken: list[str]
) -> None:
    machine.add_python("python3", version)
    assert machine.run("tools/pythons.sh").stdout.split() == taken


def test_a_version_that_pyenv_keeps_off_the_path_is_found(machine: Machine) -> None:
    python = machine.add_python("kept", (3, 13))
    kept = machine.folder / "pyenv" / "versions" / "3.13.2" / "bin"
    kept.mkdir(parents=True)
    python.rename(kept / "python")
    assert machine.run("tools/pythons.sh").stdout.split() == [str(kept / "python")]


def test_without_one_it_says_what_to_do(machine: Machine) -> None:
    run = machine.install()
    assert run.returncode != 0
    assert "No Python of 3.11 to 3.14 with venv was found. Install one" in run.stdout
    assert "make PYTHON=/path/to/python3" in run.stdout


def test_the_python_that_is_named_wins(machine: Machine) -> None:
    machine.add_python("python3.11", (3, 11))
    machine.add_python("mine", (3, 12))
    machine.install("PYTHON=mine")
    assert machine.asked == [f"mine -m venv {machine.folder}/venv"]


def test_one_that_is_named_and_too_old_is_refused_by_its_name(machine: Machine) -> None:
    machine.add_python("python3.11", (3, 11))
    machine.add_python("old", (3, 10))
    run = machine.install("PYTHON=old")
    assert run.returncode != 0
    assert "old is no Python of 3.11 or newer with venv." in run.stdout
    assert not (machine.folder / "asked").exists()
