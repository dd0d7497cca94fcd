"""The belief item: its answer modes, numbers, reasons, own answers and words, shown, accepted, stored and exported."""

import json
from typing import Any

import pytest
from django.utils import translation
from pydantic import Field

from survey.contracts import instruments
from survey.contracts.screens import Screen
from survey.exceptions import FieldErrors, FileErrors
from survey.instruments.belief_update import forms, variants
from survey.instruments.belief_update.instrument import BeliefUpdate
from survey.instruments.belief_update.models import Belief, Explanation, TargetAnswer
from survey.instruments.belief_update.options import BeliefUpdateOptions
from survey.models import Response, Sitting, Study
from survey.services.base.hashing import digest
from survey.services.results.export import answers_file, columns
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import Step, current_step
from survey.services.studies.amending import amend
from survey.services.studies.outdated import file_problems
from survey.simulator import visitors
from tests import cast
from tests.frontend.pages import read

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MODES = ("direction", "blank", "keep_button", "prefilled")


def options(**fields: Any) -> dict[str, Any]:
    return {"instrument": {"kind": "belief_update", "options": fields}}


def open_study(**fields: Any) -> Study:
    return cast.open_study(**options(**fields))


class Walker:
    """Somebody at the first item, by the services that pages and API call."""

    def __init__(self, study: Study) -> None:
        self.sitting = cast.begin(study)
        cast.walk(self.sitting, until="item")

    @property
    def step(self) -> Step:
        self.sitting.refresh_from_db()
        return current_step(self.sitting)

    @property
    def screen(self) -> Screen:
        screen = self.step.screen
        assert screen is not None
        return screen

    def post(self, **data: Any) -> Step:
        self.sitting.refresh_from_db()
        return advance(sitting=self.sitting, step=self.sitting.step, data=data)

    def refused(self, **data: Any) -> dict[str, list[str]]:
        before = Response.objects.count()
        with pytest.raises(FieldErrors) as refusal:
            self.post(**data)
        assert Response.objects.count() == before
        return dict(refusal.value.errors)


def form_of(mode: str, *, earlier: int = 60, order: tuple[str, ...] = forms.DIRECTIONS) -> type[forms.BeliefForm]:
    return forms.posterior_form(mode=mode, earlier=earlier, order=order)


def rows_of(study: Study) -> list[dict[str, Any]]:
    names = [column.name for column in columns.columns_of(study)]
    return [dict(zip(names, row, strict=True)) for row in answers_file.answer_rows(study)]


# What is accepted


@pytest.mark.parametrize(
    ("mode", "earlier", "data", "value"),
    [
        ("direction", 60, {"direction": "same"}, 60),
        ("direction", 60, {"direction": "same", "value": "60"}, 60),
        ("direction", 60, {"direction": "higher", "value": "61"}, 61),
        ("direction", 60, {"direction": "lower", "value": "0"}, 0),
        ("direction", 99, {"direction": "higher", "value": "100"}, 100),
        ("direction", 0, {"direction": "same"}, 0),
        ("direction", 100, {"direction": "same"}, 100),
        ("blank", 60, {"value": "60"}, 60),
        ("blank", 60, {"value": " 62 % "}, 62),
        ("blank", 60, {"value": "0"}, 0),
        ("keep_button", 60, {"keep": "yes"}, 60),
        ("keep_button", 60, {"keep": "yes", "value": "60"}, 60),
        ("keep_button", 60, {"value": "100"}, 100),
        ("keep_button", 0, {"keep": "yes"}, 0),
        ("prefilled", 60, {"value": "60"}, 60),
        ("prefilled", 60, {"value": "5"}, 5),
    ],
)
def test_it_makes_one_number_of_what_was_given(mode: str, earlier: int, data: dict[str, str], value: int) -> None:
    form = form_of(mode, earlier=earlier)(data)
    assert form.is_valid(), form.errors
    assert form.cleaned_data["value"] == value
    assert form.cleaned_data["direction"] == data.get("direction", "")


