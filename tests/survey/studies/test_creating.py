"""Creating a study: what is written, and that a study which could not be run is refused at its line."""

import hashlib

import pytest
from django.contrib.auth import get_user_model

from survey.contracts import instruments
from survey.exceptions import FileErrors, NotFound, StateRefused
from survey.models import AuditEntry, CompletionCode, Question, Stage, Study
from survey.services.base.auditing import actor_of
from survey.services.base.seeds import derive
from survey.services.plans.planning import plan_stage
from survey.services.stages.lifecycle import open_stage
from survey.services.studies import creating, lookup
from tests import cast

pytestmark = pytest.mark.django_db

FILE = """slug = "small"
title = "A small study"
bank = "cast"
seed = 11

[questions]
tasks = ["algebra", "biology", "cooking", "drawing"]

[candidates]
size = 200

[roles]
holdout = 0
controls = 0

[instrument]
kind = "belief_update"
[instrument.options]
threshold = 5

[predictor]
name = "bert"
[predictor.params]
members = 2

[sitting]
items = 3

[data]
retention_until = 2099-12-31

[[stages]]
sittings = 4

[[stages]]
sittings = 4
[stages.design]
kind = "epsilon_greedy"

[[blocks]]
kind = "consent"
text = "Do you agree?"

[[blocks]]
kind = "items"

[[blocks]]
kind = "end"
"""


@pytest.fixture
def bank():
    return cast.bank()


def create(text: str = FILE, **more) -> Study:
    return creating.create_study(text=text, source_name="small.toml", **more)


def refusals(text: str) -> list[str]:
    """The lines of the refusal. Nothing may have been written."""
    before = Study.objects.count(), Stage.objects.count(), CompletionCode.objects.count(), AuditEntry.objects.count()
    with pytest.raises(FileErrors) as refused:
        create(text)
    after = Study.objects.count(), Stage.objects.count(), CompletionCode.objects.count(), AuditEntry.objects.count()
    assert after == before
    return refused.value.lines


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_it_writes_the_study_with_its_file_word_for_word(bank) -> None:
    study = create()
    study.refresh_from_db()
    assert study.source_text == FILE
    assert study.source_sha256 == hashlib.sha256(FILE.encode()).hexdigest()
    assert study.bank == bank
    assert study.config.stages[1].design.epsilon == 0.1


def test_it_writes_draft_stages_each_with_a_seed_of_its_own(bank) -> None:
    stages = list(create().stages.order_by("index"))
    assert [(stage.index, stage.state) for stage in stages] == [(1, "draft"), (2, "draft")]
    assert [stage.seed for stage in stages] == [derive(11, "stage", 1), derive(11, "stage", 2)]


def test_it_writes_a_code_for_each_outcome_that_nobody_misreads(bank) -> None:
    codes = create().codes.values_list("outcome", "code")
    assert {outcome for outcome, _code in codes} == set(CompletionCode.Outcome.values)
    assert len({code for _outcome, code in codes}) == len(codes)
    for _outcome, code in codes:
        assert len(code) >= 8
        assert not set(code) & set("ILO01") and code.isupper()


def test_two_studies_have_different_codes(bank) -> None:
    first, second = create(), create(FILE.replace('"small"', '"other"'))
    assert not set(first.codes.values_list("code")) & set(second.codes.values_list("code"))


def test_it_says_who_created_it(bank) -> None:
    user = get_user_model().objects.create_user("ada")
    study = create(by=user, via="admin")
    entry = AuditEntry.objects.get(action="create_study")
    assert (study.created_by, entry.actor, entry.via, entry.subject) == (user, actor_of(user), "admin", "small")


def test_it_takes_the_newest_version_of_the_bank_or_the_one_that_is_named(bank) -> None:
    bank.pk, bank.version = None, 2
    bank.save()
    cast.Task.objects.create(bank=bank, name="algebra")
    for number in range(40):
        Question.objects.create(
            bank=bank,
            task=bank.tasks.get(),
            position=number,
            external_id=str(number),
            text=f"New {number}?",
            answer="x",
        )
    tasks = 'tasks = ["algebra", "biology", "cooking", "drawing"]\n'
    assert create(FILE.replace(tasks, "")).bank.version == 2
    assert create(FILE.replace('"cast"', '"cast@1"').replace('"small"', '"old"')).bank.version == 1


