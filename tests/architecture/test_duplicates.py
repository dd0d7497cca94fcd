"""One idea, one place: no two functions are nearly the same code.

Two functions are compared by their runs of tokens. Names of variables, numbers and texts do not count; names of called
functions and of attributes do. Docstrings and comments say nothing.
"""

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from tests.architecture.test_source import ROOT, python_files

RUN = 4  # tokens that are compared together
MIN_TOKENS = 60  # A shorter function is hardly more than the call that would stand in its place.
ALIKE = 0.75  # of all runs of either function
COMMON = 12  # Runs in more functions than this are the language's own: they make no two functions a pair.
# What stands in one line each because a library reads it: sharing it would hide what a command takes.
DECLARATIONS = {"add_arguments"}

STARTS = re.compile(r"^( *)(?:async )?def (\w+)", re.MULTILINE)
TOKEN = re.compile(
    r"#[^\n]*"
    r'|[rbfRBF]{0,2}"""(?:.|\n)*?"""'
    r'|[rbfRBF]{0,2}"(?:[^"\\\n]|\\.)*"'
    r"|[rbfRBF]{0,2}'(?:[^'\\\n]|\\.)*'"
    r"|(\.?[A-Za-z_]\w*)(\(?)|\d[\w.]*|[^\s\w,]"
)
WORDS = {*keyword.kwlist, "self", "cls"}


class Function(NamedTuple):
    path: str
    first: int
    last: int
    name: str
    runs: frozenset[tuple[str, ...]]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.first} {self.name}"


def tokens_of(text: str) -> list[str]:
    tokens = []
    for match in TOKEN.finditer(text):
        word, calls = match.groups()
        if word:
            is_variable = not (word in WORDS or calls or word[0] == "." or not word.islower())
            tokens.append("variable" if is_variable else word)
        elif match[0][-1] in "\"'":
            if '"""' not in match[0]:
                tokens.append("text")
        elif match[0][0] != "#":
            tokens.append("number" if match[0][0].isdigit() else match[0])
    return tokens


def functions_in(text: str, path: str) -> Iterator[Function]:
    """Functions and methods; one inside another counts for both."""
    for match in STARTS.finditer(text):
        if match[2] in DECLARATIONS:
            continue
        after = re.compile(rf"^ {{0,{len(match[1])}}}[^\s)\]]", re.MULTILINE).search(text, match.end())
        body = text[match.end() : after.start() if after else len(text)]
        tokens = tokens_of(body)
        if len(tokens) >= MIN_TOKENS:
            runs = frozenset(tuple(tokens[start : start + RUN]) for start in range(len(tokens) - RUN + 1))
            first = text.count("\n", 0, match.start()) + 1
            yield Function(path, first, first + body.count("\n"), match[2], runs)


def nearly_the_same(functions: list[Function]) -> list[str]:
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, function in enumerate(functions):
        for run in function.runs:
            holders[run].append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for numbers in holders.values():
        if len(numbers) <= COMMON:
            shared.update(combinations(numbers, 2))
    pairs = []
    for (number, other), rare_runs in shared.items():
        first, second = functions[number], functions[other]
        is_inside = first.path == second.path and second.first <= first.last
        if rare_runs < 3 or is_inside:
            continue
        both = len(first.runs & second.runs)
        alike = both / (len(first.runs) + len(second.runs) - both)
        if alike >= ALIKE:
            pairs.append(f"{first.place} and {second.place} are {alike:.0%} the same: keep one")
    return sorted(pairs)


def test_no_two_functions_are_nearly_the_same() -> None:
    functions = [
        function
        for path in python_files()
        if "migrations" not in path.parts
        for function in functions_in(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]
    assert len(functions) > 1000
    pairs = nearly_the_same(functions)
    assert not pairs, "\n" + "\n".join(pairs)


def test_a_copy_is_noticed_whatever_its_variables_are_called() -> None:
    original = (ROOT / "bandit" / "logistic.py").read_text(encoding="utf-8")
    copy = re.sub(r"\bdesign\b", "matrix", original).replace("Newton", "another")
    functions = [*functions_in(original, "a.py"), *functions_in(copy, "b.py")]
    pairs = nearly_the_same(functions)
    assert len(pairs) == len(functions) / 2
    assert all(pair.startswith("a.py:") and " and b.py:" in pair for pair in pairs)
    assert nearly_the_same([*functions_in(original, "a.py")]) == []
