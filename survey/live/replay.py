"""One sitting from beginning to end: each page with what it showed, what was answered and when. Only reads.

Pages are made again from the study file that the sitting began with and from the item's rows. The hash that was stored
with each answer says whether the item's page is the one that the person saw.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import translation

from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.contracts.screens import Screen
from survey.models import Assignment, Response, ScreenTiming, Sitting
from survey.models.question import plain_text
from survey.services.answers.blinding import shown_levels
from survey.services.answers.conditions import hand_levels
from survey.services.answers.counting import with_answers
from survey.services.answers.sitting_flags import marks_of
from survey.services.base.hashing import digest
from survey.study_file import BlockConfig, StudyConfig

CHANGED = "The page is not the one that was shown: a question or a text has been changed since."
BLIND = "The study is blind, so that only the questions are shown, without what a condition may have changed."


@dataclass(frozen=True)
class ReplayPage:
    """One thing that happened: a page with its texts and answers, or an event without a page.

    `seconds` are by the server's clock, from the page before. `note` says what a reader should know; `failed`: a check
    was not passed.
    """

    at: datetime
    title: str
    texts: Sequence[str] = ()
    answers: Sequence[tuple[str, str]] = ()
    seconds: float | None = None
    client: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    failed: bool = False
    order: int = 0


@dataclass(frozen=True)
class Replay:
    sitting: Sitting
    levels: Mapping[str, str]
    flags: Sequence[str]
    excluded: Sequence[str]
    pages: Sequence[ReplayPage]


def replay(sitting: Sitting) -> Replay:
    """
    Raises:
        InstrumentMissing: the study's instrument cannot be used, so that nobody can say what its items showed.
    """
    study = sitting.stage.study
    instrument = instruments.of_study(study)
    with translation.override(sitting.language):
        pages = [*_pages(sitting), *_items(sitting, instrument), *_events(sitting)]
    exclusion = getattr(sitting, "exclusion", None)
    return Replay(
        sitting=sitting,
        levels=shown_levels(study, sitting.levels()),
        flags=marks_of(study, [sitting.pk]).get(sitting.pk, ()),
        excluded=exclusion.flags if exclusion is not None else (),
        pages=sorted(pages, key=lambda page: (page.at, page.order)),
    )


# Pages that are no items


def _pages(sitting: Sitting) -> Iterator[ReplayPage]:
    config = sitting.shown_config
    timings = list(sitting.screen_timings.all())
    attempts, attention = (
        list(sitting.check_attempts.all()),
        {attention_answer.name: attention_answer for attention_answer in sitting.attention_answers.all()},
    )
    forms = {form_answer.block: form_answer for form_answer in sitting.form_answers.all()}
    practised = list(sitting.practice_answers.all())
    checked = iter(attempts)
    practice = iter(practised)
    for timing in timings:
        block = _block(config, timing)
        title, texts, answers, failed = f"{timing.kind} {timing.name}".strip(), _texts(sitting, block), [], False
        if timing.kind == "checks" and (attempt := next(checked, None)) is not None:
            names = {check.name: check for block in config.blocks for check in block.checks}
            answers = [
                (_question(names, name), _option(names, name, chosen)) for name, chosen in attempt.answers.items()
            ]
            title, failed = f"{title}, attempt {attempt.attempt}", not attempt.passed
        elif timing.kind == "attention" and (given := attention.get(timing.name)) is not None:
            checks = {check.name: check for check in config.sitting.attention_checks}
            words = str(checks[timing.name].text) if timing.name in checks else timing.name
            texts, failed = [words], not given.passed
            answers = [("", _option(checks, timing.name, given.answer))]
        elif timing.kind == "form" and (form := forms.get(timing.name)) is not None:
            labels = {field.name: str(field.label) for field in block.fields} if block is not None else {}
            answers = [(labels.get(name, name), _as_text(value)) for name, value in form.answers.items()]
        elif timing.kind == "practice" and (practice_answer := next(practice, None)) is not None:
            answers = [(name, _as_text(value)) for name, value in practice_answer.data.items()]
        elif timing.kind == "debriefing" and (choice := getattr(sitting, "data_choice", None)) is not None:
            answers = [("my answers", "may be used" if choice.may_use else "are withdrawn")]
        yield ReplayPage(
            at=timing.taken_at,
            title=title,
            texts=texts,
            answers=answers,
            seconds=timing.server_ms / 1000,
            client=timing.client,
            failed=failed,
            order=timing.step,
        )


def _block(config: StudyConfig, timing: ScreenTiming) -> BlockConfig | None:
    known = [block for block in config.blocks if block.kind == timing.kind]
    return next((block for block in known if (block.name or "") == timing.name), known[0] if known else None)


def _texts(sitting: Sitting, block: BlockConfig | None) -> list[str]:
    """The words of a block as they stood under the sitting's levels; of a blind study as they stand without any."""
    if block is None:
        return []
    levels = shown_levels(sitting.stage.study, sitting.levels()) if sitting.config.conditions else {}
    return [text for text in (str(block.title), str(sitting.shown_config.block_text(block, levels))) if text]


