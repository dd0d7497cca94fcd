"""A respondent's whole way through each instrument: every page, every refusal, and what each answer stores.

    python -m tests.renew sittings

writes the texts in `data/sittings` again.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from django.test import Client

from survey.models import Sitting, Study
from survey.services.sittings import expiry
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import lifecycle
from tests import cast
from tests.frontend.pages import read
from tests.golden.make_instruments import answers as item_answers
from tests.survey.instruments import (
    test_cloze,
    test_next_token,
    test_own_answers,
    test_preference,
    test_self_paced_reading,
    test_token_comparison,
)
from tests.survey.printed_screens.test_screens import TWO_LANGUAGES
from tests.survey.sittings import test_quotas

from .recording import Script, script, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database]
__all__ = ["script"]

EXAMPLE = {"target": "<b>Which is heavier?</b>", "evidence": "How many minutes?", "outcome": "correct"}
CHECK = {"name": "look", "after_item": 1, "kind": "instruction", "text": "Choose b.", "options": ["b", "a"]}


def with_practice(*examples: Mapping[str, Any]) -> list[dict[str, Any]]:
    consent, *rest = cast.BASE["blocks"]
    return [consent, {"kind": "practice", "text": "Try it.", "examples": list(examples)}, *rest]


def beliefs(**options: Any) -> Study:
    blocks = cast.BASE["blocks"] if "evidence_questions" in options else with_practice(EXAMPLE)
    sitting = {"items": 2, "attention_checks": [CHECK]}
    return cast.study(blocks=blocks, sitting=sitting, instrument={"kind": "belief_update", "options": options})


def three_steps() -> Study:
    cast.bank(200)
    return beliefs(evidence_questions=3, answer_mode="blank")


def own_answers() -> Study:
    test_own_answers.bank()
    return cast.study(
        bank="quiz", sitting={"items": 3}, instrument={"kind": "own_answers", "options": {"answers_per_question": 4,
        "confidence": True}},
    )  # fmt: skip


def cloze() -> Study:
    test_cloze.import_sentences()
    return cast.study(**{**test_cloze.CLOZE, "slug": "cast", "blocks": practised(test_cloze)})


def next_token() -> Study:
    test_next_token.prepare_tales()
    return cast.study(**{**test_next_token.STUDY, "slug": "cast"})


def preference() -> Study:
    test_preference.import_prompts()
    instrument = {"kind": "preference", "options": {"models": list(test_preference.MODELS), "reason": 1.0}}
    return cast.study(**{**test_preference.PREFERENCE, "slug": "cast", "instrument": instrument})


def reading() -> Study:
    test_self_paced_reading.import_passages()
    test_self_paced_reading.train_tiny_model()
    return cast.study(**{**test_self_paced_reading.READING, "slug": "cast"})


def token_comparison() -> Study:
    test_token_comparison.prepare()
    return cast.study(
        **{**test_token_comparison.COMPARISON, "slug": "cast", "blocks": practised(test_token_comparison)}
    )


def practised(module: Any) -> list[dict[str, Any]]:
    consent, *rest = module.BLOCKS
    return [consent, module.PRACTICE, *rest]


STUDIES: dict[str, Callable[[], Study]] = {
    "directions": partial(beliefs, explanation=1.0, own_answer=True, confidence=True),
    "blank": partial(beliefs, answer_mode="blank", models="unsaid"),
    "button": partial(beliefs, answer_mode="keep_button"),
    "steps": partial(beliefs, evidence_questions=2, answer_mode="blank"),
    "three_steps": three_steps,
    "languages": lambda: cast.study(**TWO_LANGUAGES),
    "own_answers": own_answers,
    "cloze": cloze,
    "next_token": next_token,
    "preference": preference,
    "reading": reading,
    "token_comparison": token_comparison,
}
ADDRESS = "/s/cast/sitting"


class Walk:
    """Somebody who tries what is refused on the first page of each kind, answers, sends that twice, and goes on."""

    def __init__(self, script: Script) -> None:
        self.script, self.client = script, Client()
        self.seen: list[str] = []
        self.tried: set[tuple[str, ...]] = set()

    def begin(self, query: str = "") -> None:
        script = self.script
        if query:
            script.page(self.client, f"/s/cast/{query}")
        script.page(self.client, "/s/cast/")
        script.page(self.client, "/s/cast/consent", {})
        script.page(self.client, "/s/cast/consent", {"consent": "perhaps"})
        script.page(self.client, "/s/cast/consent", {"consent": "yes", "script": "1"})
        self.sitting = Sitting.objects.latest("pk")
        self.person = cast.simulated_person(self.sitting)

    @property
    def step(self) -> Step:
        self.sitting = Sitting.objects.select_related("stage__study__bank", "respondent", "booklet").get(
            pk=self.sitting.pk
        )
        return current_step(self.sitting)

    def go_on(self, *, most: int = 60) -> None:
        for _page in range(most):
            step = self.step
            self.look(step)
            if step.kind == "end":
                return
            name = (step.kind, step.screen.name.rstrip("0123456789") if step.screen is not None else "")
            if name not in self.tried:
                self.tried.add(name)
                for title, data in refused(step):
                    self.send(step, f"{name[0]} {name[1]}: {title}", data)
                    if self.step.number != step.number:
                        break
                if self.step.number != step.number:
                    continue
                self.send(step, "a step too far", self.answers(step), number=step.number + 1)
            data = self.answers(step)
            self.send(step, f"answer {self.script.clean(str(data))}", data)
            if (*name, "twice") not in self.tried:
                self.tried.add((*name, "twice"))
                self.send(step, "the same once more", data, number=step.number)

    def answers(self, step: Step) -> dict[str, Any]:
        if step.kind == "checks":
            return cast.answers_for(step)
        if step.kind == "form":
            return {"age": "99", "use": "often", "remark": "<i>none</i>"}
        if step.screen is not None and "question" in step.screen.parts and step.screen.name == "answer":
            return {
                "answer": "B" if "(A)" in str(step.screen.parts["question"]["value"]) else "1,234",
                "confidence": "0",
            }
        return dict(item_answers(step, self.person, self.sitting, 1))

    def look(self, step: Step) -> None:
        def page() -> str:
            text = text_of(self.client.get(ADDRESS, follow=True))
            new = [line for line in text.splitlines() if line not in self.seen]
            self.seen = text.splitlines()
            return "\n".join(new)

        self.script.act(f"page {step.number}: {step.kind}", page)

    def send(self, step: Step, title: str, data: Mapping[str, Any], *, number: int | None = None) -> None:
        """The lines that the page before did not have are noted."""

        def post() -> str:
            page = read(self.client.get(ADDRESS, follow=True).content.decode())
            shown = {} if step.screen is None or number is None else {"screen": step.screen.name}
            whole = {**page.hidden, **data, **shown, **({} if number is None else {"step": str(number)})}
            text = text_of(self.client.post(ADDRESS, whole, follow=True))
            return "\n".join(line for line in text.splitlines() if line not in self.seen)

        self.script.act(title, post)


def refused(step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    """Nothing, and each field with what is too little, too much or no answer to it."""
    yield "nothing", {}
    form = step.screen.form if step.screen is not None else None
    fields: list[tuple[str, Any]] = [*form().fields.items()] if form is not None else []
    for name, field in [*fields, *((field.name, field) for field in step.block.fields if step.kind == "form")]:
        for value in wrong_values(field):
            yield f"{name}={value[:20]}", {name: value}


def wrong_values(field: Any) -> Iterator[str]:
    """Of a field of Django, or of one of the study file's forms."""
    if getattr(field, "choices", None) or getattr(field, "options", None):
        yield "nothing-of-that"
    low, high = (getattr(field, f"{end}_value", getattr(field, f"{end}imum", None)) for end in ("min", "max"))
    if low is not None and high is not None:
        yield from (str(low - 1), str(high + 1), "12.5", "many")
    if (most := getattr(field, "max_length", getattr(field, "max_characters", None))) is not None:
        yield "x" * (most + 1)


