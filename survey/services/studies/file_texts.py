"""Study files as texts: the ones that come with Hunch, a copy of another study's, and changes by a form. The file stays
the truth: a form reads values from the text and writes them back, and everything else in it stays, comments too.
"""

import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import unified_diff
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from survey import study_file
from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError, NotFound
from survey.figures.words import money
from survey.models import Study
from survey.storage.paths import STUDIES_DIR
from survey.study_file import SEED_LIMIT

from . import checking
from .checking import CheckMessage
from .creating import TAKE_ANOTHER_SEED, checked_study, read_study_file

SEEDS_TRIED = 12


ANY_BANK = "starter"  # Questions with answers, as people's own are.
BY_TASK, BY_PEOPLE, PAPER = "By what people do", "By where people come from", "The paper"


@dataclass(frozen=True)
class StartingFile:
    """A study file to begin with. `needs`: what must be there before it can run; empty where Hunch brings all of it."""

    name: str
    title: str
    says: str
    file: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    group: str = BY_TASK
    needs: str = ""

    @property
    def picture(self) -> str:
        """The name of the picture of what people answer. Templates by panels ask what the first one asks; one whose
        pages need something that Hunch does not bring looks like it."""
        has_own = self.group == BY_TASK and not self.needs
        return PurePath(self.file if has_own else STARTING_FILES[0].file).stem

    @property
    def asks_of_any_bank(self) -> bool:
        """Whether questions of one's own fit: no instrument brings the bank for its texts alone."""
        content = tomllib.loads((STUDIES_DIR / self.file).read_text(encoding="utf-8"))
        kind = content.get("instrument", {}).get("kind", "")
        demonstration = instruments.demonstration_with(content["bank"], instrument=kind)
        return demonstration is None or demonstration.bank == ANY_BANK

    @property
    def size(self) -> str:
        """How long a person takes, how many people there are, and what they are paid in all."""
        return _size_of(self.file, str(self.changes.get("stages", "")))


@lru_cache
def _size_of(file: str, stages: str) -> str:
    content = tomllib.loads((STUDIES_DIR / file).read_text(encoding="utf-8"))
    sizes = sizes_of(stages) if stages else [stage["sittings"] for stage in content["stages"]]
    panel, people = content.get("panel", {}), sum(sizes)
    paid = f", {money(people * panel['reward'], panel.get('currency', 'USD'))} for them" if "reward" in panel else ""
    rounds = "1 stage" if len(sizes) == 1 else f"{len(sizes)} stages"
    return f"{content['texts']['minutes']} minutes a person, {people:,} people in {rounds}{paid}"