@pytest.mark.parametrize(
    ("mode", "data", "field", "said"),
    [
        ("direction", {}, "direction", "Choose one of the answers"),
        ("direction", {"value": "70"}, "direction", "Choose one of the answers"),
        ("direction", {"direction": "up", "value": "70"}, "direction", "Choose one of the answers"),
        ("direction", {"direction": "higher"}, "value", "Enter your new number"),
        ("direction", {"direction": "lower", "value": " "}, "value", "Enter your new number"),
        ("direction", {"direction": "higher", "value": "60"}, "value", "60 is not higher than 60"),
        ("direction", {"direction": "higher", "value": "50"}, "value", "50 is not higher than 60"),
        ("direction", {"direction": "lower", "value": "60"}, "value", "60 is not lower than 60"),
        ("direction", {"direction": "lower", "value": "100"}, "value", "100 is not lower than 60"),
        ("direction", {"direction": "same", "value": "70"}, "value", "this is another number"),
        ("direction", {"direction": "higher", "value": "many"}, "value", "Enter a whole number"),
        ("direction", {"direction": "higher", "value": "101"}, "value", "The highest answer is 100"),
        ("direction", {"direction": "lower", "value": "-1"}, "value", "The lowest answer is 0"),
        ("blank", {}, "value", "Enter a number from 0 to 100"),
        ("keep_button", {}, "value", "or choose that your answer stays"),
        ("keep_button", {"keep": "yes", "value": "70"}, "value", "chose that your answer stays"),
        ("keep_button", {"value": "60.5"}, "value", "Enter a whole number"),
        ("prefilled", {"value": ""}, "value", "Enter a number from 0 to 100"),
    ],
)
def test_it_refuses_kindly_at_the_field(mode: str, data: dict[str, str], field: str, said: str) -> None:
    form = form_of(mode)(data)
    assert not form.is_valid()
    assert list(form.errors) == [field] and len(form.errors[field]) == 1
    assert said in form.errors[field][0]


def test_only_prefilled_starts_with_a_number() -> None:
    started = {mode: form_of(mode)().fields["value"].initial for mode in MODES}
    assert started == {"direction": None, "blank": None, "keep_button": None, "prefilled": 60}


@pytest.mark.parametrize(
    ("mode", "data", "language", "said"),
    [
        ("blank", None, "en", "no answer yet"),
        ("blank", None, "de", "noch keine Antwort"),
        ("blank", {"value": "many"}, "de", "noch keine Antwort"),
        ("blank", {"value": "101"}, "en", "no answer yet"),
        ("blank", {"value": " 0 "}, "de", "0 %"),
        ("prefilled", None, "en", "60 %"),
    ],
)
def test_the_page_as_it_is_served_says_where_the_track_stands(
    mode: str, data: dict[str, str] | None, language: str, said: str
) -> None:
    """A screen reader may be faster than the script, which says the same again."""
    with translation.override(language):
        page = read(str(form_of(mode)(data)["value"]))
    (track,) = (field for field in page.inputs if field["type"] == "range")
    assert track["aria-valuetext"] == said
    assert track.get("value", "") == (said.removesuffix(" %") if said.endswith("%") else "")
    assert ("untouched" in track.get("class", "")) == (not said.endswith("%"))
    with translation.override(language):
        assert track["data-untouched"] == translation.gettext("no answer yet")


@pytest.mark.parametrize(
    ("facts", "stored"),
    [
        ({"value_by": "track", "value_first": "50", "value_changes": "3"}, ("track", 50, 3)),
        ({"value_by": "track_keys", "value_first": "0", "value_changes": "1"}, ("track_keys", 0, 1)),
        ({"value_by": "typed", "value_first": "", "value_changes": ""}, ("typed", None, None)),
        ({}, ("", None, None)),
        ({"value_by": "magic", "value_first": "101", "value_changes": "-1"}, ("", None, None)),
        ({"value_by": "button", "value_first": "1e2", "value_changes": "9" * 5000}, ("", None, None)),
        ({"value_by": "typed" * 50, "value_first": "٤٢", "value_changes": "1.5"}, ("", None, None)),
    ],
)
def test_how_a_number_was_entered_is_stored_and_nonsense_is_dropped(
    facts: dict[str, str], stored: tuple[str, int | None, int | None]
) -> None:
    walker = Walker(open_study())
    walker.post(value="60", **facts)
    belief = Belief.objects.get()
    assert (belief.entered_by, belief.first_value, belief.value_changes) == stored


def test_a_kept_number_was_entered_by_a_button() -> None:
    for mode, data in (("direction", {"direction": "same"}), ("keep_button", {"keep": "yes"})):
        walker = Walker(cast.open_study(slug=mode.replace("_", "-"), **options(answer_mode=mode)))
        walker.post(value="60")
        walker.post(**data, value_by="typed")
        belief = Belief.objects.order_by("response_id").last()
        assert belief is not None
        assert (belief.value, belief.entered_by, belief.direction) == (60, "button", data.get("direction", ""))


