"""Study files as texts: the ones that come with Hunch, a copy of another study's, and changes by a form. The file stays
the truth: a form reads values from the text and writes them back, and everything else in it stays, comments too.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import unified_diff
from typing import Any

from survey.exceptions import HunchError, NotFound
from survey.models import Study
from survey.places import STUDIES_DIR
from survey.study_file import SEED_LIMIT

from .creating import read_study_file


@dataclass(frozen=True)
class StartingFile:
    """A study file to begin with."""

    name: str
    title: str
    says: str
    file: str
    changes: Mapping[str, Any] = field(default_factory=dict)


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
        "One uniform stage; each person comes in by a link of their own. No panel, nothing is predicted.",
        "demo.toml",
        {"slug": "in-a-lab", "panel_kind": "links", "stages": "30"},
    ),
    StartingFile(
        "answer-modes",
        "What the belief item can do",
        "Two ways to answer as a condition, reasons, own answers with confidence, practice, in English and German.",
        "example-belief.toml",
    ),
    StartingFile(
        "own-answers",
        "People answer the questions themselves",
        "15 people with 20 questions each, with confidence: how good are people at these tasks?",
        "example-own-answers.toml",
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
        "Seven stages with pay, screening, conditions and checks. Needs a bank of your own and a Prolific account.",
        "example-prolific.toml",
    ),
    StartingFile(
        "paper",
        "The paper's study, whole",
        "Seven stages and the test stage of Vafa, Rambachan and Mullainathan (2024). Needs the paper's bank.",
        "example-paper.toml",
    ),
)


def starting_text(name: str) -> str:
    """A starting file's text with a seed of its own, so that two studies from it do not draw alike.

    Raises:
        NotFound: there is no such file.
    """
    found = next((one for one in STARTING_FILES if one.name == name), None)
    if found is None:
        raise NotFound(f"there is no template {name!r}; there are: {', '.join(one.name for one in STARTING_FILES)}")
    text = read_study_file(STUDIES_DIR / found.file)
    slug = found.changes.get("slug") or values_of(text)["slug"]
    return changed(text, {**found.changes, "slug": free_slug(slug), "seed": new_seed()})


def copied_text(study: Study, slug: str = "") -> str:
    """A study's file for another study: with a slug and a seed of its own."""
    return changed(study.source_text, {"slug": slug or free_slug(study.slug), "seed": new_seed()})


def new_seed() -> int:
    return secrets.randbelow(min(SEED_LIMIT, 10**9))


def free_slug(slug: str) -> str:
    """The slug, or with the first number that makes it free."""
    stem = re.sub(r"-\d+$", "", slug) or slug
    taken = set(Study.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    number, found = 2, slug
    while found in taken:
        found = f"{stem[:74]}-{number}"
        number += 1
    return found


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
    file = _parsed(text).unwrap()
    found: dict[str, Any] = {}
    for name, place in PLACES.items():
        value: Any = file
        for key in place:
            value = value.get(key) if isinstance(value, Mapping) else None
        found[name] = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    stages = [stage for stage in file.get("stages", []) if isinstance(stage, Mapping)]
    main = [stage for stage in stages if not stage.get("pilot")]
    found["stages"] = ", ".join(str(stage.get("sittings", "")) for stage in main)
    found["pilot"] = next((stage.get("sittings") for stage in stages if stage.get("pilot")), None)
    found["conditions"] = "\n".join(
        f"{one.get('factor')}: {', '.join(map(str, one.get('levels', [])))}" for one in file.get("conditions", [])
    )
    return found


def changed(text: str, values: Mapping[str, Any]) -> str:
    """The text with these values; those that it has already are not touched. None or empty: the key is removed.

    Raises:
        NotWritable: the text is no TOML, or has a part that is written in a way that no form can change.
    """
    document, before = _parsed(text), values_of(text)
    wanted = {name: value for name, value in values.items() if _plain(value) != _plain(before.get(name))}
    try:
        for name, value in wanted.items():
            if name in PLACES:
                _set(document, PLACES[name], value)
        if "stages" in wanted or "pilot" in wanted:
            _set_stages(document, wanted.get("stages", before["stages"]), wanted.get("pilot", before["pilot"]))
        if "conditions" in wanted:
            _set_conditions(document, factors_of(wanted["conditions"]))
        return str(document.as_string())
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise NotWritable("The file is written in a way that the form cannot change: change its text instead.") from exc


def _plain(value: Any) -> str:
    return (
        ""
        if value is None
        else value.isoformat()
        if isinstance(value, date)
        else str(value).strip().replace("\r\n", "\n")
    )


def _parsed(text: str) -> Any:
    import tomlkit  # Only who writes files needs it.
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, ValueError, RecursionError) as exc:
        raise NotWritable("The form needs a file that can be read: correct its text first.") from exc