STARTING_FILES = (
    StartingFile(
        "belief",
        "Belief update, adaptive",
        "Three small stages; a predictor learns from each and picks the pairs of the next. Runs on the starter bank.",
        "demo.toml",
    ),
    StartingFile(
        "pilot",
        "With a pilot first",
        "The same, with ten people before it who try the minutes and the instructions. Their answers count in nothing.",
        "demo.toml",
        {"slug": "with-a-pilot", "pilot": 10},
    ),
    StartingFile(
        "lab",
        "In a laboratory or a class",
        "One stage; each person comes in by a link of their own, which is used up. No panel is needed.",
        "demo.toml",
        {"slug": "in-a-lab", "panel_kind": "links", "stages": "30"},
        group=BY_PEOPLE,
    ),
    StartingFile(
        "answer-modes",
        "What the belief item can do",
        "Two ways to answer as a condition, reasons, own answers with confidence, practice, in English and German.",
        "example-belief.toml",
    ),
    StartingFile(
        "steps",
        "Belief after several pieces of evidence",
        "One stage of 120 people; a belief after each of two evidence questions, in shuffled order.",
        "example-steps.toml",
    ),
    StartingFile(
        "aid",
        "An aid next to the question",
        "Half of the items show how the model did on similar questions.",
        "example-aid.toml",
        needs="a language model's answers to the bank",
    ),
    StartingFile(
        "own-answers",
        "People answer the questions themselves",
        "15 people with 20 questions each, with confidence: how good are people at these tasks?",
        "example-own-answers.toml",
    ),
    StartingFile(
        "preference",
        "Which of two replies is better",
        "Three stages of 16 people; prompts and replies of three authors come with Hunch.",
        "example-preference.toml",
    ),
    StartingFile(
        "cloze",
        "Which word comes next",
        "Two stages; people write the next word of sentences that come with Hunch, and n-gram models read them.",
        "example-cloze.toml",
    ),
    StartingFile(
        "next-token",
        "What comes next in a text",
        "Two stages; people guess the next tokens of passages that come with Hunch, and n-gram models do the same.",
        "example-next-token.toml",
    ),
    StartingFile(
        "token-comparison",
        "Which of two tokens comes next",
        "Two stages of 36 people, who see their reward after each answer; passages and n-gram models come with Hunch.",
        "example-token-comparison.toml",
    ),
    StartingFile(
        "reading",
        "How long people look at words",
        "One stage; people read passages that come with Hunch word by word, and n-gram models read them, too.",
        "example-reading.toml",
    ),
    StartingFile(
        "humans",
        "What people expect of people",
        "Half of the respondents read about AI systems or people, the other half only about AI systems.",
        "example-humans.toml",
    ),
    StartingFile(
        "prolific",
        "With people from Prolific",
        "Seven stages with pay, screening, conditions and checks.",
        "example-prolific.toml",
        group=BY_PEOPLE,
        needs="a bank of your own, and an account at Prolific with its token on this server",
    ),
    StartingFile(
        "sona",
        "With people of a SONA site",
        "One stage; people come with a survey code and go back with it, which grants their credits.",
        "panels/sona.toml",
        group=BY_PEOPLE,
        needs="a SONA site",
    ),
    StartingFile(
        "connect",
        "With people of CloudResearch Connect",
        "One stage with a quota by an answer before the items; people whose part is full are screened out with pay.",
        "panels/connect.toml",
        group=BY_PEOPLE,
        needs="an account at CloudResearch Connect",
    ),
    StartingFile(
        "positly",
        "With people of Positly",
        "One stage; people go back by Positly's completion link and are paid there.",
        "panels/positly.toml",
        group=BY_PEOPLE,
        needs="an account at Positly",
    ),
    StartingFile(
        "mturk",
        "With workers of Mechanical Turk",
        "One stage, opened by a survey link; workers copy a code from the last page. You pay from a list.",
        "panels/mturk.toml",
        group=BY_PEOPLE,
        needs="a requester account at Mechanical Turk",
    ),
    StartingFile(
        "cint",
        "With people of Cint or a similar panel",
        "One stage with a quota; people go back to an address for each outcome, with the panel's id and a signature.",
        "panels/cint.toml",
        group=BY_PEOPLE,
        needs="a contract with the panel, and its key for signatures on this server",
    ),
    StartingFile(
        "paper",
        "The paper's study, whole",
        "Seven stages and the test stage of Vafa, Rambachan and Mullainathan (2024).",
        "example-paper.toml",
        group=PAPER,
        needs="the paper's bank, and an account at Prolific",
    ),
)


def starting_text(name: str) -> str:
    """A starting file's text with a seed of its own, so that two studies from it do not draw alike.

    Raises:
        NotFound: there is no such file.
    """
    template = next((starting_file for starting_file in STARTING_FILES if starting_file.name == name), None)
    if template is None:
        raise NotFound(
            f"there is no template {name!r}; there are: "
            f"{', '.join(starting_file.name for starting_file in STARTING_FILES)}"
        )
    text = read_study_file(STUDIES_DIR / template.file)
    slug = template.changes.get("slug") or values_of(text)["slug"]
    return changed(text, {**template.changes, "slug": free_slug(slug), "seed": new_seed()})


def with_fitting_seed(text: str, *, reader: Any = None) -> str:
    """The text with another seed where its own does not fill the booklets, as happens with few questions. A text that
    has other problems, or that no seed of some fits, is left as it is."""
    tried = text
    for _time in range(SEEDS_TRIED):
        try:
            checked_study(text=tried, source_name="", reader=reader)
        except FileErrors as exc:
            if not any(TAKE_ANOTHER_SEED in problem.message for problem in exc.problems):
                return text
            tried = changed(tried, {"seed": new_seed()})
        else:
            return tried
    return text


