"""Study files as texts: the ones that come with Hunch, and a copy of another study's. What is changed in a text leaves
all else in it as it stands, comments too.
"""

import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from survey.study_file.editing import EditableFile

from .creating import TAKE_ANOTHER_SEED, checked_study, read_study_file

SEEDS_TRIED = 12


ANY_BANK = "starter"  # Questions with answers, as people's own are.
BY_TASK, BY_PEOPLE, PAPER = "By what people do", "By where people come from", "The paper"


@dataclass(frozen=True)
class StartingFile:
    """A study file to begin with. `needs`: what must be there before it can run; empty where Hunch brings all of it.
    `changes`: values by their places, as `changed` takes them. `pilot`: people of a pilot before its stages. `people`:
    those of its first stage, which is then its only one."""

    name: str
    title: str
    says: str
    file: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    group: str = BY_TASK
    needs: str = ""
    pilot: int = 0
    people: int = 0

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
        return _size_of(self.file, self.people)


@lru_cache
def _size_of(file: str, one_stage: int) -> str:
    content = tomllib.loads((STUDIES_DIR / file).read_text(encoding="utf-8"))
    sizes = [one_stage] if one_stage else [stage["sittings"] for stage in content["stages"]]
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
        {"slug": "with-a-pilot"},
        pilot=10,
    ),
    StartingFile(
        "lab",
        "In a laboratory or a class",
        "One stage; each person comes in by a link of their own, which is used up. No panel is needed.",
        "demo.toml",
        {"slug": "in-a-lab", "panel.kind": "links"},
        group=BY_PEOPLE,
        people=30,
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
    file = EditableFile(text)
    if template.people:
        for index in reversed(range(1, len(file.data["stages"]))):
            file.remove(("stages", index))
        file.set(("stages", 0, "sittings"), template.people)
    if template.pilot:
        file.insert(("stages", 0), {"sittings": template.pilot, "pilot": True})
    slug = template.changes.get("slug") or file.data["slug"]
    return changed(file.text, {**template.changes, "slug": free_slug(slug), "seed": new_seed()})


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


# Changing a text

DEFAULT_ITEMS: int = study_file.SittingConfig().items
CHECKS = ("sitting", "attention_checks")


class NotWritable(HunchError):
    """The file's text cannot be changed here; by hand it can."""

    code = "not_writable"
    status = 422


def changed(text: str, values: Mapping[str, Any]) -> str:
    """The text with these values, each by its place as messages name it ("sitting.items", "stages.0.sittings"); entries
    of lists count from 0, and None removes the key. Fewer items move the attention checks that no longer fit.

    Raises:
        NotWritable: the text is no TOML, or has a part that is written in a way that cannot be changed.
    """
    try:
        file = EditableFile(text)
        items_before = file.value(("sitting", "items")) or DEFAULT_ITEMS
        for place, value in values.items():
            file.set(tuple(int(name) if name.isdecimal() else name for name in place.split(".")), value)
        if "sitting.items" in values:
            _move_checks(file, items_before)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise NotWritable("The file is written in a way that cannot be changed here: change its text instead.") from exc
    return file.text


def _move_checks(file: EditableFile, items_before: int) -> None:
    """Where one comes after the last item, all of them come at the same share of the way as before."""
    items = file.value(("sitting", "items")) or DEFAULT_ITEMS
    places = [check["after_item"] for check in file.value(CHECKS) or ()]
    if max(places, default=0) > items:
        for index, place in enumerate(places):
            file.set((*CHECKS, index, "after_item"), min(items, max(1, round(place * items / items_before))))