def _set(document: Any, place: Sequence[str], value: Any) -> None:
    import tomlkit

    table = document
    for key in place[:-1]:
        if key not in table:
            if value in (None, ""):
                return
            table[key] = tomlkit.table()
        table = table[key]
    key = place[-1]
    if value in (None, ""):
        if key in table:
            del table[key]
    elif isinstance(table.get(key), Mapping):  # A text in several languages: the first one is shown.
        table[key][next(iter(table[key]))] = value
    else:
        table[key] = value


def sizes_of(stages: str) -> list[int]:
    """The numbers of "20, 60, 60".

    Raises:
        ValueError: one is no number, or there is none.
    """
    found = [int(part) for part in re.split(r"[,;\s]+", stages.strip()) if part]
    if not found or min(found) < 1:
        raise ValueError("write a number for each stage, such as 20, 60, 60")
    return found


def _set_stages(document: Any, stages: str, pilot: int | None) -> None:
    """The sittings of each stage, in order. A further stage is like the last one; one too many goes from the end."""
    import tomlkit

    sizes, listed = sizes_of(stages), document["stages"]
    main = [stage for stage in listed if not stage.get("pilot")]
    pilots = [stage for stage in listed if stage.get("pilot")]
    for stage, size in zip(main, sizes, strict=False):
        if stage["sittings"] != size:
            stage["sittings"] = size
    for stage in pilots[:1] if pilot else ():
        stage["sittings"] = pilot
    for stage in [*main[len(sizes) :], *(() if pilot else pilots)]:
        listed.remove(stage)
    last = main[min(len(main), len(sizes)) - 1].unwrap()
    further = [{**last, "sittings": size} for size in sizes[len(main) :]]
    if further:
        for stage in tomlkit.parse(tomlkit.dumps({"stages": further}))["stages"]:
            listed.append(stage)
    if pilot and not pilots:
        table = tomlkit.table()
        table["sittings"], table["pilot"] = pilot, True
        table.add(tomlkit.nl())
        listed.insert(0, table)


def factors_of(lines: str) -> dict[str, list[str]]:
    """Factors with their levels, one on each line: `framing: plain, warm`.

    Raises:
        ValueError: a line has another form, or names a factor twice.
    """
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, lines.splitlines())):
        factor, colon, levels = line.partition(":")
        named = [level.strip() for level in levels.split(",") if level.strip()]
        if not colon or len(named) < 2:
            raise ValueError(f"{line[:60]!r}: write a factor and two levels or more, such as framing: plain, warm")
        if factor.strip() in found:
            raise ValueError(f"{factor.strip()!r} is named twice")
        found[factor.strip()] = named
    return found


def _set_conditions(document: Any, factors: Mapping[str, Sequence[str]]) -> None:
    import tomlkit

    listed = document.get("conditions")
    if listed is None:
        listed = tomlkit.aot()
    for condition in list(listed):
        name = condition["factor"]
        if name not in factors:
            listed.remove(condition)
        elif list(condition["levels"]) != list(factors[name]):
            condition["levels"] = list(factors[name])
    there = {condition["factor"] for condition in listed}
    for name, levels in factors.items():
        if name not in there:
            table = tomlkit.table()
            table["factor"], table["levels"] = name, list(levels)
            listed.append(table)
    if len(listed) == 0:
        document.pop("conditions", None)
    elif "conditions" not in document:
        document["conditions"] = listed
