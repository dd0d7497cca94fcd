"""Puts small faults into a room of the code, one at a time, and lists those that no test notices.

    make mutants ARGS=survey/panels                       20 faults in that folder or file
    make mutants ARGS="bandit --tests tests/bandit"       noticed by these tests alone
    make mutants ARGS="survey/panels --faults 60 --seed 2 --minutes 90"

The faults are cosmic-ray's: another operator, comparison, number or branch, a loop that never runs, a decorator or an
exception that is gone. One more is ours: a keyword argument left out, as a condition of a query or a part of a key.
They are a random sample of lines, the same for the same seed and code. Texts for people, annotations, caches and what
data classes are made with are left alone.

Which tests run a line is recorded once for each file of tests (coverage, with a context for each test) and kept in
var/mutants until that file, or a file of a room that it runs, has changed. Each fault gets the tests that run its line,
the quickest of each file first, until one fails. Everything runs in a copy of the working tree, which is removed at the
end. What runs in processes that a test starts is not recorded; tests in a browser and those for PostgreSQL alone are
left out.
"""

import argparse
import ast
import difflib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import coverage
import parso
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
STORED = ROOT / "var" / "mutants"
MEASURED = ("bandit", "frontend", "predictors", "survey", "tools")
LEFT_OUT = ["-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not browser and not postgresql"]
# Faults that change nothing, or that Python itself refuses: other types of the same small number, a cache that is gone.
NOT_TRIED = (
    "VariableReplacer",
    "VariableInserter",
    "_Eq_Is",
    "_Eq_IsNot",
    "_NotEq_Is",
    "_NotEq_IsNot",
    "_Is_",
    "_IsNot_",
)
ALWAYS_TRIED = ("_Is_IsNot", "_IsNot_Is")
CACHES = ("cache", "cached_property", "lru_cache", "override", "overload")
# What people read. Whether a sentence is the right one, a test of that sentence says.
READ_BY_PEOPLE = (
    "debug",
    "info",
    "warning",
    "error",
    "exception",
    "critical",
    "write",
    "_",
    "gettext",
    "gettext_lazy",
    "print",
)
NAMES_FOR_PEOPLE = (
    "help",
    "help_text",
    "verbose_name",
    "verbose_name_plural",
    "description",
    "hint",
    "label",
    "ordering",
)
NOT_LOOKED_INTO = ("__str__", "__repr__", "Meta")
OWN_SECONDS, START_SECONDS = 4.0, 60.0  # How many times the recorded time a fault may take, and what comes on top.