def test_a_refused_answer_can_be_mended() -> None:
    walker = Walker(open_study())
    walker.post(value="60")
    assert set(walker.refused(direction="higher", value="50")) == {"value"}
    walker.post(direction="lower", value="50")
    assert list(Belief.objects.order_by("response_id").values_list("value", "direction")) == [(60, ""), (50, "lower")]


# The default


def test_a_new_study_is_stored_with_all_options_and_asks_for_the_direction() -> None:
    study = open_study(threshold=5)
    stored = study.config.instrument.options
    assert stored["answer_mode"] == "direction" and stored["models"] == "different" and stored["threshold"] == 5
    assert set(stored) == set(BeliefUpdateOptions.model_fields)


def test_new_options_are_in_the_hash_and_can_be_read() -> None:
    hashes, variants = set(), set()
    for number, fields in enumerate(
        [
            {},
            {"answer_mode": "blank"},
            {"models": "one"},
            {"answerer": "ai_or_person"},
            {"models": "unsaid", "answer_mode": "prefilled"},
        ]
    ):
        walker = Walker(cast.open_study(slug=f"v{number}", **options(**fields)))
        target = walker.screen.parts["target"]
        walker.post(value="60")
        screen = walker.screen
        content = {**screen.content(), "parts": {**screen.parts, "target": target, "evidence": "", "outcome": ""}}
        hashes.add(digest({**content, "words": {}}))
        walker.post(**cast.answers_for(walker.step))
        variants |= set(Belief.objects.order_by("-response_id").values_list("variant", flat=True)[:1])
    assert len(hashes) == len(variants) == 5
    edition = BeliefUpdateOptions().edition
    assert (
        f"answer_mode=prefilled; answerer=model; models=unsaid; evidence=hypothetical; language=en; edition={edition}"
        in variants
    )


@pytest.mark.parametrize(
    ("edition", "said"),
    [
        (1, "What you see of one says nothing about the next."),
        (2, "What you see this time says nothing about the next time."),
    ],
)
def test_a_study_keeps_the_sentences_of_its_edition(edition: int, said: str) -> None:
    walker = Walker(open_study(edition=edition))
    assert walker.screen.words["each"] == f"Each time, we ask about a different model. {said}"


def test_words_are_in_the_hash_of_every_screen() -> None:
    walker = Walker(open_study())
    screen = walker.screen
    walker.post(value="60")
    stored = Response.objects.get().screen_sha256
    assert stored == digest(
        {"screen": "prior", "title": screen.title, "parts": screen.parts, "words": dict(screen.words)}
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"answer_mode": "slider"}, "instrument.options.answer_mode: choose one of direction, blank"),
        ({"explanation": 0}, 'instrument.options.explanation: write "none", "all", or a share above 0'),
        ({"explanation": 1.5}, 'instrument.options.explanation: write "none", "all", or a share above 0'),
        ({"explanation": "some"}, 'instrument.options.explanation: write "none", "all", or a share above 0'),
        ({"explanation": True}, 'instrument.options.explanation: write "none", "all", or a share above 0'),
        ({"explanation_characters": 0}, "instrument.options.explanation_characters: must be 1 or more"),
        ({"confidence": True}, "instrument.options.confidence: it is that in the own answer: set own_answer"),
        (
            {"evidence": "real", "models": "different"},
            "instrument.options.models: real answers are those of one model",
        ),
    ],
)
def test_it_refuses_options_that_mean_nothing(given: dict[str, Any], said: str) -> None:
    with pytest.raises(FileErrors) as refusal:
        cast.study(**options(**given))
    assert said in "\n".join(refusal.value.lines)


def test_real_answers_are_said_to_be_those_of_one_model() -> None:
    assert BeliefUpdateOptions(evidence="real").models == "one"
    assert BeliefUpdateOptions().models == "different"


# The order of the directions


class Seated:
    """As much of a sitting as the order reads."""

    def __init__(self, number: int) -> None:
        self.public_id = type("Id", (), {"hex": f"{number:032x}"})