def copied_text(study: Study, slug: str = "") -> str:
    """A study's file for another study: with a slug and a seed of its own."""
    return changed(study.source_text, {"slug": slug or free_slug(study.slug), "seed": new_seed()})


def new_seed() -> int:
    return secrets.randbelow(min(SEED_LIMIT, 10**9))


def free_slug(slug: str) -> str:
    """The slug, or with the first number that makes it free."""
    stem = re.sub(r"-\d+$", "", slug) or slug
    taken = set(Study.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    number, candidate = 2, slug
    while candidate in taken:
        candidate = f"{stem[:74]}-{number}"
        number += 1
    return candidate


def diff_lines(old: str, new: str, *, context: int = 3) -> list[tuple[str, str]]:
    """What stands in one text and not in the other: each line with `+`, `-`, `@` or a space."""
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=context)
    return [(line[:1], line if line[:1] == "@" else line[1:]) for line in list(lines)[2:]]


# What a form shows of a file


# Keys of one value: where each stands in the file.
PLACES: Mapping[str, tuple[str, ...]] = {
    "slug": ("slug",),
    "title": ("title",),
    "bank": ("bank",),
    "seed": ("seed",),
    "welcome": ("texts", "welcome"),
    "contact": ("texts", "contact"),
    "minutes": ("texts", "minutes"),
    "items": ("sitting", "items"),
    "panel_kind": ("panel", "kind"),
    "currency": ("panel", "currency"),
    "reward": ("panel", "reward"),
    "places": ("panel", "places"),
    "spending_cap": ("panel", "spending_cap"),
    "completion_url": ("panel", "completion_url"),
    "retention_until": ("data", "retention_until"),
}


class NotWritable(HunchError):
    """The file's text cannot be changed by a form; by hand it can."""

    code = "not_writable"
    status = 422


def values_of(text: str) -> dict[str, Any]:
    """What a form shows of a study file, by the names of `PLACES`, and `stages`, `pilot` and `conditions`. A text in
    several languages is shown in its first one.

    Raises:
        NotWritable: the text is no TOML.
    """
    try:
        file = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise NotWritable("The form needs a file that can be read: correct its text first.") from exc
    values: dict[str, Any] = {}
    for name, place in PLACES.items():
        value: Any = file
        for key in place:
            value = value.get(key) if isinstance(value, Mapping) else None
        values[name] = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    stages = _tables(file.get("stages"))
    values["stages"] = ", ".join(str(stage.get("sittings", "")) for stage in stages if not stage.get("pilot"))
    values["pilot"] = next((stage.get("sittings") for stage in stages if stage.get("pilot")), None)
    values["conditions"] = "\n".join(
        f"{table.get('factor')}: {', '.join(map(str, table.get('levels') or []))}"
        for table in _tables(file.get("conditions"))
    )
    return values


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [table for table in value if isinstance(table, Mapping)] if isinstance(value, list) else []


def changed(text: str, values: Mapping[str, Any]) -> str:
    """The text with these values; those that it has already are not touched. None or empty: the key is removed.

    Raises:
        NotWritable: the text is no TOML, or has a part that is written in a way that no form can change.
    """
    before = values_of(text)
    wanted = {name: value for name, value in values.items() if _plain(value) != _plain(before.get(name))}
    if not wanted:
        return text
    parts = _parts(text)
    try:
        for name, value in wanted.items():
            if name in PLACES:
                _set(parts, PLACES[name], value)
        if "items" in wanted:
            _move_checks(parts, before["items"] or DEFAULT_ITEMS, wanted["items"] or DEFAULT_ITEMS)
        if "stages" in wanted or "pilot" in wanted:
            _set_stages(parts, wanted.get("stages", before["stages"]), wanted.get("pilot", before["pilot"]))
        if "conditions" in wanted:
            _set_conditions(parts, factors_of(wanted["conditions"]))
        made = "".join(part.text for part in parts)
        after = values_of(made)
        is_written = all(_same(name, after[name], value) for name, value in wanted.items())
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, NotWritable) as exc:
        raise NotWritable("The file is written in a way that the form cannot change: change its text instead.") from exc
    if not is_written:
        raise NotWritable("The file is written in a way that the form cannot change: change its text instead.")
    return made


