"""Comparisons and judges' verdicts that somebody has in files, checked row by row and joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from survey.figures.words import integer
from survey.services.banks.csv_rows import number_of, row_file
from survey.services.banks.importing import Problems

from ..analysis.analysing import Material
from ..analysis.judgements import TIE, UNREADABLE, A, B, Judgements, numbered
from ..analysis.style import lengths, style_of

ITEM = ("prompt", "model_a", "model_b")
COMPARISON_COLUMNS = (
    *("category", "annotator", "outcome", "rating_a", "first", "probability", "reply_a", "reply_b", "prompt_text"),
)
JUDGEMENT_COLUMNS = ("outcome", "rating_a", "first", "chance_a", "category")
# What our own exports have beside these.
JUDGED_AT = "judged_at"
PASSED_OVER = ("stage", "reply_a_key", "reply_b_key", "template", "template_version", "reply", JUDGED_AT)
ROLE, NO_ITEMS = "role", ("control", "repeat")
OUTCOMES = {"a": A, "b": B, "tie": TIE}
UNREADABLE_WORD = "unreadable"
FIRST = {"a": 1, "b": -1, "": 0}
LARGEST = 3.5


@dataclass(frozen=True)
class Row:
    """One line of either file. `judged` is False where it only says that the item exists."""

    line: int
    prompt: str
    models: tuple[str, str]
    category: str
    judge: str
    outcome: int
    value: float
    first: int
    probability: float
    chance: float
    replies: tuple[str, str] | None
    judged: bool
    prompt_text: str = ""


def read_material(comparisons: Path, judgements: Path | None = None) -> Material:
    """
    Raises:
        FileErrors: every problem of both files with its line.
    """
    problems = Problems()
    notes: list[str] = []
    people, _header = _rows(comparisons, problems, notes, judges=False)
    verdicts, header = ([], ()) if judgements is None else _rows(judgements, problems, notes, judges=True)
    if not any(row.judged for row in people) and not problems:
        problems.add(str(comparisons), 1, "file", "holds no comparison: add at least one row")
    models = {model for row in people for model in row.models}
    if JUDGED_AT in header:
        # Our own export: a judge sits all items, and of some nobody was asked.
        people += [replace(row, judged=False, category="") for row in verdicts if models >= set(row.models)]
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
    material = _material(people, verdicts)
    return replace(material, notes=[*notes, *material.notes])


def _rows(path: Path, problems: Problems, notes: list[str], *, judges: bool) -> tuple[list[Row], Sequence[str]]:
    """The rows of a file, and its header."""
    required = (*ITEM, "judge") if judges else ITEM
    optional = JUDGEMENT_COLUMNS if judges else COMPARISON_COLUMNS
    file = row_file(path, required, problems)
    if file.header and not {"outcome", "rating_a"} & set(file.header):
        problems.add(str(path), 1, "header", "has neither outcome nor rating_a: add one of them")
        return [], ()
    notes += file.notes
    known = {*required, *optional, *PASSED_OVER, ROLE}
    if further := [name for name in file.header if name not in known]:
        notes.append(f"{path.name}: further columns are passed over: {', '.join(further)}")
    # Of our own export: these answers stand for no items.
    left_out = {line for line, values in file.rows if values.get(ROLE, "").strip() in NO_ITEMS}
    if left_out:
        notes.append(f"{path.name}: {integer(len(left_out))} answers to controls and repeats are left out")
    found = []
    seen: dict[tuple[str, str], str] = {}
    for line, values in file.rows:
        if line in left_out:
            continue
        before = len(problems)
        row = _row(line, {name: value.strip() for name, value in values.items()}, str(path), problems, judges=judges)
        if row is None or len(problems) > before:
            continue
        earlier = seen.setdefault((row.prompt, "category"), row.category)
        if row.category and earlier and row.category != earlier:
            problems.add(str(path), line, "category", f"this prompt has the category {earlier!r} above: give it one")
            continue
        found.append(row)
    return found, file.header


def _row(line: int, values: Mapping[str, str], file: str, problems: Problems, *, judges: bool) -> Row | None:
    def wrong(field: str, message: str) -> None:
        problems.add(file, line, field, message)

    for name in (*ITEM, *(["judge"] if judges else [])):
        if not values[name]:
            wrong(name, "is empty: give it")
    if values["model_a"] and values["model_a"] == values["model_b"]:
        wrong("model_b", f"is {values['model_b']!r}, as model_a: a comparison has two models")
    outcome, rating = values.get("outcome", "").lower(), values.get("rating_a", "")
    annotator = values.get("annotator", "")
    first = values.get("first", "").lower()
    if first not in FIRST:
        wrong("first", f"is {first[:40]!r}: write a, b, or nothing where it is not known")
    code, value, judged = TIE, 0.0, True
    if rating:
        number = number_of(rating)
        if number is None or not -LARGEST <= number <= LARGEST:
            wrong("rating_a", f"is {rating[:40]!r}: a rating towards A is a number from -3.5 to 3.5")
        else:
            value, code = number, (A if number > 0 else B if number < 0 else TIE)
            if outcome in OUTCOMES and OUTCOMES[outcome] != code and outcome != "tie":
                wrong("outcome", f"is {outcome!r}, and rating_a {rating} says otherwise: give one of them")
            if outcome == "tie":
                code = TIE
    elif outcome in OUTCOMES:
        code = OUTCOMES[outcome]
        value = float(code)
    elif judges and outcome == UNREADABLE_WORD:
        code = UNREADABLE
    elif not outcome and not judges and not annotator:
        judged = False
    else:
        words = "a, b, tie or unreadable" if judges else "a, b or tie"
        wrong("outcome", f"is {outcome[:40]!r}: write {words}, or a rating in rating_a")
    probability = 1.0
    if values.get("probability"):
        given = number_of(values["probability"])
        if given is None or not 0 < given <= 1:
            wrong("probability", f"is {values['probability'][:40]!r}: the chance of the item is above 0 and up to 1")
        else:
            probability = given
    chance = float("nan")
    if values.get("chance_a"):
        given = number_of(values["chance_a"])
        if given is None or not 0 <= given <= 1:
            wrong("chance_a", f"is {values['chance_a'][:40]!r}: a chance is a number from 0 to 1")
        else:
            chance = given
    replies = values.get("reply_a", ""), values.get("reply_b", "")
    return Row(
        line=line,
        prompt=values["prompt"],
        models=(values["model_a"], values["model_b"]),
        category=values.get("category", ""),
        judge=values["judge"] if judges else annotator,
        outcome=code,
        value=value,
        first=FIRST.get(first, 0),
        probability=probability,
        chance=chance,
        replies=replies if all(replies) else None,
        judged=judged,
        prompt_text=values.get("prompt_text", ""),
    )


def _material(people: Sequence[Row], verdicts: Sequence[Row]) -> Material:
    models, _place = numbered([model for row in people for model in row.models])
    prompts, _place = numbered([row.prompt for row in people])
    categories = {row.prompt: row.category for row in people if row.category}
    # As the first row has it, so that every judgement of an item is towards the same model.
    orient: dict[tuple[str, frozenset[str]], str] = {}
    for row in (*people, *verdicts):
        orient.setdefault((row.prompt, frozenset(row.models)), row.models[0])
    named = sorted({row.judge for row in people if row.judge and row.judged})
    number = {name: place for place, name in enumerate(named)}

    def arrays(rows: Sequence[Row]) -> Judgements:
        turn = np.array(
            [1 if orient[row.prompt, frozenset(row.models)] == row.models[0] else -1 for row in rows], dtype=np.int64
        )
        place = {model: index for index, model in enumerate(models)}
        prompt_of = {prompt: index for index, prompt in enumerate(prompts)}
        ends = [row.models if one > 0 else row.models[::-1] for row, one in zip(rows, turn.tolist(), strict=True)]
        outcome = np.array([row.outcome for row in rows], dtype=np.int64)
        chance = np.array([row.chance for row in rows], dtype=np.float64)
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

    judged = [row for row in people if row.judged]
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
    longs = [lengths("prompts", prompt_texts)] if texts and prompt_texts is not None else []
    longs += (
        [lengths(f"replies of {one}", [text for (_p, model), text in texts.items() if model == one]) for one in models]
        if texts
        else []
    )
    return Material(
        people=asked,
        judges=judges,
        names=tuple(named),
        styles=styles,
        lengths=[one for one in longs if one is not None],
        notes=notes,
    )


def _prompt_texts(rows: Sequence[Row]) -> list[str] | None:
    """The text of each prompt; None where the file has but names of prompts: not one of them has two words."""
    named = {row.prompt: row.prompt_text for row in rows if row.prompt_text}
    prompts = sorted({row.prompt for row in rows})
    if named:
        return [named[one] for one in prompts if one in named]
    return prompts if any(len(one.split()) > 1 for one in prompts) else None
