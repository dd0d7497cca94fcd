"""Which Python `make` takes: the first of 3.11 to 3.14 that runs, and of several with one name the fastest. PYTHON may
name another."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
        self.path = [self.bin]
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or name)

    def add(self, name: str, program: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def add_python(self, name: str, version: tuple[int, int], *, seconds: int = 1) -> Path:
        """A fake Python that reports this version and that any work takes so long, and records everything else that it
        is asked to run."""
        clock = f"import itertools, time; time.process_time = itertools.count(step={seconds}).__next__"
        claim = f"import sys; sys.version_info = {(*version, 0)!r}; {clock}; exec(sys.argv[2])"
        return self.add(
            name,
            f"""if [ "$1" = -c ]; then exec "{sys.executable}" -c '{claim}' "$@"; fi
echo "{name} $*" >> "{self.folder}/asked"; exit 3""",
        )

    def add_folder(self, name: str) -> "Machine":
        """Another folder, at the end of the path."""
        other = object.__new__(Machine)
        other.folder, other.bin = self.folder, self.folder / name
        other.bin.mkdir()
        self.path.append(other.bin)
        return other

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=ROOT,
            env={
                "PATH": ":".join(map(str, self.path)),
                "HOME": str(self.folder),
                "PYENV_ROOT": str(self.folder / "pyenv"),
            },
            capture_output=True,
            text=True,
        )

    def install(self, *variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(MAKE), "install", f"VENV={self.folder}/venv", *variables)

    def found(self) -> list[str]:
        return self.run("tools/pythons.sh").stdout.splitlines()

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
    paths = [machine.add_python("python3.12", (3, 12)), machine.add_python("python3.13", (3, 13))]
    assert machine.found() == list(map(str, paths))
    assert machine.install().returncode != 0  # It cannot make an environment here, but make chose it.
    assert machine.asked == [f"python3.12 -m venv {machine.folder}/venv"]


@pytest.mark.parametrize(("version", "taken"), [((3, 10), []), ((3, 14), ["python3"]), ((3, 15), [])])
def test_plain_python3_counts_where_it_is_in_the_range(
    machine: Machine, version: tuple[int, int], taken: list[str]
) -> None:
    machine.add_python("python3", version)
    assert [Path(python).name for python in machine.found()] == taken


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seconds", "first"), [((9, 9), "bin"), ((9, 8), "more python"), ((10, 9), "bin"), ((8, 9), "bin")]
)
def test_of_two_with_one_name_the_fastest_comes_first_and_equals_stand_as_on_the_path(
    machine: Machine, seconds: tuple[int, int], first: str
) -> None:
    more = machine.add_folder("more python")
    same = machine.add_folder("same")
    paths = [machine.add_python("python3.11", (3, 11), seconds=seconds[0])]
    paths.append(more.add_python("python3.11", (3, 11), seconds=seconds[1]))
    (same.bin / "python3.11").symlink_to(paths[1])
    paths.append(machine.add_python("python3.12", (3, 12)))
    listed = machine.found()
    assert sorted(listed) == sorted(map(str, paths)) and Path(listed[0]).parent.name == first
    assert listed[2] == str(paths[2]), "another name is no reason to measure"


def test_a_version_that_pyenv_keeps_off_the_path_is_found(machine: Machine) -> None:
    python = machine.add_python("kept", (3, 13))
    folder = machine.folder / "pyenv" / "versions" / "3.13.2" / "bin"
    folder.mkdir(parents=True)
    python.rename(folder / "python")
    assert machine.found() == [str(folder / "python")]


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