@pytest.mark.parametrize("name", STUDIES)
def test_way(script: Script, name: str) -> None:
    script.prepare(lambda: cast.open_first_stage(STUDIES[name]()))
    walk = Walk(script)
    walk.begin("?language=de" if name == "languages" else "")
    walk.go_on()
    script.page(walk.client, "/s/cast/")
    script.page(walk.client, "/s/cast/consent", {"consent": "yes"})


def test_late_and_odd(script: Script) -> None:
    """Who fails, leaves, comes back too late, writes a remark, declines, or finds no place."""
    sitting = {"items": 2, "expires_after_minutes": 30}
    made = script.prepare(lambda: cast.open_study(sitting=sitting, stages=[{"sittings": 2}]))
    fails = Walk(script)
    fails.begin()
    fails.send(fails.step, "instructions", {})
    for attempt in (1, 2):
        fails.send(fails.step, f"wrong answers, attempt {attempt}", cast.wrong_answers_for(fails.step))
    fails.look(fails.step)
    late = Walk(script)
    late.begin()
    late.go_on(most=4)
    page = read(late.client.get(ADDRESS, follow=True).content.decode())
    for report in ("", "It is odd.", "x" * 5001):
        script.page(late.client, "/s/cast/report", {**page.hidden, "position": "1", "report": report})
    for data in ({"step": str(late.step.number)}, {"step": "x"}, {}):
        script.page(late.client, "/s/cast/beacon", data)
    for minutes in (28, 2, 1):
        script.clock.shift(60 * minutes)
        script.act(f"{minutes} minutes later", lambda: str(expiry.expire_sittings()))
    late.send(late.step, "an answer after the end", {"value": "50"})
    late.look(late.step)
    declines = Client()
    script.page(declines, "/s/cast/consent", {"consent": "no"}, follow=True)
    script.page(declines, "/s/cast/", {"language": "xx"})
    for number in range(3):
        walk = Walk(script)
        walk.begin()
        script.act(f"person {number} to the end", partial(to_end, walk.sitting))
    script.page(Client(), "/s/cast/")
    script.page(Client(), "/s/nothing/")
    script.page(Client(), "/s/cast/sitting")
    script.act("pause", lambda: lifecycle.pause_stage(cast.stage_of(made)))
    script.page(Client(), "/s/cast/")
    script.page(Client(), "/s/cast/consent", {"consent": "yes"}, follow=True)