def test_what_it_creates_can_be_planned_and_opened(bank) -> None:
    stage = create().stages.get(index=1)
    assert open_stage(plan_stage(stage)).state == Stage.State.OPEN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "part", "expected"),
    [
        ("seed = 11", "seed = -1", "seed", "seed: must be 0 or more"),
        ("seed = 11", "seed = ", "seed", "file: not TOML"),
        ('bank = "cast"', 'bank = "lost"', "bank", "bank: there is no bank 'lost'; there are: cast@1"),
        ('bank = "cast"', 'bank = "cast@7"', "bank", "bank: there is no bank 'cast@7'"),
        ('"belief_update"', '"tarot"', "tarot", "instrument.kind: no instrument is called 'tarot'; there are: belief"),
        (
            "threshold = 5",
            "treshold = 5",
            "treshold",
            'instrument.options.treshold: unknown option; did you mean "threshold"? belief_update has: aid, ',
        ),
        (
            "threshold = 5",
            "threshold = 500",
            "threshold",
            "instrument.options.threshold: must be at most 99 (it is 500)",
        ),
        ('"bert"', '"tree"', "tree", "predictor.name: no predictor is called 'tree'; there are: bert"),
        (
            "members = 2",
            "member = 2",
            "member = 2",
            'predictor.params.member: unknown; did you mean "members"? bert has: batch_size',
        ),
        ("members = 2", "members = 0", "members", "predictor.params.members: must be 1 or more, not 0"),
        (
            '"bert"\n[predictor.params]\nmembers = 2',
            '"logistic"\n[predictor.params]\ncolumns = ["people"]',
            "columns",
            "predictor.params.columns: the predictor that plans stages reads texts alone: give columns to one under",
        ),
        ('"biology"', '"biologie"', "biologie", "questions.tasks: cast version 1 has no task called biologie"),
        ("[candidates]", "max_words = 1\n[candidates]", "[questions]", "questions: the study's [questions] leave 0"),
        ("items = 3", "items = 80", "[[stages]]", "stages: stage 1 cannot be drawn"),
        ("size = 200", "size = 100", "[[stages]]", "stages: stage 2 cannot be drawn"),
    ],
)
def test_it_refuses_and_names_line_and_field(bank, old: str, new: str, part: str, expected: str) -> None:
    text = FILE.replace(old, new, 1)
    lines = refusals(text)
    assert len(lines) == (2 if "items = 80" in new else 1)  # Both stages are told of at once.
    assert lines[0].startswith(f"small.toml:{line_of(text, part)}: {expected}"), lines


def test_it_refuses_a_slug_that_is_taken(bank) -> None:
    create()
    assert refusals(FILE) == [
        "small.toml:1: slug: a study called 'small' exists already: choose another slug",
    ]


def test_it_refuses_a_slug_that_was_taken_since_it_looked(bank, monkeypatch: pytest.MonkeyPatch) -> None:
    create()
    monkeypatch.setattr(creating, "_checked", slug_was_free(creating._checked))
    assert refusals(FILE) == ["small.toml:1: slug: a study called 'small' exists already: choose another slug"]


def slug_was_free(checked):
    def check(config, text, report, instead_of, **more):
        said = lambda place, message: place == ("slug",) or report(place, message)  # noqa: E731
        return checked(config, text, said, instead_of, **more)

    return check


def test_it_tells_the_problems_of_all_parts_at_once(bank) -> None:
    text = FILE.replace("threshold", "treshold").replace('"bert"', '"tree"').replace('"cast"', '"lost"')
    assert [line.split(": ")[1] for line in refusals(text)] == ["bank", "instrument.options.treshold", "predictor.name"]