def test_the_order_is_drawn_evenly_and_is_the_same_again() -> None:
    orders = [variants.order_of(Seated(number), seed=7) for number in range(2000)]  # type: ignore[arg-type]
    assert orders == [variants.order_of(Seated(number), seed=7) for number in range(2000)]  # type: ignore[arg-type]
    assert set(orders) == {("lower", "same", "higher"), ("higher", "same", "lower")}
    assert 900 < orders.count(("lower", "same", "higher")) < 1100
    others = [variants.order_of(Seated(number), seed=8) for number in range(2000)]  # type: ignore[arg-type]
    assert 900 < sum(order == other for order, other in zip(orders, others, strict=True)) < 1100


@pytest.mark.thorough
def test_a_sitting_has_one_order_which_is_stored_and_exported() -> None:
    study = open_study()
    orders_by_person = {}
    for _person in range(4):
        walker = Walker(study)
        orders = set()
        while walker.step.kind == "item":
            fields = walker.screen.form().fields
            if "direction" in fields:
                orders.add(cast.values_of(fields["direction"]))
            walker.post(**cast.answers_for(walker.step))
        (order,) = orders
        orders_by_person[walker.sitting.respondent.pseudonym] = ",".join(order)
    rows = [row for row in rows_of(study) if row["respondent"]]
    assert {row["respondent"]: row["direction_order"] for row in rows} == orders_by_person
    assert all(f"order={row['direction_order']}" in row["variant"] for row in rows)
    assert {(row["answer_mode"], row["direction"]) for row in rows} == {("direction", "higher")}


# Reasons


def test_reasons_are_asked_for_after_a_change_and_after_none_alike() -> None:
    study = open_study(explanation="all")
    for direction, value in (("same", ""), ("higher", "90")):
        walker = Walker(study)
        walker.post(value="60")
        walker.post(direction=direction, value=value)
        screen = walker.screen
        assert screen.name == "explanation"
        assert screen.title == "Why is this your answer now?"
        assert screen.parts["posterior"]["value"] == int(value or 60)


def test_an_item_is_complete_after_its_last_screen_and_has_its_label_before() -> None:
    study = open_study(explanation="all", own_answer=True, confidence=True)
    walker = Walker(study)
    first = walker.step.assignment
    assert first is not None
    walker.post(value="60")
    walker.post(direction="higher", value="66")
    first.refresh_from_db()
    assert not first.is_complete and first.state == "live"
    row = next(row for row in rows_of(study) if row["status"] == "live" and row["prior"] is not None)
    assert [row[f"belief_change{over}"] for over in ("", "_0", "_5", "_10")] == [1, 1, 1, 0]
    assert (row["explanation_asked"], row["explanation"], row["own_answer"]) == (1, None, None)
    walker.post(explanation="It read like one of its kind.")
    assert walker.screen.name == "own_answer" and set(walker.screen.parts) == {"target", "variant"}
    walker.post(answer="B", confidence="80")
    first.refresh_from_db()
    assert first.is_complete and first.state == "counted"
    row = next(row for row in rows_of(study) if row["status"] == "counted")
    assert (row["explanation"], row["own_answer"], row["own_confidence"]) == ("It read like one of its kind.", "B", 80)
    assert Explanation.objects.count() == TargetAnswer.objects.count() == 1


def test_reasons_may_be_left_empty_unless_they_are_required() -> None:
    for required in (False, True):
        slug = f"required-{required}".lower()
        study = cast.open_study(
            slug=slug, **options(explanation="all", explanation_required=required, explanation_characters=20)
        )
        walker = Walker(study)
        walker.post(value="60")
        walker.post(direction="same")
        assert set(walker.refused(explanation="x" * 21)) == {"explanation"}
        if required:
            assert walker.refused(explanation=" ")["explanation"] == ["Please write a few words."]
        else:
            walker.post(explanation="")
            assert Explanation.objects.get().text == ""


