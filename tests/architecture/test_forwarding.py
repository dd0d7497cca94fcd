"""What only hands a value on: a name that nobody reads, an argument that does not go further, an option without effect.

A call that loses an argument still runs, with the default in its place. What is handed on is too much for a test of
each; here all calls are read.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

ROOT = Path(__file__).parents[2]
PACKAGES = ("survey", "frontend", "bandit", "predictors")
# What others call with these arguments: Django its pages of errors, migrations a step, a reader of files its kinds.
CALLED_FROM_OUTSIDE = ("frontend/views.py", "survey/models/audit_triggers.py", "predictors/datasets.py")
# Calls that leave out an argument of a name that they know, each with why: caller, callee, argument.
LEFT_OUT = {
    ("sum_error", "money", "currency"): "people type the sum, with or without the currency",
    ("_combined", "combine", "share"): "stages are shares, their sum is not cut again",
    ("prepare", "cut_texts", "progress"): "says how many contexts are made, which take longer",
    ("work_out", "estimate", "rng"): "one person's loss needs no interval by resampling",
    ("sections", "stage_outcomes", "now"): "what a stage has found does not depend on the time",
    ("_store", "close_stage", "now"): "closed when it is closed, after what was looked at",
    ("file_named", "extra_files", "with_pay"): "the instrument's own files have no pay",
    ("read_storage", "read_text", "default"): "another default: of the part, not of the whole",
    ("_question", "begin_sitting", "levels"): "set on the sitting afterwards, which checks nothing",
    ("staying_chances", "fit_logistic", "cluster"): "predictions alone are read, and no errors",
    ("cross_fitted_chances", "fit_logistic", "cluster"): "of people who were not fitted, predictions alone",
    ("make_measures", "make", "above"): "models are compared over all measures at once",
    ("_texts", "check_programs", "tables"): "a package always has the tables that they read",
    ("draw_exhaustively", "_mixed", "scores"): "a uniform draw has none",
    ("split", "_dealt", "labels"): "people are dealt without labels",
    ("cross_predict", "predict_on", "progress"): "counted by folds",
    ("pages", "call", "params"): "the address of a next page has them",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, tuple[Path, ast.Module]]:
    """Every module of ours by its name."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    known = {}
    for path in paths:
        if "migrations" not in path.parts:
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            known[name] = (path, ast.parse(path.read_text(encoding="utf-8")))
    return known


@cache
def nodes_of(name: str) -> list[ast.AST]:
    return list(ast.walk(modules()[name][1]))


def parameters(function: Function) -> list[str]:
    of = function.args
    return [argument.arg for argument in (*of.posonlyargs, *of.args, *of.kwonlyargs)]


def optional(function: Function) -> dict[str, int | None]:
    """Parameters with a default, and their place; None for what is given by name alone."""
    of = function.args
    places = [argument.arg for argument in (*of.posonlyargs, *of.args)]
    by_place: dict[str, int | None] = {name: places.index(name) for name in places[len(places) - len(of.defaults) :]}
    named = zip(of.kwonlyargs, of.kw_defaults, strict=True)
    return {**by_place, **{argument.arg: None for argument, default in named if default is not None}}


def names_in(function: Function) -> set[str]:
    return {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}