def _question(known: Mapping[str, Any], name: str) -> str:
    return str(known[name].question) if name in known else name


def _option(known: Mapping[str, Any], name: str, chosen: int) -> str:
    options = known[name].options if name in known else []
    return str(options[chosen]) if chosen < len(options) else f"option {chosen + 1}"


def _as_text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# Items


def _items(sitting: Sitting, instrument: Instrument) -> Iterator[ReplayPage]:
    study = sitting.stage.study
    answers = list(with_answers(sitting.assignments.all(), study).order_by("position"))
    hand_levels(answers)
    for answer in answers:
        answer.sitting.stage = sitting.stage
        responses = list(answer.responses.all())
        for number, response in enumerate(responses):
            answer.hand_responses(responses[:number])
            yield _item_page(answer, response, instrument.next_screen(answer), instrument)
        answer.hand_responses(responses)
        if answer.state in Assignment.GIVEN_BACK:
            at = answer.completed_at or sitting.expired_at or sitting.ended_at or sitting.last_seen_at
            yield ReplayPage(at, f"item {answer.position}: {answer.get_state_display()}", order=10**6)


def _item_page(answer: Assignment, response: Response, screen: Screen | None, instrument: Instrument) -> ReplayPage:
    is_blind = answer.sitting.stage.study.is_blind
    note, texts = "", list[str]()
    if screen is not None:
        if digest(screen.content()) != response.screen_sha256:
            note = CHANGED
        parts = [(name, part) for name, part in screen.parts.items() if name != "variant"]
        texts = [_part(name, part) for name, part in parts if not is_blind or part["kind"] == "question"]
        if is_blind:
            note = BLIND
        else:
            texts = [str(screen.title), *texts, *map(str, screen.words.values())]
    words = instrument.answer_in_words(response)
    return ReplayPage(
        at=response.answered_at,
        title=f"item {answer.position}, {response.screen}",
        texts=[text for text in texts if text],
        answers=[("", words)] if words else [],
        seconds=response.server_ms / 1000,
        client=response.client,
        note=note,
        order=response.number,
    )


def _part(name: str, part: Mapping[str, Any]) -> str:
    value = part.get("value")
    if part.get("kind") == "question":
        return plain_text(str(value))
    return "" if value is None else f"{name.replace('_', ' ')}: {value}"


# What else happened


def _events(sitting: Sitting) -> Iterator[ReplayPage]:
    yield ReplayPage(sitting.started_at, "arrived", order=-2)
    if (consent := getattr(sitting, "consent", None)) is not None:
        yield ReplayPage(consent.given_at, f"consented to version {consent.version}", order=-1)
    for left in sitting.unfinished_screens.all():
        title = f"left the page unsent: {left.kind} {left.name}".strip()
        yield ReplayPage(left.left_at, title, client=left.client, order=left.step)
    for report in sitting.question_reports.all():
        title = f"wrote about item {report.assignment.position}, {report.screen}"
        yield ReplayPage(report.at, title, answers=[("", report.text)])
    if sitting.expired_at is not None:
        yield ReplayPage(sitting.expired_at, "was silent for too long: the sitting expired", order=10**6)
    if sitting.ended_at is not None:
        yield ReplayPage(sitting.ended_at, f"ended: {sitting.get_state_display()}", order=10**7)
    if sitting.withdrawn_at is not None:
        yield ReplayPage(sitting.withdrawn_at, "withdrew all answers, which are deleted", order=10**8)