@pytest.mark.thorough
def test_a_share_of_items_is_explained_whatever_was_answered() -> None:
    """The draw is of seed, sitting and place alone: the same people are asked had they answered otherwise."""
    cast.bank(120)
    study = cast.open_study(**options(explanation=0.5), sitting={"items": 6}, stages=[{"sittings": 4}])
    asked: dict[int, list[bool]] = {}
    for person, changes in enumerate((True, False, True, False)):
        walker = Walker(study)
        drawn = [
            instruments.of_study(study).setting(assignment).explained  # type: ignore[attr-defined]
            for assignment in walker.sitting.assignments.order_by("position")
        ]
        asked[person] = []
        while walker.step.kind == "item":
            position, screen = walker.step.position, walker.screen
            if screen.name == "explanation":
                asked[person][position - 1] = True
                walker.post(explanation="")
            elif screen.name == "prior":
                asked[person].append(False)
                walker.post(value="50")
            else:
                walker.post(**({"direction": "higher", "value": "60"} if changes else {"direction": "same"}))
        assert asked[person] == drawn
    flags = [row["explanation_asked"] for row in rows_of(study)]
    assert sum(flags) == sum(map(sum, asked.values())) and 3 <= sum(flags) <= 21


def test_the_share_is_met_on_average() -> None:
    assignment = type("A", (), {})()
    assignment.slot = type("S", (), {"stage": type("T", (), {"seed": 3})})
    asked = 0
    for number in range(300):
        for position in range(1, 11):
            assignment.position, assignment.sitting = position, Seated(number)
            assignment.sitting.language = "en"
            asked += variants.of_assignment(assignment, BeliefUpdateOptions(explanation=0.25), {}).explained
    assert 650 < asked < 850


# The own answer


def test_the_own_answer_is_a_letter_where_the_question_has_options_and_is_judged() -> None:
    cast.bank(40, texts=("<b>Which?</b><br>(A) one<br>(B) two",) * 40)
    walker = Walker(open_study(own_answer=True))
    walker.post(value="60")
    walker.post(direction="same")
    assert cast.values_of(walker.screen.form().fields["answer"]) == ("A", "B")
    assert set(walker.refused(answer="C")) == {"answer"} and set(walker.refused()) == {"answer"}
    assert "confidence" not in walker.screen.form().fields
    walker.post(answer="A")
    assert TargetAnswer.objects.get().text == "A" and TargetAnswer.objects.get().correct is False


def test_an_own_answer_in_words_is_judged_by_the_key_which_no_screen_has() -> None:
    cast.bank(40, texts=tuple(f"<b>What is the key of {number}?</b>" for number in range(40)))
    walker = Walker(open_study(own_answer=True, confidence=True))
    walker.post(value="60")
    walker.post(direction="same")
    assignment = walker.step.assignment
    assert assignment is not None
    key = assignment.slot.item.pair.target.answer
    assert key not in json.dumps(walker.screen.content())
    assert set(walker.refused(answer=key)) == {"confidence"}
    walker.post(answer=key, confidence="100")
    answer = TargetAnswer.objects.get()
    assert (answer.text, answer.correct, answer.confidence) == (key, True, 100)


# What is never shown before the prior


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_no_evidence_can_be_read_before_the_prior_is_stored(mode: str) -> None:
    walker = Walker(open_study(answer_mode=mode, explanation="all", own_answer=True))
    while walker.step.kind == "item":
        step = walker.step
        assert step.assignment is not None and step.screen is not None
        pair = step.assignment.slot.item.pair
        assert pair.evidence is not None
        content = json.dumps(step.screen.content(), default=str)
        if step.screen.name == "prior":
            assert json.dumps(pair.evidence.text) not in content and '"outcome"' not in content
        if step.screen.name == "own_answer":
            # The own answer comes last, so that nobody who has thought about it gives a belief afterwards.
            assert step.assignment.responses.filter(belief__kind="posterior").exists()
        walker.post(**cast.answers_for(step))


# What pages say


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "prior", "posterior"),
    [
        ({}, "Each time, we ask about a different model.", "Suppose that the model answered"),
        ({"models": "one"}, "We always ask about the same model.", "Suppose that the model answered"),
        (
            {"answerer": "ai_or_person"},
            "Each time, we ask about a different AI system or person.",
            "Suppose that the same AI system or person was asked",
        ),
    ],
)
def test_pages_say_whether_models_differ_and_whether_it_is_supposed(
    given: dict[str, Any], prior: str, posterior: str
) -> None:
    walker = Walker(open_study(**given))
    assert prior in " ".join(walker.screen.words.values())
    walker.post(value="60")
    assert posterior in " ".join(walker.screen.words.values())


class ThirdEdition(BeliefUpdateOptions):
    earlier_defaults = {"edition": [1, 2]}
    edition: int = Field(default=3, ge=1, le=3)