def test_ruff_finds_no_unused_name() -> None:
    """In `make test` too, where a line that went missing often leaves one behind."""
    done = subprocess.run(
        [Path(sys.executable).with_name("ruff"), "check", "--no-cache", "--quiet", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Parameters that nobody reads


def handed_about(nodes: list[ast.AST]) -> Counter[str]:
    """Names of functions that are used other than by calling them: their parameters are somebody else's contract."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    loaded = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute) and id(node) not in called)
    return Counter(node.id if isinstance(node, ast.Name) else node.attr for node in loaded)


def says_nothing_else(function: Function) -> bool:
    """A method that waits to be overridden: it refuses, or answers with a constant."""
    lines = [
        line for line in function.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
    ]
    return all(
        isinstance(line, ast.Raise | ast.Pass)
        or (isinstance(line, ast.Return) and not any(isinstance(node, ast.Name) for node in ast.walk(line)))
        for line in lines
    )


def own_functions() -> Iterator[tuple[Path, Function]]:
    """Functions and methods whose parameters are ours to choose: no contract names them."""
    everywhere: Counter[str] = Counter()
    methods: Counter[str] = Counter()
    for name in modules():
        everywhere.update(handed_about(nodes_of(name)))
        classes = (node for node in nodes_of(name) if isinstance(node, ast.ClassDef))
        methods.update(part.name for node in classes for part in node.body if isinstance(part, Function))
    for name, (path, _tree) in modules().items():
        for owner in nodes_of(name):
            if not isinstance(owner, ast.ClassDef | ast.Module):
                continue
            for function in owner.body:
                if not isinstance(function, Function) or says_nothing_else(function):
                    continue
                if isinstance(owner, ast.Module):
                    is_own = not everywhere[function.name] and not function.decorator_list
                else:
                    is_private = methods[function.name] == 1 and function.name.startswith("_")
                    is_own = function.name == "handle" or (is_private and not everywhere[function.name])
                if is_own:
                    yield path, function


def test_every_parameter_is_read() -> None:
    unread = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {name}"
        for path, function in own_functions()
        if str(path.relative_to(ROOT)) not in CALLED_FROM_OUTSIDE
        for name in parameters(function)
        if name not in ("self", "cls", "request") and not name.startswith("_") and name not in names_in(function)
    ]
    assert unread == []


def test_every_option_of_a_command_is_read() -> None:
    """As a parameter of a function of its file, or as options["name"]."""
    unread = []
    for name, (path, _tree) in modules().items():
        if path.parent.name != "commands":
            continue
        named = {argument.arg for node in nodes_of(name) if isinstance(node, ast.arguments) for argument in every(node)}
        keys = {ast.literal_eval(node.slice) for node in nodes_of(name) if is_key(node)}
        unread += [f"{name}: {option}" for option in options_of(nodes_of(name)) if option not in named | keys]
    assert unread == []


def every(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def is_key(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def options_of(nodes: list[ast.AST]) -> Iterator[str]:
    """What `add_argument` stores each option as."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            dest = [part.value.value for part in node.keywords if part.arg == "dest" and is_text(part.value)]
            names = [part.value for part in node.args if is_text(part)]
            names.sort(key=lambda text: text.startswith("--"), reverse=True)
            if dest or names:
                yield (dest or names)[0].lstrip("-").replace("-", "_")


def is_text(node: ast.expr) -> TypeGuard[Any]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# Arguments that do not go further


def imported(name: str, path: Path) -> dict[str, tuple[str, str]]:
    """What a module has imported of ours: the module and the name in it."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    known = {}
    for node in nodes_of(name):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*above, *([node.module] if node.module else [])])
            known.update({alias.asname or alias.name: (whole, alias.name) for alias in node.names})
    return known


def test_an_argument_goes_further_by_its_name() -> None:
    """Who has a parameter called `condition` and calls a function that takes a `condition`, gives it."""
    functions = {
        (name, node.name): node
        for name, (_path, tree) in modules().items()
        for node in tree.body
        if isinstance(node, Function)
    }
    lost = set()
    for name, (path, tree) in modules().items():
        names = imported(name, path)
        for owner in (tree, *(node for node in nodes_of(name) if isinstance(node, ast.ClassDef))):
            own = {node.name: node for node in owner.body if isinstance(node, Function)}
            for function in own.values():
                if not parameters(function):
                    continue
                for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                    match call.func:
                        case ast.Name(id=called):
                            callee = functions.get(names.get(called, (name, called)))
                        case ast.Attribute(value=ast.Name(id="self"), attr=called):
                            callee = own.get(called)
                        case ast.Attribute(value=ast.Name(id=module), attr=called) if module in names:
                            callee = functions.get((".".join(names[module]), called))
                        case _:
                            callee = None
                    if callee is not None and callee is not function:
                        lost |= {(function.name, callee.name, left) for left in not_given(function, call, callee)}
    assert lost - LEFT_OUT.keys() == set()
    assert LEFT_OUT.keys() - lost == set(), "these are given by now"


def not_given(function: Function, call: ast.Call, callee: Function) -> Iterator[str]:
    if any(isinstance(part, ast.Starred) for part in call.args) or any(part.arg is None for part in call.keywords):
        return
    is_method = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"
    given = {part.arg for part in call.keywords}
    for name, place in optional(callee).items():
        by_place = place is not None and place < len(call.args) + is_method
        if name in parameters(function) and name not in given and not by_place:
            yield name