def test_leaving_and_coming_back(script: Script) -> None:
    """Under quotas, to items that were dealt again meanwhile or not."""
    asked = test_quotas.study_of(test_quotas.OFTEN, sitting={"items": 2}, stages=[{"sittings": 6}])
    made = script.prepare(lambda: cast.open_stage(**asked).study)
    people: dict[str, cast.Visitor] = {}

    def comes(name: str, use: str) -> str:
        people[name] = cast.Visitor(made, ids=cast.PanelIds("generic", name))
        return people[name].post(use=use).kind

    def leaves(name: str, answered: int) -> str:
        visitor = people[name].to_items()
        for _item in range(answered):
            visitor.answer()
        visitor.expire()
        return f"{visitor.states()}; {expiry.deal_make_up_booklets(cast.stage_of(made))} make-up booklets"

    def comes_back(name: str) -> str:
        people[name] = cast.Visitor(made, ids=people[name].ids)
        step = people[name].step
        return f"{step.kind} {step.outcome} {step.position}"

    def ends(name: str) -> str:
        return f"{people[name].finish().states()} {test_quotas.places()}"

    for name, use in (("a", "daily"), ("b", "some"), ("c", "never"), ("d", "some")):
        script.act(f"{name} comes ({use})", partial(comes, name, use))
    for name, answered in (("a", 1), ("b", 0), ("d", 0)):
        script.act(f"{name} leaves", partial(leaves, name, answered))
    for name in ("e", "f", "g"):
        script.act(f"{name} comes (daily)", partial(comes, name, "daily"))
    script.act("e ends", partial(ends, "e"))
    for name in ("a", "b", "d"):
        script.act(f"{name} comes back", partial(comes_back, name))
    for name in ("a", "b", "d"):
        script.act(f"{name} ends", partial(ends, name))


def to_end(sitting: Sitting) -> str:
    step = cast.walk(sitting)
    return f"{step.kind} {step.outcome}"
