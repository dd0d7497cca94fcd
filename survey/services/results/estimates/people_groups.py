"""Groups of people by what they answered in a form, for `estimate --by`. Imports models and below.

Items are dealt to people no matter who they are, as levels of a condition are, so that the answers of a group stand for
all candidates. What is estimated of a group is therefore computed by the code of the conditions (`study_estimates`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from survey.models import FormAnswer, Study
from survey.study_file import NOT_SAID, FieldConfig, band_names, grouping_questions, groups_in

MIN_PEOPLE = 10  # of a group, and of all the others together; with fewer there are no figures
NO_ANSWER = "no answer"
QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class PeopleQuestion:
    """A question of a form by which people can be grouped. `name` is what `--by` takes: the question's name, or
    BLOCK.NAME where something else has that name too."""

    name: str
    block: str
    field: FieldConfig


@dataclass(frozen=True)
class PeopleGroups:
    """The group of each person, and all groups in the question's order, "no answer" last. `note`: how they are made."""

    labels: tuple[str, ...]
    of_person: Mapping[int, str]
    note: str

    def of(self, people: np.ndarray) -> np.ndarray:
        """The group of each of these people, shape (n,)."""
        return np.array([self.of_person.get(person, NO_ANSWER) for person in people.tolist()], dtype=str)


def people_questions(study: Study, taken: Collection[str] = ()) -> dict[str, PeopleQuestion]:
    """The questions of the study's forms with one answer each (choice, likert, number), by their names for `--by`.

    Args:
        taken: names of divisions and factors, which keep their meaning.
    """
    questions = grouping_questions(study.config.blocks, taken)
    return {name: PeopleQuestion(name, block.name or "", field) for name, (block, field) in questions.items()}


def groups_of(study: Study, question: PeopleQuestion, people: Collection[int]) -> PeopleGroups:
    """The groups of these people (keys of respondents) by the first answer that each of them gave.

    Who left the question out, never came to it, or chose not to say is in a group of their own (`NO_ANSWER`).
    """
    known = set(people)
    stated: dict[int, Any] = {}
    rows = FormAnswer.objects.filter(sitting__stage__study=study, block=question.block).order_by("sitting", "pk")
    for person, answers in rows.values_list("sitting__respondent", "answers").iterator():
        said = answers.get(question.field.name)
        if person in known and said not in (None, "", NOT_SAID):
            stated.setdefault(person, said)
    if question.field.kind == "number":
        of_person, labels, how = _by_number(stated, question.field.bands)
    else:
        of_person = {person: str(said) for person, said in stated.items()}
        labels, how = groups_in(question.field), "Groups are the answers that could be chosen."
    older = sorted(set(of_person.values()) - set(labels))  # Options of a study file that was amended since.
    return PeopleGroups(
        labels=(*labels, *older, NO_ANSWER),
        of_person=of_person,
        note=(
            f"People by their answer to “{question.field.label}” (form {question.block}). {how} "
            f"“{NO_ANSWER}”: people who left it out, did not come to it, or chose not to say. Items are dealt to "
            "people no matter who they are: each group's answers stand for all candidates, weighted by themselves. "
            "Groups are not drawn at random, so that a difference between them is no effect of what people answered "
            "here."
        ),
    )


def _by_number(stated: Mapping[int, Any], bands: Sequence[int]) -> tuple[dict[int, str], list[str], str]:
    numbers = {person: said for person, said in stated.items() if isinstance(said, int)}
    if bands:
        return (*_cut(numbers, bands), "Groups are the bands of the study file.")
    values = [*numbers.values()]
    ends = {int(np.floor(end)) for end in np.quantile(values, QUARTERS)} if values else set()
    # The number after the end of each quarter; equal numbers are never in two groups.
    cuts = sorted(end + 1 for end in ends if end < max(values))
    how = "The study file states no bands, so that groups are quartiles of these people's numbers"
    fewer = "; fewer than four, since many gave the same number." if len(cuts) < len(QUARTERS) else "."
    return (*_cut(numbers, cuts), how + fewer)


def _cut(numbers: Mapping[int, int], firsts: Sequence[int]) -> tuple[dict[int, str], list[str]]:
    """The band of each person, and all bands; `firsts`: the first number of each band after the lowest."""
    labels = band_names(firsts)
    places = np.searchsorted(np.array(firsts), [*numbers.values()], side="right").tolist()
    return {person: labels[place] for person, place in zip(numbers, places, strict=True)}, labels


def too_few(people: int) -> str:
    """The sentence in place of the figures of a group of so few people."""
    who = "1 person" if people == 1 else f"{people} people"
    return f"{who}: figures need at least {MIN_PEOPLE}, so that nobody's own answers show."
