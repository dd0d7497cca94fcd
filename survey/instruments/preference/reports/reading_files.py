"""Comparisons and judges' verdicts that somebody has in files, checked row by row and joined."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from survey.figures.words import integer, short
from survey.input_tables.problems import Problems
from survey.input_tables.rows import read_rows

from ..analysis.analysing import Material
from ..analysis.judgements import TIE, A, B, Judgements, numbered
from ..analysis.style import lengths_of, style_of, tokens_of
from ..judgement_rows import OUTCOMES, ComparisonRow, ItemRow, JudgementRow

# What our own exports have in addition to these.
JUDGED_AT = "judged_at"
PASSED_OVER = ("stage", "reply_a_key", "reply_b_key", "template", "template_version", "reply", JUDGED_AT)
ROLE, NO_ITEMS = "role", ("control", "repeat")
Row = TypeVar("Row", bound=ItemRow)


def read_material(
    comparisons: Path, judgements: Path | None = None, *, count: Callable[[str], int] = tokens_of
) -> Material:
    """
    Raises:
        FileErrors: every problem of both files with its line.
    """
    problems = Problems()
    notes: list[str] = []
    people, _header = _rows(ComparisonRow, comparisons, problems, notes)
    verdicts, header = ([], ()) if judgements is None else _rows(JudgementRow, judgements, problems, notes)
    if not any(row.is_judged for row in people) and not problems:
        problems.add(str(comparisons), 1, "file", "holds no comparison: add at least one row")
    models = {model for row in people for model in row.models}
    if JUDGED_AT in header:
        # Our own export: a judge sits all items, and of some nobody was asked.
        people += [_unjudged(row) for row in verdicts if models >= set(row.models)]
    prompts = {row.prompt for row in people}
    for row in verdicts if not problems else []:
        unknown = [f"the model {model!r}" for model in row.models if model not in models]
        unknown += [] if row.prompt in prompts else [f"the prompt {row.prompt[:40]!r}"]
        if unknown:
            problems.add(
                str(judgements),
                row.line,
                "prompt",
                f"{' and '.join(unknown)} of this judgement stands in no comparison: take the row out, or add the item "
                "to the comparisons, without annotator and outcome where nobody judged it",
            )
    problems.raise_if_any()
    material = _material(people, verdicts, count=count)
    return replace(material, notes=[*notes, *material.notes])


def _unjudged(row: JudgementRow) -> ComparisonRow:
    make: Any = ComparisonRow
    texts = {name: getattr(row, name) for name in ("prompt", "model_a", "model_b", "prompt_text")}
    made: ComparisonRow = make(line=row.line, **texts)
    return made


def _rows(kind: type[Row], path: Path, problems: Problems, notes: list[str]) -> tuple[list[Row], Sequence[str]]:
    """The rows of a file, and its header."""
    file = read_rows(kind, path, problems)
    if file.header and not {"outcome", "rating_a"} & set(file.header):
        file.wrong(1, "header", "has neither outcome nor rating_a: add one of them")
        return [], ()
    notes += file.notes
    known = {*kind.columns(), *PASSED_OVER, ROLE}
    if further := [name for name in file.header if name not in known]:
        notes.append(f"{path.name}: further columns are passed over: {', '.join(further)}")
    # Of our own export: these answers stand for no items.
    taken, left_out = file.without(ROLE, NO_ITEMS)
    if left_out:
        notes.append(f"{path.name}: {integer(left_out)} answers to controls and repeats are left out")
    rows = []
    category_of: dict[str, str] = {}
    for row in taken:
        if row.rating_a is not None and OUTCOMES.get(row.outcome, TIE) not in (row.code, TIE):
            message = f"is {row.outcome!r}, and rating_a {short(row.rating_a)} says otherwise: give one of them"
            file.wrong(row.line, "outcome", message)
        earlier = category_of.setdefault(row.prompt, row.category)
        if row.category and earlier and row.category != earlier:
            file.wrong(row.line, "category", f"this prompt has the category {earlier!r} above: give it one")
        rows.append(row)
    return rows, file.header


def _material(
    people: Sequence[ComparisonRow], verdicts: Sequence[JudgementRow], *, count: Callable[[str], int]
) -> Material:
    models, _place = numbered([model for row in people for model in row.models])
    prompts, _place = numbered([row.prompt for row in people])
    categories = {row.prompt: row.category for row in people if row.category}
    # As the first row has it, so that every judgement of an item is towards the same model.
    orient: dict[tuple[str, frozenset[str]], str] = {}
    for row in (*people, *verdicts):
        orient.setdefault((row.prompt, frozenset(row.models)), row.models[0])
    named = sorted({row.judge for row in people if row.annotator})
    number = {name: place for place, name in enumerate(named)}

    def arrays(rows: Sequence[ComparisonRow | JudgementRow]) -> Judgements:
        turn = np.array(
            [1 if orient[row.prompt, frozenset(row.models)] == row.models[0] else -1 for row in rows], dtype=np.int64
        )
        place = {model: index for index, model in enumerate(models)}
        prompt_of = {prompt: index for index, prompt in enumerate(prompts)}
        ends = [row.models if sign > 0 else row.models[::-1] for row, sign in zip(rows, turn.tolist(), strict=True)]
        outcome = np.array([row.code for row in rows], dtype=np.int64)
        chance = np.array([row.chance_a for row in rows], dtype=np.float64)
        return Judgements(
            models=models,
            prompts=prompts,
            prompt=np.array([prompt_of[row.prompt] for row in rows], dtype=np.int64),
            a=np.array([place[a] for a, _b in ends], dtype=np.int64),
            b=np.array([place[b] for _a, b in ends], dtype=np.int64),
            category=np.array([categories.get(row.prompt, "") for row in rows], dtype=str),
            # Who is not named is somebody of their own.
            person=np.array(
                [number.get(row.judge, len(named) + index) for index, row in enumerate(rows)], dtype=np.int64
            ),
            outcome=np.where(np.isin(outcome, (A, B)), outcome * turn, outcome),
            value=np.array([row.value for row in rows], dtype=np.float64) * turn,
            first=np.array([row.first for row in rows], dtype=np.int64) * turn,
            probability=np.array([row.probability for row in rows], dtype=np.float64),
            chance=np.where(turn > 0, chance, 1 - chance),
        )

    judged = [row for row in people if row.is_judged]
    asked = arrays(judged)
    judges = {
        name: arrays([row for row in verdicts if row.judge == name]) for name in sorted({row.judge for row in verdicts})
    }
    styles: dict[int, tuple[float, float, float]] = {}
    texts: dict[tuple[str, str], str] = {}
    for row, key, a in zip(judged, asked.key.tolist(), asked.a.tolist(), strict=True):
        if row.replies is not None:
            straight = row.replies if models[a] == row.models[0] else row.replies[::-1]
            styles[key] = style_of(*straight)
            texts |= {(row.prompt, model): reply for model, reply in zip(row.models, row.replies, strict=True)}
    notes = []
    prompt_texts = _prompt_texts(people)
    if texts and prompt_texts is None:
        notes.append(
            "lengths of prompts are left out: the column prompt holds names, not texts; give the texts as prompt_text"
        )
    longs = lengths_of(prompt_texts or (), texts, models, count) if texts else []
    return Material(
        people=asked,
        judges=judges,
        names=tuple(named),
        styles=styles,
        lengths=longs,
        notes=notes,
    )


def _prompt_texts(rows: Sequence[ComparisonRow]) -> list[str] | None:
    """The text of each prompt; None where the file has but names of prompts: not one of them has two words."""
    named = {row.prompt: row.prompt_text for row in rows if row.prompt_text}
    prompts = sorted({row.prompt for row in rows})
    if named:
        return [named[prompt] for prompt in prompts if prompt in named]
    return prompts if any(len(prompt.split()) > 1 for prompt in prompts) else None