class LeaveOutArgument(Operator):
    """`f(a, b=1)` becomes `f(a)`: one keyword argument of a call less."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "argument" and node.children[1] == "=" and _is_of_a_call(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return parso.python.tree.PythonNode(
            "argument", [parso.python.tree.Operator("**", node.start_pos), _nothing(node)]
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("f(a, b=1)", "f(a, **{})"),)


def _is_of_a_call(node: Any) -> bool:
    while node.type in ("argument", "arglist"):
        node = node.parent
    return node.type == "trailer"


def _nothing(node: Any) -> Any:
    return parso.python.tree.Name("{}", node.end_pos)


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    lines: frozenset[int]  # Of the statement in which it is.
    operator: str
    occurrence: int

    def code(self, source: str) -> str | None:
        operator = LeaveOutArgument() if self.operator == LeaveOutArgument.__name__ else get_operator(self.operator)()
        return mutate_code(source, operator, self.occurrence)


@dataclass
class Outcome:
    fault: Fault
    diff: str
    state: str  # noticed, not noticed, not run, out of time
    tests: int = 0
    of: int = 0


# The faults of a file


def faults_of(path: str, source: str) -> Iterator[Fault]:
    tree, nodes = ast.parse(source), list(ast_nodes(get_ast(source)))
    spared = set(_spared_lines(tree))
    places = _statements(tree)
    operators = [(name, get_operator(name)) for name in operator_names() if _is_tried(name)]
    for name, kind in [*operators, (LeaveOutArgument.__name__, LeaveOutArgument)]:
        operator = kind()
        places_of_it = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, (line, column)) in enumerate(places_of_it):
            if (line, None) in spared or (line, column) in spared or _is_a_cache(node):
                continue
            if name == LeaveOutArgument.__name__ and node.children[0].value in NAMES_FOR_PEOPLE:
                continue
            yield Fault(path, line, places.get(line, frozenset([line])), name, occurrence)


def _is_tried(name: str) -> bool:
    return name.endswith(ALWAYS_TRIED) or not any(part in name for part in NOT_TRIED)


def _is_a_cache(node: Any) -> bool:
    return node.type == "decorator" and any(name in node.get_code().split("(")[0] for name in CACHES)


def _spared_lines(tree: ast.AST) -> Iterator[tuple[int, int | None]]:
    """Whole lines (with None), and places in lines, at which a fault says nothing: annotations and texts for people."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in NOT_LOOKED_INTO:
            yield from _lines(node)
        elif isinstance(node, ast.ClassDef):
            # Whether a data class may be changed or compared: nobody does either.
            for decorator in node.decorator_list:
                if "dataclass" in ast.unparse(decorator):
                    yield from _places(decorator)
        elif (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")) or isinstance(
            node, ast.Import | ast.ImportFrom
        ):
            yield from _lines(node)
        elif isinstance(node, ast.Call) and _last_name(node.func) in READ_BY_PEOPLE:
            yield from chain.from_iterable(_places(argument) for argument in [*node.args, *node.keywords])
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from chain.from_iterable(_places(argument) for argument in node.exc.args)
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield from _places(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield from _places(node.returns)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _lines(node: Any) -> Iterator[tuple[int, None]]:
    return ((line, None) for line in range(node.lineno, node.end_lineno + 1))


def _places(node: Any) -> Iterator[tuple[int, int | None]]:
    """Every place of a node: whole lines between its first and its last one."""
    for line in range(node.lineno, node.end_lineno + 1):
        first = node.col_offset if line == node.lineno else 0
        last = node.end_col_offset if line == node.end_lineno else 400
        yield from ((line, column) for column in range(first, last))


def _statements(tree: ast.AST) -> dict[int, frozenset[int]]:
    """The lines of the innermost statement of each line; of one with a body its head alone."""
    places: dict[int, frozenset[int]] = {}
    for node in ast.walk(tree):  # Outer ones come first.
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = frozenset(range(first, max(last, node.lineno) + 1))
            places.update(dict.fromkeys(lines, lines))
    return places


def sample(faults: list[Fault], seed: int) -> Iterator[Fault]:
    """One fault of a line, in random order of lines: a line with many places is no likelier than another one, and no
    kind of fault on a line likelier because there are many of that kind."""
    by_line: dict[tuple[str, int], dict[str, list[Fault]]] = {}
    for fault in faults:
        by_kind = by_line.setdefault((fault.path, fault.line), {})
        by_kind.setdefault(fault.operator.partition("_")[0], []).append(fault)
    rng = random.Random(seed)
    for place in rng.sample(sorted(by_line), len(by_line)):
        yield rng.choice(rng.choice(list(by_line[place].values())))


# The copy, and processes in it


@contextmanager
def copied_tree() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hunch-mutants-"))
    try:
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        if (migrated := ROOT / ".pytest_cache" / "migrated").is_dir():
            shutil.copytree(migrated, folder / ".pytest_cache" / "migrated")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_in(folder: Path, command: list[str], *, limit: float, show: bool = False) -> int | None:
    """The exit status; nothing after `limit` seconds of processor time, or four times as many on the clock.

    On a busy machine a process takes long but little processor time: only an endless loop reaches the first limit.
    """
    with tempfile.TemporaryDirectory(prefix="tests-", dir=folder) as own:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "CI"},
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": "",
            "HUNCH_TEST_FOLDER": own,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "",
            "OMP_NUM_THREADS": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=None if show else subprocess.DEVNULL,
            stderr=None if show else subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2)),
        )
        try:
            return process.wait(timeout=4 * limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)  # So that it ends its own servers.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# Which tests run which lines


