"""A template's sizes on a bank of one's own: fewer questions for each person, a larger top share, fewer people, until
the bank can fill the stages. Tried with the checker that the file must pass, so that it holds for every instrument."""

from collections.abc import Iterator, Sequence
from typing import Any

from survey import study_file
from survey.exceptions import FileErrors
from survey.study_file import StudyConfig
from survey.study_file.editing import EditableFile

from .creating import TAKE_ANOTHER_SEED, checked_study
from .file_texts import changed, new_seed

ITEMS = (12, 10, 8, 6, 5, 4, 3, 2, 1)
LEAST = (4, 2, 1)  # Rather another design or fewer people than fewer questions for each person than these, in turn.
TOP_SHARES = (None, 0.25, 0.5)  # None: as the file has it. Then every stage is drawn uniformly.
PEOPLE = (1.0, 0.5, 0.25)  # Shares of what the file has.
SEEDS = 3  # Tried for sizes that are refused for the seed alone.
SIZES = ("stages", "sitting", "candidates")


def fitted_to_bank(text: str, *, reader: Any) -> tuple[str, list[str]]:
    """The text with the largest sizes that its bank can fill, and in words what was changed. A text that has other
    problems, or that nothing fits, is left as it is."""
    refusals = _refusals(text, reader)
    if any(place == "questions.tasks" for place, _message in refusals):  # Those of the template's own bank.
        file = EditableFile(text)
        file.remove(("questions", "tasks"))
        text, refusals = file.text, _refusals(file.text, reader)
    if not refusals or any(place.partition(".")[0] not in SIZES for place, _message in refusals):
        return text, []
    config = study_file.parse(text)
    for wanted in _sizes(config):
        tried = _with_sizes(text, config, *wanted)
        for _time in range(SEEDS):
            places = _refusals(tried, reader)
            if not places:
                return tried, _in_words(config, study_file.parse(tried))
            if TAKE_ANOTHER_SEED not in places[0][1]:
                break
            tried = changed(tried, {"seed": new_seed()})
    return text, []


def _refusals(text: str, reader: Any) -> list[tuple[str, str]]:
    try:
        checked_study(text=text, source_name="", reader=reader, limits=False)
    except FileErrors as exc:
        return [(problem.field, problem.message) for problem in exc.problems]
    return []


def _sizes(config: StudyConfig) -> Iterator[tuple[int, float | None, bool, float]]:
    """Items, the top share, whether all stages are uniform, and the share of people; what changes least first."""
    own = config.sitting.items
    items = (own, *(number for number in ITEMS if number < own))
    tops = TOP_SHARES if _tops(config) else TOP_SHARES[:1]
    designs = [(top, False) for top in tops] + [(None, True)] * any(
        stage.design.kind != "uniform" for stage in config.stages
    )
    most = own + 1
    for least in LEAST:
        for people in PEOPLE:
            for top, is_uniform in designs:
                for number in items:
                    if least <= number < most:
                        yield number, top, is_uniform, people
        most = least


def _with_sizes(text: str, config: StudyConfig, items: int, top: float | None, is_uniform: bool, people: float) -> str:
    file = EditableFile(changed(text, {"sitting.items": items}))
    for index, stage in enumerate(config.stages):
        if people < 1 and not stage.pilot:
            file.set(("stages", index, "sittings"), max(2, round(stage.sittings * people)))
        if is_uniform and stage.design.kind != "uniform":
            file.remove(("stages", index, "design"))
        elif top is not None and stage.design.top_fraction is not None and stage.design.top_fraction < top:
            file.set(("stages", index, "design", "top_fraction"), top)
    return file.text


def _in_words(before: StudyConfig, after: StudyConfig) -> list[str]:
    words = []
    if before.sitting.items != after.sitting.items:
        words.append(f"{before.sitting.items} questions for each person became {after.sitting.items}")
    if _tops(before) != _tops(after) and all(stage.design.kind == "uniform" for stage in after.stages):
        words.append("every stage is drawn uniformly")
    elif _tops(before) != _tops(after):
        words.append(f"the top share of {max(_tops(before)):g} became {max(_tops(after)):g}")
    people = [sum(stage.sittings for stage in config.stages) for config in (before, after)]
    if people[0] != people[1]:
        words.append(f"{people[0]} people became {people[1]}")
    return words


def _tops(config: StudyConfig) -> Sequence[float]:
    return [stage.design.top_fraction for stage in config.stages if stage.design.top_fraction is not None]
