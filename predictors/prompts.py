"""Templates of prompts: TOML files with named places, the same for predictors, judges and collected answers.

Imports nothing heavy. A template is checked as a whole when it is read, and is known by the SHA-256 of its text. What
stands in a place is put in once: braces and other marks in a question are words like any other.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from predictors.errors import PredictorError

FOLDER = Path(__file__).parent / "templates"
ANSWERS = ("0", "1")
LONGEST = 100_000  # characters of a template

_PLACE = re.compile(r"\{\{|\}\}|\{(\w+)\}")


@dataclass(frozen=True)
class Use:
    """What templates of one use are filled with: places that must stand in the prompt, and those that may."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


USES: Mapping[str, Use] = {
    "change": Use(("evidence", "target", "outcome"), keys=("opening", "right", "wrong")),
    "judge": Use(("prompt", "reply_1", "reply_2"), ("question",), ("max_tokens", "score", "version")),
    "rate": Use(("prompt", "reply_1"), ("question",), ("max_tokens", "score", "version")),
    "rank": Use(("prompt", "replies", "letters"), ("question",), ("max_tokens", "version")),
    "answer": Use(("question",), ("form",)),
}
"""`change`: does a belief change? `judge`: which of two replies is better? `rate`: how good is a reply? `rank`: all
replies to a prompt, the best first. `answer`: a question of a bank."""

Chat = list[dict[str, str]]


@dataclass(frozen=True)
class ModelFormat:
    """How models whose names match `model` (with * for any letters) are asked: a system message, and, for a model on
    disk, the text of a whole chat with the places {system} and {prompt}."""

    model: str
    system: str | None = None
    format: str | None = None