class Contexts:
    """The plugin of a recorded run: a context for each test, and what each took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.red: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        measured = coverage.Coverage.current()
        if measured is not None:
            measured.switch_context(item.nodeid)
        yield
        if measured is not None:
            measured.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.red.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        green = {name: seconds for name, seconds in self.seconds.items() if name not in self.red}
        Path(os.environ["HUNCH_MUTANTS_SECONDS"]).write_text(json.dumps(green), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Contexts())


@dataclass
class Record:
    """What is kept in var/mutants: runs, each with its data, and which run holds which file of tests."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _data: dict[str, coverage.CoverageData] = field(default_factory=dict)

    @classmethod
    def read(cls) -> "Record":
        file = STORED / "runs.json"
        return cls(json.loads(file.read_text(encoding="utf-8")) if file.exists() else {})

    def data(self, run: str) -> coverage.CoverageData:
        if run not in self._data:
            self._data[run] = coverage.CoverageData(str(STORED / run), suffix=False)
            self._data[run].read()
        return self._data[run]

    def stale(self, tests: Mapping[str, str], room: Mapping[str, str]) -> list[str]:
        """Files of tests that are new or other than recorded, or ran a file of the room that is another one now."""
        newest = self._newest()
        return [
            name
            for name, digest in tests.items()
            if name not in newest
            or self.runs[newest[name]]["tests"][name] != digest
            or any(name in self._files_that_ran(newest[name], path) for path in self._changed(newest[name], room))
        ]

    def _changed(self, run: str, room: Mapping[str, str]) -> list[str]:
        sources = self.runs[run]["sources"]
        return [path for path, digest in room.items() if sources.get(path) not in (None, digest)]

    def _files_that_ran(self, run: str, path: str) -> set[str]:
        return {name.partition("::")[0] for name in self._contexts(run, path)}

    def _contexts(self, run: str, path: str) -> set[str]:
        return set(chain.from_iterable(self.data(run).contexts_by_lineno(path).values())) - {""}

    def _newest(self) -> dict[str, str]:
        return {
            name: run
            for run, about in sorted(self.runs.items(), key=lambda item: item[1]["at"])
            for name in about["tests"]
        }

    def make(self, folder: Path, tests: Mapping[str, str], sources: Mapping[str, str], limit: float) -> None:
        digest = hashlib.sha256(json.dumps([sorted(tests.items()), sorted(sources.items())]).encode()).hexdigest()[:16]
        STORED.mkdir(parents=True, exist_ok=True)
        (folder / "coverage.ini").write_text(
            f"[run]\ncore = ctrace\nrelative_files = true\ndata_file = {STORED / digest}\n"
            f"source = {','.join(MEASURED)}\nomit = */migrations/*\n",
            encoding="utf-8",
        )
        seconds = STORED / f"{digest}.json"
        os.environ["HUNCH_MUTANTS_SECONDS"] = str(seconds)
        (STORED / digest).unlink(missing_ok=True)
        command = ["coverage", "run", "--rcfile=coverage.ini", "-m", "pytest", "-p", "tests.mutants", "-q", *LEFT_OUT]
        run_in(folder, [*command, *tests], limit=limit, show=True)
        if not seconds.exists() or not (STORED / digest).exists():
            sys.exit("The tests could not be recorded: see above.")
        took = json.loads(seconds.read_text(encoding="utf-8"))
        seconds.unlink()
        self.runs[digest] = {"at": time.time(), "tests": dict(tests), "sources": dict(sources), "seconds": took}
        newest = set(self._newest().values())
        for run in [run for run in self.runs if run not in newest]:
            del self.runs[run]
            (STORED / run).unlink(missing_ok=True)
        (STORED / "runs.json").write_text(json.dumps(self.runs), encoding="utf-8")

    def tests_of(self, fault: Fault, files: Mapping[str, str]) -> list[tuple[str, float]]:
        """Green tests that run a line of its statement, with the seconds each took: the quickest of each file first,
        file by file. A line that only an import runs is run by every test that runs the file."""
        newest = self._newest()
        by_file: dict[str, list[tuple[float, str]]] = {}
        for run in sorted({newest[name] for name in files}):
            by_line = self.data(run).contexts_by_lineno(fault.path)
            names = set(chain.from_iterable(by_line.get(line, ()) for line in fault.lines))
            if names == {""}:
                names = self._contexts(run, fault.path)
            for name in names - {""}:
                file, seconds = name.partition("::")[0], self.runs[run]["seconds"].get(name)
                if file in files and newest[file] == run and seconds is not None:
                    by_file.setdefault(file, []).append((seconds, name))
        rounds = zip_longest(*(sorted(names) for _, names in sorted(by_file.items())))
        return [(pair[1], pair[0]) for pair in chain.from_iterable(rounds) if pair is not None]


# Trying them