def test_it_refuses_questions_without_a_key_and_names_five(bank) -> None:
    Question.objects.filter(position__lt=7).update(answer=" ")
    (line,) = refusals(FILE)
    assert line.startswith("small.toml:6: questions: 7 questions have no answer key")
    assert "q0, q1, q2, q3, q4;" in line and "q5" not in line


def test_questions_without_a_key_do_no_harm_where_the_study_leaves_them_out(bank) -> None:
    Question.objects.filter(task__name="algebra").update(answer="")
    assert create(FILE.replace('"algebra", ', "")).pk


def test_it_refuses_a_bank_too_small_for_booklets_in_which_nothing_comes_twice(bank) -> None:
    # A booklet of 16 pairs needs 32 different questions, and 20 are left.
    text = (
        FILE.replace("items = 3", "items = 16")
        .replace("sittings = 4", "sittings = 2")
        .replace("size = 200", "size = 1000")
    )
    text = text.replace('["algebra", "biology", "cooking", "drawing"]', '["algebra", "biology"]')
    (line,) = refusals(text)
    assert line.startswith(f"small.toml:{line_of(text, '[[stages]]')}: stages.1: 20 questions do not fill its booklets")


DISAGREEMENT = FILE.replace('kind = "epsilon_greedy"', 'kind = "uncertainty"\nby = "disagreement"')


def test_it_refuses_disagreement_of_a_single_member_at_its_line(bank) -> None:
    text = DISAGREEMENT.replace("members = 2", "members = 1")
    (line,) = refusals(text)
    place = line_of(text, "by = ")
    assert line.startswith(f"small.toml:{place}: stages.2.design.by: bert has 1 member, which cannot disagree")
    create(DISAGREEMENT)


@pytest.mark.slow
def test_it_refuses_a_holdout_that_cannot_be_dealt_before_anything_is_collected(bank) -> None:
    # Stage 2 is drawn by score, but its holdout is not: one sitting of 25 items cannot hold 40 questions once each.
    text = FILE.replace("items = 3", "items = 25").replace(
        "sittings = 4\n[stages.design]", "sittings = 4\n[stages.roles]\nholdout = 0.2\n[stages.design]"
    )
    text = text.replace("size = 200", "size = 3000")
    lines = refusals(text)
    assert any(
        "stages.2: 40 questions do not fill its booklets: holdout: 25 items over 40 questions" in line for line in lines
    )


def test_it_refuses_a_predictor_for_an_instrument_without_a_label(bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments.kind("belief_update"), "learning", None)
    (line,) = refusals(FILE.replace('[stages.design]\nkind = "epsilon_greedy"\n', ""))
    assert line.startswith(f"small.toml:{line_of(FILE, '[predictor]')}: predictor: belief_update has no label")


def test_a_study_file_must_be_utf_8(tmp_path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b'slug = "a"\ntitle = "caf\xe9"\n')
    with pytest.raises(FileErrors, match=r"study\.toml:2: file: byte 13 of this line is not UTF-8"):
        creating.read_study_file(path)


def test_a_byte_order_mark_is_not_part_of_a_study_file(tmp_path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    assert creating.read_study_file(path) == FILE


def test_it_finds_a_study_or_names_those_there_are(bank) -> None:
    study = create()
    assert lookup.find_study("small") == study
    with pytest.raises(NotFound, match="no study is called 'smal'; there are: small"):
        lookup.find_study("smal")


def test_the_next_stage_is_the_first_that_is_not_frozen(bank) -> None:
    study = create()
    assert lookup.find_stage(study).index == 1
    study.stages.filter(index=1).update(state="frozen", plan_sha256="x", snapshot_sha256="x")
    assert lookup.find_stage(study).index == 2
    study.stages.update(state="frozen", plan_sha256="x", snapshot_sha256="x")
    with pytest.raises(StateRefused, match="every stage of small is frozen"):
        lookup.find_stage(study)


def test_it_refuses_a_stage_that_the_study_does_not_have(bank) -> None:
    with pytest.raises(NotFound, match="small has no stage 3; it has stages 1 to 2"):
        lookup.find_stage(create(), 3)