@pytest.mark.parametrize("edition", [1, 2])
def test_a_third_edition_leaves_studies_of_earlier_ones_their_words_through_every_amendment(
    edition: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study()
    Walker(study)
    study.stored_config["instrument"]["options"]["edition"] = edition  # The default when the study was created.
    study.save(update_fields=["stored_config"])
    monkeypatch.setattr(BeliefUpdate, "options_model", ThirdEdition)
    for number in range(2):
        study = Study.objects.get(slug="cast")
        text = cast.study_text(title=f"Another title {number}", **options())
        amend(study, text=text, source_name="cast.toml", reason="a title")
        assert Study.objects.get(slug="cast").stored_config["instrument"]["options"]["edition"] == edition
    with pytest.raises(FileErrors) as refused:
        amend(study, text=cast.study_text(**options(edition=3)), source_name="cast.toml", reason="new words")
    assert "instrument.options.edition" in str(refused.value.lines)


def test_a_study_from_before_an_option_existed_has_its_first_default(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study()
    del study.stored_config["instrument"]["options"]["edition"]
    study.save(update_fields=["stored_config"])
    monkeypatch.setattr(BeliefUpdate, "options_model", ThirdEdition)
    study = Study.objects.get()
    assert instruments.of_study(study).options.edition == 1
    assert file_problems(study) == []


@pytest.mark.parametrize(
    ("earlier", "offered"), [(0, {"same", "higher"}), (100, {"lower", "same"}), (60, {"lower", "same", "higher"})]
)
def test_no_direction_is_offered_in_which_there_is_no_number(earlier: int, offered: set[str]) -> None:
    form = form_of("direction", earlier=earlier)
    assert set(cast.values_of(form().fields["direction"])) == offered
    if earlier == 0:
        assert list(form({"direction": "lower", "value": "0"}).errors) == ["direction"]


def test_a_track_has_words_at_its_ends_ticks_and_the_earlier_answer() -> None:
    first, second = forms.prior_form()(), form_of("blank", earlier=37)()
    for form in (first, second):
        html = str(form["value"])
        assert "certainly not" in html and 'class="ticks"' in html
    assert 'class="mark"' not in str(first["value"]) and "data-earlier" not in str(first["value"])
    html = str(second["value"])
    assert 'data-earlier="37"' in html and "M37 0V4" in html and "your answer before: 37 %" in html


CHATBOT = {"a": "a chatbot", "the": "the chatbot", "same": "the same chatbot", "another": "a different chatbot"}
MODEL = {"a": "an LLM", "the": "the LLM", "same": "the same LLM", "another": "another LLM"}


def named_study() -> Study:
    blocks = [{**block} for block in cast.BASE["blocks"]]
    for block in blocks:
        if block["kind"] == "instructions":
            block["text"] = "{Answerer.the} is asked. Say what {answerer.the} does."
        if block["kind"] == "checks":
            block["checks"] = [
                {"name": "who", "question": "Who is asked?", "options": ["It is {answerer.a}.", "It is me."]}
            ]
    condition = {"factor": "wording", "levels": ["model", "chatbot"], "answerer": {"chatbot": CHATBOT}}
    texts = {**cast.BASE.get("texts", {}), "answerer": MODEL}
    return cast.open_study(blocks=blocks, texts=texts, conditions=[condition])


def test_the_answerer_has_the_name_of_the_persons_level_on_every_page() -> None:
    study = named_study()
    seen = set()
    for _person in range(2):
        sitting = cast.begin(study)
        level = sitting.levels()["wording"]
        name, other = ("chatbot", "LLM") if level == "chatbot" else ("LLM", "chatbot")
        pages = []
        while (step := current_step(Sitting.objects.get(pk=sitting.pk))).kind != "end":
            screen = step.screen
            said = [step.text, *(text for check in step.checks for _place, text in check.options)]
            said += [screen.title, *screen.words.values()] if screen else []
            pages.append((step.kind, screen.name if screen else "", " ".join(said)))
            advance(sitting=Sitting.objects.get(pk=sitting.pk), step=step.number, data=cast.answers_for(step))
        for kind, screen_name, text in pages:
            assert other not in text, (kind, screen_name, text)
            if kind in ("instructions", "checks", "item"):
                assert name in text, (kind, screen_name, text)
        assert any(f"The {name} is asked. Say what the {name} does." in text for _kind, _name, text in pages)
        seen.add(level)
    assert seen == {"model", "chatbot"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"texts": {"answerer": {"the": "the bot"}}}, "texts.answerer.a"),
        ({"texts": {"answerer": {**CHATBOT, "the": "the {bot}"}}}, "a few words on one line"),
        ({"title": "On {answerer.the}"}, "{answerer.the} needs [texts.answerer]"),
        ({"title": "On {answerer.she}", "texts": {"answerer": CHATBOT}}, "there is no {answerer.she}"),
        (
            {"conditions": [{"factor": "f", "levels": ["x", "y"], "answerer": {"x": CHATBOT}}]},
            "[texts.answerer] is missing",
        ),
        (
            {
                "texts": {"answerer": CHATBOT},
                "conditions": [{"factor": "f", "levels": ["x", "y"], "per": "item", "answerer": {"x": CHATBOT}}],
            },
            'answerer needs per = "sitting"',
        ),
        (
            {
                "texts": {"answerer": CHATBOT},
                "conditions": [{"factor": "f", "levels": ["x", "y"], "answerer": {"z": CHATBOT}}],
            },
            "answerer for z, which is not among the levels",
        ),
    ],
)
def test_a_name_that_does_not_fit_is_refused_at_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FileErrors) as refusal:
        cast.study(**changes)
    assert said in "\n".join(refusal.value.lines)