def try_fault(folder: Path, fault: Fault, tests: list[tuple[str, float]], most_seconds: float) -> Outcome | None:
    """Nothing where the fault is no Python, or changes nothing in it."""
    file = folder / fault.path
    source = file.read_text(encoding="utf-8")
    code = fault.code(source)
    try:
        if code is None or ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    lines = difflib.unified_diff(source.splitlines(), code.splitlines(), fault.path, fault.path, lineterm="", n=1)
    outcome = Outcome(fault, "\n".join(list(lines)[2:]), "not run", of=len(tests))
    chosen: list[str] = []
    seconds = 0.0
    for name, own in tests:
        if chosen and seconds + own > most_seconds:
            continue
        chosen.append(name)
        seconds += own
    outcome.tests = len(chosen)
    if not chosen:
        return outcome
    (folder / "chosen.txt").write_text("\n".join(chosen), encoding="utf-8")
    try:
        file.write_text(code, encoding="utf-8")
        os.utime(file, (time.time(), time.time() + random.Random(code).randrange(1, 10**6)))  # No bytecode of before.
        status = run_in(
            folder, ["pytest", "-x", "-q", *LEFT_OUT, "@chosen.txt"], limit=START_SECONDS + OWN_SECONDS * seconds
        )
    finally:
        file.write_text(source, encoding="utf-8")
    if status is None:
        outcome.state = "out of time"
    else:
        outcome.state = "not noticed" if status == 0 else "noticed"
    return outcome


def digests(folder: Path, names: list[str]) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] for name in sorted(names)}


def files_under(folder: Path, names: list[str], pattern: str) -> list[str]:
    files: set[str] = set()
    for name in names:
        path = folder / name
        if not path.exists():
            sys.exit(f"{name}: there is no such file or folder. Name them from the top of the repository.")
        every = [path] if path.is_file() else path.rglob(pattern)
        files.update(str(path.relative_to(folder)) for path in every if "migrations" not in path.parts)
    return sorted(files)


def print_outcome(outcome: Outcome) -> None:
    some = f"{outcome.tests} of {outcome.of} tests that run it" if outcome.tests < outcome.of else f"{outcome.of} tests"
    print(f"\n{outcome.fault.path}:{outcome.fault.line}  {outcome.state} ({some})\n{outcome.diff}", flush=True)


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", nargs="+", help="folders or files of the code, such as survey/panels")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PATH", help="folders or files of tests")
    parser.add_argument("--faults", type=int, default=20, metavar="N", help="so many (20)")
    parser.add_argument("--seed", type=int, default=0, help="another sample")
    parser.add_argument(
        "--minutes", type=float, default=30, help="no further fault after so many (30), recording left out"
    )
    parser.add_argument("--seconds", type=float, default=60, help="tests of one fault, as recorded (60)")
    parser.add_argument(
        "--least", type=float, default=85, metavar="PERCENT", help="exit with 1 where less is noticed (85)"
    )
    parser.add_argument("--record", action="store_true", help="record these tests again, whatever is kept")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    chosen = read_arguments(arguments)
    with copied_tree() as folder:
        room = digests(folder, files_under(folder, chosen.room, "*.py"))
        tests = digests(folder, files_under(folder, chosen.tests, "test_*.py"))
        record = Record.read()
        if stale := list(tests) if chosen.record else record.stale(tests, room):
            print(f"Recording which tests run which lines: {len(stale)} files of tests.", flush=True)
            sources = digests(folder, files_under(folder, list(MEASURED), "*.py"))
            record.make(folder, {name: tests[name] for name in stale}, sources, limit=4 * 3600)
        faults = [fault for path in room for fault in faults_of(path, (folder / path).read_text(encoding="utf-8"))]
        outcomes = try_sample(folder, sample(faults, chosen.seed), record, tests, chosen)
    return report(outcomes, chosen.least)


def try_sample(
    folder: Path, faults: Iterator[Fault], record: Record, tests: Mapping[str, str], chosen: argparse.Namespace
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    until = time.monotonic() + 60 * chosen.minutes
    for fault in faults:
        if len(outcomes) >= chosen.faults or time.monotonic() > until:
            break
        outcome = try_fault(folder, fault, record.tests_of(fault, tests), chosen.seconds)
        if outcome is not None:
            outcomes.append(outcome)
            print("." if outcome.state == "noticed" else "F", end="", flush=True)
    return outcomes


def report(outcomes: list[Outcome], least: float) -> int:
    """The exit status: 0 where enough was noticed, 1 where less, 2 where nothing could be tried."""
    for outcome in outcomes:
        if outcome.state != "noticed":
            print_outcome(outcome)
    decided = [outcome for outcome in outcomes if outcome.state != "out of time"]
    noticed = sum(outcome.state == "noticed" for outcome in decided)
    if not decided:
        print("\nNothing could be tried.")
        return 2
    undecided = f"; {len(outcomes) - len(decided)} out of time" if len(decided) < len(outcomes) else ""
    print(f"\n{noticed} of {len(decided)} faults noticed: {100 * noticed / len(decided):.0f} %{undecided}.")
    return int(100 * noticed < least * len(decided))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