@dataclass(frozen=True)
class Template:
    """A checked template.

    text: of its file, whole. system: a message before the prompt. opening: what stands once, before the first of
    several examples. outcomes: what is said of a wrong and of a right answer. score: the line of a judge's reply that
    has its number, `any`, or `last`. own_version: what the file calls it.
    """

    name: str
    use: str
    text: str
    prompt: str
    system: str = ""
    opening: str = ""
    outcomes: tuple[str, str] = ("incorrectly", "correctly")
    score: str = "any"
    max_tokens: int = 16
    own_version: str = ""
    formats: tuple[ModelFormat, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the text, 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def version(self) -> str:
        """What its file calls it if it is one of ours; of another one the hash of all that stands in it."""
        is_ours = _shipped_texts().get(self.name) == self.text
        return self.own_version if is_ours and self.own_version else self.digest[:12]

    @cached_property
    def _parts(self) -> list[tuple[str, str]]:
        """The prompt as pairs of words and the place that follows them, "" for none."""
        parts, end = [], 0
        for match in _PLACE.finditer(self.prompt):
            words = self.prompt[end : match.start()]
            parts.append((words + match[0][0], "") if match[1] is None else (words, match[1]))
            end = match.end()
        return [*parts, (self.prompt[end:], "")]

    def filled(self, **values: str) -> str:
        """The prompt with its places filled."""
        return "".join(words + (values[place] if place else "") for words, place in self._parts)

    def about(self, evidence: str, target: str, outcome: int) -> str:
        """The prompt of a template of changes, without its opening."""
        return self.filled(evidence=evidence, target=target, outcome=self.outcomes[outcome])

    def format_for(self, model: str) -> ModelFormat:
        """The first entry of [[models]] that fits a model, with the template's system message where it has none."""
        entry = next((own for own in self.formats if fnmatch.fnmatchcase(model, own.model)), ModelFormat(model))
        return ModelFormat(model, self.system if entry.system is None else entry.system, entry.format)

    def chat(self, model: str, turns: Sequence[str]) -> Chat:
        """Messages for a model: its system message, where there is one, then turns of user and assistant."""
        system = self.format_for(model).system
        messages = [{"role": "system", "content": system}] if system else []
        roles = ("user", "assistant")
        return messages + [{"role": roles[number % 2], "content": turn} for number, turn in enumerate(turns)]

    def as_text(self, model: str, prompt: str) -> str:
        """One text for a model that continues texts."""
        entry = self.format_for(model)
        if entry.format is not None:
            return laid_out(entry.format, entry.system or "", prompt)
        return f"{entry.system}\n\n{prompt}" if entry.system else prompt

    def facts(self, model: str) -> list[str]:
        """What a request to a model has besides the prompt's words; nothing where the template adds nothing."""
        entry = self.format_for(model)
        return [entry.system or "", entry.format or ""] if entry.system or entry.format else []


def laid_out(layout: str, system: str, prompt: str) -> str:
    """A whole chat as one text."""
    values = {"system": system, "prompt": prompt}
    return re.sub(r"\{(system|prompt)\}", lambda match: values[match[1]], layout)


def answers_after(prompt: str) -> tuple[str, str]:
    """0 and 1 as they follow a prompt: after a blank, unless it ends in one."""
    blank = "" if prompt[-1:].isspace() else " "
    return blank + ANSWERS[0], blank + ANSWERS[1]


def names(*uses: str) -> list[str]:
    """The names of our own templates of these uses."""
    return [name for name in sorted(_shipped_texts()) if shipped(name).use in uses]


@cache
def _shipped_texts() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.toml")}


@cache
def shipped(name: str) -> Template:
    """One of our own templates."""
    return parsed(_shipped_texts()[name], name=name)


def template_of(named: str, *uses: str) -> Template:
    """A template by the name of one of ours, or by its text.

    Raises:
        PredictorError: there is none of this name, the text is no template, or it is for something else.
    """
    if "\n" in named.strip() or "=" in named:
        template = parsed(named)
    elif named in _shipped_texts():
        template = shipped(named)
    else:
        raise PredictorError(
            f"template: {named[:60]!r} is none of {', '.join(names(*uses))}, nor the text of a template."
        )
    if template.use not in uses:
        raise PredictorError(f'template: {template.name} is for use = "{template.use}"; give one for {_either(uses)}.')
    return template


def read_template(named: str, *uses: str) -> Template:
    """A template by the name of one of ours or by the path of a .toml file, as commands take it.

    Raises:
        PredictorError: as `template_of`; or the file cannot be read, or has the name of one of ours.
    """
    if not named.endswith(".toml"):
        return template_of(named, *uses)
    path = Path(named)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PredictorError(f"template: {named} cannot be read as UTF-8 text ({exc}).") from exc
    if path.stem in _shipped_texts() and text != _shipped_texts()[path.stem]:
        raise PredictorError(f"template: {path.stem} is the name of a template of ours; give the file another name.")
    template = parsed(text, name=path.stem)
    if template.use not in uses:
        raise PredictorError(f'template: {named} is for use = "{template.use}"; give one for {_either(uses)}.')
    return template


def parsed(text: str, *, name: str = "") -> Template:
    """The template of a TOML text.

    Raises:
        PredictorError: what is wrong, with the line.
    """
    if len(text) > LONGEST:
        raise PredictorError(f"template: it has {len(text):,} characters; at most {LONGEST:,}.")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise PredictorError(f"template: it is no TOML: {exc}.") from exc
    use: Any = table.get("use")
    if not isinstance(use, str) or use not in USES:
        _refuse(text, "use", f"is {use!r}; give {_either(tuple(USES))}")
    _check_keys(text, table, USES[use])
    _check_places(text, table["prompt"], USES[use])
    name = name or "own-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    if len(name) > 40:
        raise PredictorError(
            f"template: the name {name[:60]!r} has more than 40 characters; give the file a shorter one."
        )
    return Template(
        name=name,
        use=use,
        text=text,
        prompt=table["prompt"],
        system=table.get("system", ""),
        opening=table.get("opening", ""),
        outcomes=(table.get("wrong", "incorrectly"), table.get("right", "correctly")),
        score=table.get("score", "any"),
        max_tokens=table.get("max_tokens", 400 if use == "rank" else 16),
        own_version=table.get("version", ""),
        formats=tuple(ModelFormat(**entry) for entry in table.get("models", [])),
    )


def _check_keys(text: str, table: Mapping[str, Any], use: Use) -> None:
    known = ("use", "prompt", "system", "models", *use.keys)
    for key, value in table.items():
        if key not in known:
            _refuse(text, key, f"is no key of it; it has {', '.join(known)}")
        if key == "max_tokens":
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
                _refuse(text, key, "must be a whole number from 1 to 4096")
        elif key == "models":
            _check_models(text, value)
        elif not isinstance(value, str) or not value.strip():
            _refuse(text, key, "must be a text that is not empty")
    if table.get("score", "any") not in ("any", "last"):
        _refuse(text, "score", 'is the line that has the number: "any" or "last"')
    if len(table.get("version", "")) > 20:
        _refuse(text, "version", "has more than 20 characters")
    if table.get("right", "correctly") == table.get("wrong", "incorrectly"):
        _refuse(text, "right", "says the same as wrong")
    if "prompt" not in table:
        _refuse(text, "prompt", "is missing")


def _check_models(text: str, entries: Any) -> None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        _refuse(text, "models", "must be tables: [[models]]")
    for entry in entries:
        if unknown := sorted(set(entry) - {"model", "system", "format"}):
            _refuse(text, unknown[0], "is no key of [[models]]; it has model, system, format")
        if not all(isinstance(value, str) for value in entry.values()) or not entry.get("model"):
            _refuse(text, "models", "each needs model, a name or a pattern such as vicuna*, and texts")
        layout = entry.get("format")
        if layout is not None and layout.count("{prompt}") != 1:
            _refuse(text, "format", "must have the place {prompt} once, and may have {system}")
        if layout is not None and entry.get("system") and "{system}" not in layout:
            _refuse(text, "format", "lacks the place {system}, so that the system message would be lost")


def _check_places(text: str, prompt: str, use: Use) -> None:
    there = [match[1] for match in _PLACE.finditer(prompt) if match[1]]
    known = (*use.required, *use.optional)
    for place in there:
        if place not in known:
            line = text[: text.find("{" + place + "}")].count("\n") + 1
            raise PredictorError(
                f"template, line {line}: {{{place}}} is no place; there are "
                f"{', '.join('{' + own + '}' for own in known)}. Braces of your own are written {{{{ and }}}}."
            )
    if missing := [place for place in use.required if place not in there]:
        _refuse(text, "prompt", f"lacks {', '.join('{' + place + '}' for place in missing)}")


def _refuse(text: str, key: str, what: str) -> None:
    match = re.search(rf"^\s*(?:\[\[)?{re.escape(key)}\b", text, re.MULTILINE)
    line = text[: match.end()].count("\n") + 1 if match else 1
    raise PredictorError(f"template, line {line}: {key} {what}.")


def _either(uses: Sequence[str]) -> str:
    return " or ".join(f'"{use}"' for use in uses)