class ValuesRefused(HunchError):
    """What a form would make of a file that the checker refuses. `problems`: what it did not say before."""

    code = "values_refused"
    status = 422

    def __init__(self, problems: Sequence[CheckMessage]) -> None:
        super().__init__("\n".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = problems


def soundly_changed(text: str, values: Mapping[str, Any], *, reader: Any) -> str:
    """As `changed`, with another seed where the file's own no longer fills the booklets.

    Raises:
        NotWritable: as `changed`.
        ValuesRefused: the checker finds a problem in the new text that it did not find in the old one.
    """
    made = with_fitting_seed(changed(text, values), reader=reader)
    after = _problems(made, reader)
    before = {(problem.field, problem.message) for problem in (_problems(text, reader) if after else ())}
    if new := [problem for problem in after if (problem.field, problem.message) not in before]:
        raise ValuesRefused(new)
    return made


def _problems(text: str, reader: Any) -> list[CheckMessage]:
    findings = checking.check_study(text=text, source_name="", reader=reader).findings
    return [finding for finding in findings if finding.level == "problem"]


def _same(name: str, value: Any, wanted: Any) -> bool:
    if name == "stages":
        return sizes_of(value) == sizes_of(wanted)
    if name == "conditions":
        return factors_of(value) == factors_of(wanted)
    return _plain(value) == _plain(wanted)


def _plain(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    return "" if value is None else str(value).strip().replace("\r\n", "\n")


@dataclass(eq=False)  # Two tables may have the same text.
class _Part:
    """A table of the file with its lines and the comments above the next one, so that the rest is left as it stands."""

    names: tuple[Any, ...]
    is_entry: bool
    text: str


def _parts(text: str) -> list[_Part]:
    """The text cut before each table; the first part has the keys above all tables."""
    lines = text.splitlines(keepends=True)
    starts = study_file.tables_in(text)
    cuts = [0, *(line - 1 for line, _names, _entry in starts), len(lines)]
    heads: list[tuple[tuple[Any, ...], bool]] = [((), False), *((names, entry) for _line, names, entry in starts)]
    return [
        _Part(names, entry, "".join(lines[start:end]))
        for (names, entry), start, end in zip(heads, cuts, cuts[1:], strict=False)
    ]


def _edited(part: _Part, key: str, value: Any) -> None:
    """Set one key of a part; None or empty: remove it. Comments stay."""
    import tomlkit  # Only who writes files needs it.

    document = tomlkit.parse(part.text)
    table: Any = document
    for name in part.names:
        table = table[name]
        table = table[0] if isinstance(table, list) else table
    if value in (None, ""):
        if key in table:
            del table[key]
    elif isinstance(table.get(key), Mapping):  # A text in several languages: the first one is shown.
        table[key][next(iter(table[key]))] = value
    elif key in table or not part.names:
        table[key] = value
    else:  # Behind the head of the table: its end may hold the comments of the next one.
        head, _line, rest = part.text.partition("\n")
        part.text = f"{head}\n{tomlkit.dumps({key: value})}{rest}"
        return
    part.text = document.as_string()


def _set(parts: list[_Part], place: Sequence[str], value: Any) -> None:
    names = tuple(place[:-1])
    part = next((part for part in parts if part.names == names and not part.is_entry), None)
    if part is None:
        if value in (None, ""):
            return
        part = _Part(names, False, f"\n[{'.'.join(names)}]\n")
        parts[-1].text = parts[-1].text.rstrip("\n") + "\n"
        parts.append(part)
    _edited(part, place[-1], value)


DEFAULT_ITEMS: int = study_file.SittingConfig().items
CHECKS = ("sitting", "attention_checks")


def places_of_checks(text: str) -> list[int]:
    """After which items the attention checks come. Empty where the text is none that can be read."""
    try:
        checks = tomllib.loads(text)["sitting"]["attention_checks"]
        return [int(check["after_item"]) for check in checks]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def _move_checks(parts: Sequence[_Part], items_before: int, items: int) -> None:
    """Attention checks that no longer fit come at the same share of the way, all of them."""
    checks = [part for part in parts if part.names == CHECKS and part.is_entry]
    places = [tomllib.loads(part.text)["sitting"]["attention_checks"][0]["after_item"] for part in checks]
    if max(places, default=0) > items:
        for part, place in zip(checks, places, strict=True):
            _edited(part, "after_item", min(items, max(1, round(place * items / items_before))))


def _groups(parts: Sequence[_Part], name: str) -> list[list[_Part]]:
    """The entries of a list of tables, each with the tables inside it."""
    groups: list[list[_Part]] = []
    for part in parts:
        if part.names == (name,) and part.is_entry:
            groups.append([part])
        elif groups and len(part.names) > 1 and part.names[0] == name:
            groups[-1].append(part)
    return groups


def _remove(parts: list[_Part], group: Sequence[_Part]) -> None:
    for part in group:
        parts.remove(part)


def sizes_of(stages: str) -> list[int]:
    """The numbers of "20, 60, 60".

    Raises:
        ValueError: one is no number, or there is none.
    """
    sizes = [int(part) for part in re.split(r"[,;\s]+", stages.strip()) if part]
    if not sizes or min(sizes) < 1:
        raise ValueError("write a number for each stage, such as 20, 60, 60")
    return sizes


def _set_stages(parts: list[_Part], stages: str, pilot: int | None) -> None:
    """The sittings of each stage, in order. A further stage is like the last one; one too many goes from the end."""
    sizes, groups = sizes_of(stages), _groups(parts, "stages")
    is_pilot = [_entry(group[0], "stages").get("pilot", False) for group in groups]
    main = [group for group, piloted in zip(groups, is_pilot, strict=True) if not piloted]
    pilots = [group for group, piloted in zip(groups, is_pilot, strict=True) if piloted]
    for group, size in zip(main, sizes, strict=False):
        if _entry(group[0], "stages")["sittings"] != size:
            _edited(group[0], "sittings", size)
    for group in [*main[len(sizes) :], *(() if pilot else pilots)]:
        _remove(parts, group)
    last = main[min(len(main), len(sizes)) - 1]
    if len(sizes) > len(main) and "train" in _entry(last[0], "stages"):
        _edited(last[0], "train", None)  # The last stage need not train; one before another must.
    for size in sizes[len(main) :]:
        if not last[-1].text.endswith("\n\n"):
            last[-1].text = last[-1].text.rstrip("\n") + "\n\n"
        more = [_Part(part.names, part.is_entry, part.text) for part in last]
        _edited(more[0], "sittings", size)
        place = parts.index(last[-1]) + 1
        parts[place:place] = more
        last = more
    if pilot and pilots:
        _edited(pilots[0][0], "sittings", pilot)
    elif pilot:
        text = f"[[stages]]\nsittings = {int(pilot)}\npilot = true\n\n"
        parts.insert(parts.index(main[0][0]), _Part(("stages",), True, text))


def _entry(part: _Part, name: str) -> Mapping[str, Any]:
    entry: Mapping[str, Any] = tomllib.loads(part.text)[name][0]
    return entry


def factors_of(lines: str) -> dict[str, list[str]]:
    """Factors with their levels, one on each line: `framing: plain, warm`.

    Raises:
        ValueError: a line has another form, or names a factor twice.
    """
    factors: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        factor, colon, levels = line.partition(":")
        named = [level.strip() for level in levels.split(",") if level.strip()]
        if not colon or len(named) < 2:
            raise ValueError(f"{line[:60]!r}: write a factor and two levels or more, such as framing: plain, warm")
        if factor.strip() in factors:
            raise ValueError(f"{factor.strip()!r} is named twice")
        factors[factor.strip()] = named
    return factors


def _set_conditions(parts: list[_Part], factors: Mapping[str, Sequence[str]]) -> None:
    import tomlkit

    groups = {_entry(group[0], "conditions")["factor"]: group for group in _groups(parts, "conditions")}
    for name, group in groups.items():
        if name not in factors:
            _remove(parts, group)
        elif _entry(group[0], "conditions")["levels"] != list(factors[name]):
            _edited(group[0], "levels", list(factors[name]))
    for name, levels in factors.items():
        if name not in groups:
            parts[-1].text = parts[-1].text.rstrip("\n") + "\n"
            text = f"\n[[conditions]]\n{tomlkit.dumps({'factor': name, 'levels': list(levels)})}"
            parts.append(_Part(("conditions",), True, text))