def test_simulated_people_understand_checks_that_name_the_answerer() -> None:
    study = named_study()
    person = visitors.Person(config=study.config, items=instruments.of_study(study).simulated_person(seed=1), seed=5)
    person._misreads = False
    for name in ("a chatbot", "an LLM"):
        assert person.answer_checks({"who": [("1", "It is me."), ("2", f"It is {name}.")]}) == {"who": "2"}


def test_a_conditions_level_changes_the_mode() -> None:
    study = cast.open_study(
        conditions=[
            {
                "factor": "mode",
                "levels": ["direction", "keep"],
                "options": {"direction": {"answer_mode": "direction"}, "keep": {"answer_mode": "keep_button"}},
            }
        ]
    )
    fields = {}
    for _person in range(4):
        walker = Walker(study)
        walker.post(value="60")
        fields[walker.sitting.levels()["mode"]] = list(walker.screen.form().fields)
    assert {level: set(names) for level, names in fields.items()} == {
        "direction": {"direction", "value"},
        "keep": {"keep", "value"},
    }
    walker.post(**cast.answers_for(walker.step))
    (mode,) = {row["answer_mode"] for row in rows_of(study) if row["posterior"] is not None}
    assert mode == {"direction": "direction", "keep": "keep_button"}[walker.sitting.levels()["mode"]]


def test_a_sitting_keeps_the_mode_that_it_began_with() -> None:
    def file(mode: str) -> dict[str, Any]:
        condition = {
            "factor": "f",
            "levels": ["a", "b"],
            "options": {level: {"answer_mode": mode} for level in ("a", "b")},
        }
        return {"stages": [{"sittings": 4, "pilot": True}, {"sittings": 4}], "conditions": [condition]}

    study = cast.open_study(**file("direction"))
    walker = Walker(study)
    amend(study, text=cast.study_text(**file("blank")), source_name="cast.toml", reason="the pilot's people asked why")
    walker.sitting = Sitting.objects.get(pk=walker.sitting.pk)
    walker.post(value="60")
    assert list(walker.screen.form().fields) == ["direction", "value"]
    walker.post(direction="same")
    newcomer = Walker(Study.objects.get())
    newcomer.post(value="60")
    assert list(newcomer.screen.form().fields) == ["value"]
    assert {row["answer_mode"] for row in rows_of(Study.objects.get())} == {"direction", None}


@pytest.mark.thorough
def test_a_simulated_person_gets_through_every_mode_and_screen() -> None:
    for mode in MODES:
        study = cast.open_study(
            slug=mode.replace("_", "-"),
            **options(answer_mode=mode, explanation="all", explanation_required=True, own_answer=True, confidence=True),
        )
        walker = Walker(study)
        person = instruments.of_study(study).simulated_person(seed=3)
        while walker.step.kind == "item":
            screen = walker.screen
            parts = {
                name: part["value"].replace("<b>", "").replace("</b>", "").replace("<br>", "\n")
                if part["kind"] == "question"
                else str(part["value"])
                for name, part in screen.parts.items()
            }
            walker.post(**person.answer(screen=screen.name, parts=parts))
        assert walker.step.kind == "form"
