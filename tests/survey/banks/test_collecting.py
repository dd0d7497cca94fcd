"""Asking language models: against a local server that speaks the protocol, with its failures."""

import threading
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.utils import timezone

from predictors.endpoints import Endpoint
from survey.exceptions import FileErrors, HunchError
from survey.models import AnswerCollection, AuditEntry, LanguageModel, ModelAnswer, Question
from survey.services.banks import collecting, model_answers
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.importing import import_questions
from tests.predictors.fake_endpoint import Raw, chat, refusal, running

pytestmark = pytest.mark.django_db

QUESTIONS = """id,source,question,answer
a:1,maths,<b>What is 1 + 1?</b><br>(A) 2<br>(B) 3,A
a:2,maths,What is 2 + 2?,4
a:3,logic,Is water wet?,Yes
a:4,logic,Nobody knows.,
"""


@pytest.fixture
def bank(tmp_path):
    path = tmp_path / "bank.csv"
    path.write_text(QUESTIONS)
    return import_questions(path, "tiny")


@pytest.fixture
def server(monkeypatch):
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        monkeypatch.setenv("HUNCH_LLM_KEY", "sk-secret")

        async def no_wait(seconds):
            return None

        made = Endpoint.from_environment

        def quick(**options):
            return made(**options, tries=2, sleep=no_wait)

        monkeypatch.setattr(Endpoint, "from_environment", quick)
        yield fake


def right(seen):
    """The right reply to each question, in three ways of writing."""
    text = seen.body["messages"][0]["content"]
    return chat("The answer is **A**" if "1 + 1" in text else "4." if "2 + 2" in text else "Yes, it is")


def collected(bank, **settings):
    made = collecting.create_collection(bank=bank, model="m", concurrency=1, **settings)
    return collecting.run_collection(made.pk)


def test_it_asks_every_question_with_a_key_once_and_checks_the_replies(bank, server):
    server.answer = right
    ended = collected(bank)
    assert (ended.state, ended.answered, ended.wanted) == ("done", 3, 3)
    rows = {row.question.external_id: row for row in ModelAnswer.objects.select_related("question")}
    assert {name: row.correct for name, row in rows.items()} == {"a:1": True, "a:2": True, "a:3": True}
    assert rows["a:1"].response == "The answer is **A**"
    assert ended.tokens_in == 21
    assert {seen.body["temperature"] for seen in server.seen} == {0.0}


def test_asking_again_asks_nothing_that_is_answered(bank, server):
    server.answer = right
    collected(bank)
    server.seen.clear()
    assert collected(bank).state == "done"
    assert server.seen == []


def test_the_same_request_is_not_paid_twice_for_another_version_of_the_bank(bank, server, tmp_path):
    server.answer = right
    collected(bank)
    server.seen.clear()
    newer = import_questions(tmp_path / "bank.csv", "tiny")
    assert collected(newer).answered == 3
    assert server.seen == []


def test_an_unauthorised_server_ends_it_in_words_and_what_was_collected_stays(bank, server):
    server.script = [chat("A"), refusal(401, "bad key sk-secret")]
    server.answer = refusal(401)
    ended = collected(bank)
    assert ended.state == "failed"
    assert "401" in ended.error
    assert "sk-secret" not in ended.error
    assert ModelAnswer.objects.count() == 1
    server.answer = right
    collecting.resume(ended, by=None)
    again = collecting.run_collection(ended.pk)
    assert (again.state, again.answered, again.error) == ("done", 3, "")


@pytest.mark.parametrize(
    "reply",
    [
        refusal(429, "slow down"),
        Raw("<html>a page</html>", content_type="text/html"),
        Raw({"choices": []}),
        Raw({"choices": [{"message": {"content": "A"}}]}, cut=10),
    ],
)
def test_a_server_that_fails_for_ever_ends_it_in_words(bank, server, reply):
    server.answer = reply
    ended = collected(bank)
    assert ended.state == "failed"
    assert server.url in ended.error
    assert ModelAnswer.objects.count() == 0


def test_one_refused_question_does_not_stop_the_others(bank, server):
    server.answer = lambda seen: refusal(400, "content filter") if "2 + 2" in str(seen.body) else right(seen)
    ended = collected(bank)
    assert (ended.state, ended.answered, ended.refused) == ("done", 2, 1)
    assert "a:2" in ended.error


def test_the_cost_cap_ends_it_before_more_is_spent(bank, server):
    server.answer = right
    prices = {"price_in": Decimal(100_000), "price_out": Decimal(0)}
    ended = collected(bank, cost_cap=Decimal("0.7"), **prices)
    assert ended.state == "stopped"
    assert ended.answered == 1
    assert ended.cost == pytest.approx(0.7)
    assert "cost cap" in ended.error


def test_a_stop_is_heard(bank, server, monkeypatch):
    monkeypatch.setattr(collecting, "PART", 1)
    monkeypatch.setattr(collecting, "LOOK_AGAIN", 3600)  # However slow the first reply is, it comes first.
    made = collecting.create_collection(bank=bank, model="m", concurrency=1)
    server.answer = right
    collecting.request_stop(made, by=None)
    ended = collecting.run_collection(made.pk)
    assert ended.state == "stopped"
    assert ended.answered == 1


def test_what_came_is_written_while_the_next_reply_is_still_awaited(bank, server):
    written = threading.Event()

    def answer(seen):
        # A server that keeps the second question until the first answer is stored: one killed then loses nothing.
        if len(server.seen) == 2:
            assert written.wait(20)
        return right(seen)

    server.answer = answer
    made = collecting.create_collection(bank=bank, model="m", concurrency=1)

    def progress(collection):
        if ModelAnswer.objects.exists():
            written.set()

    assert collecting.run_collection(made.pk, progress=progress).answered == 3


@pytest.mark.slow
def test_a_stop_is_heard_and_the_claim_renewed_while_nothing_comes(bank, server, monkeypatch):
    monkeypatch.setattr(collecting, "LOOK_AGAIN", 0.05)
    release = threading.Event()
    server.answer = lambda seen: (release.wait(20), chat("late"))[1]
    made = collecting.create_collection(bank=bank, model="m", concurrency=1)
    leases = []

    def progress(collection):
        leases.append(collection.lease_until)
        if len(leases) == 3:
            collecting.request_stop(collection, by=None)

    ended = collecting.run_collection(made.pk, progress=progress)
    release.set()
    assert ended.state == "stopped" and ended.answered == 0
    assert leases[0] < leases[1] < leases[2]


def test_only_one_process_works_at_a_collection(bank, server):
    server.answer = right
    made = collecting.create_collection(bank=bank, model="m")
    assert collecting.run_collection(made.pk).state == "done"
    assert collecting.run_collection(made.pk) is None


def test_an_answer_with_a_nul_character_can_be_stored(bank, server):
    server.answer = chat("A\0")
    assert collected(bank).answered == 3


def test_one_name_stands_for_one_way_of_asking(bank, server):
    server.answer = right
    collected(bank)
    with pytest.raises(HunchError, match="name of its own"):
        collecting.create_collection(bank=bank, model="m", max_tokens=50)
    assert AnswerCollection.objects.count() == 1


def test_so_many_questions_are_drawn_by_the_seed(bank, server):
    server.answer = right
    assert collected(bank, limit=2).answered == 2
    assert ModelAnswer.objects.count() == 2


def test_flagged_questions_are_not_asked(bank, server):
    server.answer = right
    Question.objects.filter(external_id="a:1").update(flag="broken", flag_reason="wrong key")
    assert collected(bank).answered == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model"),
        ({"limit": 0}, "questions"),
        ({"concurrency": 0}, "concurrency"),
        ({"max_tokens": 0}, "max tokens"),
        ({"cost_cap": Decimal(1)}, "needs the prices"),
        ({"cost_cap": Decimal(1), "price_in": Decimal(1)}, "needs the prices"),
        ({"cost_cap": Decimal(1), "price_out": Decimal(1)}, "needs the prices"),
        ({"price_out": Decimal(-1)}, "between 0 and"),
        ({"price_in": Decimal(-1)}, "between 0 and"),
        ({"price_in": Decimal(10**7)}, "between 0 and"),
        ({"price_in": Decimal("NaN")}, "between 0 and"),
    ],
)
def test_it_refuses_settings_that_make_no_sense(bank, settings, message):
    with pytest.raises(HunchError, match=message):
        collecting.create_collection(**{"bank": bank, "model": "m", **settings})
    assert AnswerCollection.objects.count() == 0


def test_without_an_address_it_says_which_variable_to_set(bank, monkeypatch):
    monkeypatch.delenv("HUNCH_LLM_URL", raising=False)
    ended = collected(bank)
    assert ended.state == "failed"
    assert "HUNCH_LLM_URL" in ended.error


def written(tmp_path, *rows):
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["llm,question_id,correct,response", *rows]) + "\n")
    return path


def test_answers_are_imported_and_the_same_ones_are_no_problem_later(bank, tmp_path):
    path = written(tmp_path, "one,a:1,1,A", "one,a:2,0,", "two,a:1,0,")
    assert model_answers.import_answers(path, bank).new == {"one": 2, "two": 1}
    assert model_answers.import_answers(path, bank).known == {"one": 2, "two": 1}
    assert ModelAnswer.objects.get(language_model__name="one", question__external_id="a:1").response == "A"


def test_wrong_rows_are_all_reported_and_nothing_is_written(bank, tmp_path):
    path = written(tmp_path, "one,zz,1,", "one,a:1,maybe,", ",a:2,1,", "two,a:1,1,", "two,a:1,0,")
    with pytest.raises(FileErrors) as refused:
        model_answers.import_answers(path, bank)
    text = str(refused.value)
    for part in (
        ":2: question_id: 'zz'",
        ":3: correct: 'maybe'",
        ":4: llm",
        ":6: question_id: two answered it already",
    ):
        assert part in text
    assert ModelAnswer.objects.count() == 0


def test_answers_that_contradict_stored_ones_are_refused(bank, tmp_path):
    model_answers.import_answers(written(tmp_path, "one,a:1,1,"), bank)
    with pytest.raises(HunchError, match="differ from those that are stored"):
        model_answers.import_answers(written(tmp_path, "one,a:1,0,", "one,a:2,0,"), bank)
    assert ModelAnswer.objects.count() == 1


def replied(tmp_path, *rows):
    path = tmp_path / "replies.csv"
    path.write_text("\n".join(["llm,question_id,response", *rows]) + "\n")
    return path


def test_a_verdict_on_another_reply_is_refused(bank, tmp_path):
    model_answers.import_replies(replied(tmp_path, "one,a:1,It is 2."), bank)
    with pytest.raises(HunchError, match="1 of its answers differ from those that are stored"):
        model_answers.import_answers(written(tmp_path, "one,a:1,0,It is 77.", "one,a:2,1,"), bank)
    stored = ModelAnswer.objects.get()
    assert (stored.response, stored.correct) == ("It is 2.", None)
    model_answers.import_answers(written(tmp_path, "one,a:1,0,It is 2."), bank)
    stored.refresh_from_db()
    assert (stored.response, stored.correct) == ("It is 2.", False)


def test_a_reply_is_added_to_a_verdict_that_was_imported_alone(bank, tmp_path):
    model_answers.import_answers(written(tmp_path, "one,a:1,1,"), bank)
    model_answers.import_answers(written(tmp_path, "one,a:1,1,It is A."), bank)
    stored = ModelAnswer.objects.get()
    assert (stored.response, stored.correct) == ("It is A.", True)


def test_no_file_adds_a_reply_to_a_collected_answer_that_came_empty(bank, tmp_path):
    model = LanguageModel.objects.create(name="one")
    question = bank.questions.get(external_id="a:1")
    fields = {"correct": False, "response": "", "reason": "the reply is empty", "request_sha256": "1" * 64}
    ModelAnswer.objects.create(language_model=model, question=question, **fields)
    with pytest.raises(HunchError, match="1 of its replies differ"):
        model_answers.import_replies(replied(tmp_path, "one,a:1,A"), bank)
    with pytest.raises(HunchError, match="1 of its answers differ"):
        model_answers.import_answers(written(tmp_path, "one,a:1,0,A"), bank)
    assert ModelAnswer.objects.values(*fields).get() == fields
    assert model_answers.import_answers(written(tmp_path, "one,a:1,0,"), bank).known == {"one": 1}


# Repeated and graded replies


def test_a_question_that_is_asked_again_is_right_in_the_share_of_its_replies(bank, server):
    said = {"1 + 1": ["A", "B", "A", "A"], "2 + 2": ["4"] * 4, "wet": ["No"] * 4}

    def reply(seen):
        text = seen.body["messages"][0]["content"]
        return chat(next(left for words, left in said.items() if words in text).pop(0))

    server.answer = reply
    ended = collected(bank, replies=4, temperature=1.0)
    assert (ended.state, ended.answered) == ("done", 3)
    assert {seen.body["temperature"] for seen in server.seen} == {1.0}
    rows = {row.question.external_id: row for row in ModelAnswer.objects.select_related("question")}
    assert {name: row.fraction for name, row in rows.items()} == {"a:1": 0.75, "a:2": 1.0, "a:3": 0.0}
    assert (rows["a:1"].correct, rows["a:1"].replies, rows["a:1"].stated) == (None, ["A", "B", "A", "A"], "A")
    assert (rows["a:2"].correct, rows["a:3"].correct) == (True, False)
    assert ModelAnswer.objects.all().by_question()[rows["a:1"].question_id] == 0.75
    assert ModelAnswer.objects.judged().count() == 2
    server.seen.clear()
    assert collected(bank, replies=4, temperature=1.0).answered == 3
    assert server.seen == []
    with pytest.raises(HunchError, match="collected with another model, prompt or length"):
        collecting.create_collection(bank=bank, model="m")


def test_a_refused_reply_leaves_its_question_without_an_answer_and_counts_once(bank, server):
    server.answer = lambda seen: refusal(400, "content filter") if "2 + 2" in str(seen.body) else right(seen)
    ended = collected(bank, replies=3, temperature=0.7)
    assert (ended.state, ended.answered, ended.refused) == ("done", 2, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replies": 3}, "at temperature 0 every reply is the same"),
        ({"replies": 0, "temperature": 1.0}, "replies: 0 must lie between"),
        ({"temperature": 3.0}, "temperature: 3.0 must lie between 0 and 2"),
        ({"model": "local:folder", "temperature": 1.0}, "a model on disk is asked once"),
    ],
)
def test_replies_that_mean_nothing_are_refused(bank, settings, words):
    with pytest.raises(HunchError, match=words):
        collecting.create_collection(**{"bank": bank, "model": "m", **settings})


def test_answers_are_imported_in_fractions(bank, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("llm,question_id,correct\ngull,a:1,0.4\ngull,a:2,1.0\ngull,a:3,false\n")
    assert model_answers.import_answers(path, bank).new == {"gull": 3}
    answers = {row.question.external_id: (row.correct, row.share_correct) for row in ModelAnswer.objects.all()}
    assert answers == {"a:1": (None, 0.4), "a:2": (True, None), "a:3": (False, None)}
    assert model_answers.import_answers(path, bank).known == {"gull": 3}
    path.write_text("llm,question_id,correct\ngull,a:1,0.5\n")
    with pytest.raises(HunchError, match="differ from those that are stored"):
        model_answers.import_answers(path, bank)
    path.write_text("llm,question_id,correct\ngull,a:1,1.5\ngull,a:2,nan\n")
    with pytest.raises(FileErrors, match="neither 0 nor 1, nor a fraction"):
        model_answers.import_answers(path, bank)


def test_a_reply_of_50_000_characters_is_collected_whole(bank, server):
    long = "The answer is A. " + "שָׁלוֹם and so on. " * 3000
    server.answer = chat(long[:50_000])
    assert collected(bank, max_tokens=4096).answered == 3
    assert set(ModelAnswer.objects.values_list("response", flat=True)) == {long[:50_000]}


def test_a_model_that_stops_in_the_middle_keeps_its_replies_and_goes_on(bank, server):
    server.script = [right, refusal(401, "the key was withdrawn")]
    stopped = collected(bank)
    assert stopped.state == "failed"
    assert "the key was withdrawn" in stopped.error or "401" in stopped.error
    assert ModelAnswer.objects.count() == 1
    server.script = []
    server.answer = right
    assert collected(bank).state == "done"
    assert ModelAnswer.objects.count() == 3


# Which rules judged


def test_a_verdict_names_its_rules_and_counts_what_could_not_be_read(bank, server):
    server.script = [chat("A, B"), chat("A"), chat("4 or 5"), chat("5"), chat("Yes"), chat("Yes")]
    collected(bank, replies=2, temperature=1)
    rows = {row.question.external_id: row for row in ModelAnswer.objects.select_related("question")}
    facts = {name: (row.stated, row.share_correct, row.correct, row.unreadable) for name, row in rows.items()}
    assert facts == {"a:1": ("A", 0.5, None, 1), "a:2": ("5", None, False, 1), "a:3": ("yes", None, True, 0)}
    assert {row.rules_version for row in rows.values()} == {RULES_VERSION}


def first_rules(bank, server):
    """A collection as older rules judged it: "A, B" was right for A."""
    server.script = [chat("A, B"), chat("4"), chat("Yes")]
    collected(bank)
    ModelAnswer.objects.update(rules_version="1", unreadable=0)
    ModelAnswer.objects.filter(question__external_id="a:1").update(correct=True, stated="A", reason="")


def test_stored_replies_are_judged_again_only_where_a_person_says_yes(bank, server, capsys):
    first_rules(bank, server)
    call_command("judge_again", bank="tiny")
    assert "m a:1: 1 to 0 right, 1 unreadable" in capsys.readouterr().out
    assert ModelAnswer.objects.get(question__external_id="a:1").correct
    assert not AuditEntry.objects.filter(action="judge_again").exists()
    call_command("judge_again", bank="tiny", yes=True)
    answer = ModelAnswer.objects.get(question__external_id="a:1")
    assert (answer.correct, answer.stated, answer.unreadable, answer.rules_version) == (False, "", 1, RULES_VERSION)
    entry = AuditEntry.objects.get(action="judge_again")
    assert (entry.detail["changed"], entry.detail["judged"], entry.detail["kept"]) == (1, 3, 0)
    call_command("judge_again", bank="tiny", yes=True)
    assert "0 answers judged again" in capsys.readouterr().out


def test_imported_verdicts_are_not_judged_again(bank, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("llm,question_id,correct,response\ngull,a:1,1,B\n")
    model_answers.import_answers(path, bank)
    call_command("judge_again", bank="tiny", yes=True)
    assert ModelAnswer.objects.get().correct and ModelAnswer.objects.get().rules_version == ""


def test_a_request_is_known_again_by_all_that_its_reply_depends_on(bank):
    """A reply to another model, prompt, length, temperature or number of replies is another reply."""
    question = bank.questions.first()

    def digest_of(prompt="Q", **changes):
        facts = {"model": "m", "max_tokens": 5, "replies": 1, "temperature": 0, **changes}
        asking = AnswerCollection(bank=bank, **facts)
        return collecting.request_digest(asking, prompt, collecting.template_for(asking))

    others = [
        digest_of(),
        digest_of(model="n"),
        digest_of("R"),
        digest_of(max_tokens=6),
        digest_of(temperature=1),
        digest_of(temperature=0.5),
        digest_of(temperature=1, replies=2),
        digest_of(temperature=1, replies=3),
    ]
    assert len(set(others)) == len(others)
    assert digest_of(seed=7, concurrency=3, limit=2) == digest_of()
    assert collecting.prompt_for(question).startswith("What is 1 + 1?\n(A) 2\n(B) 3\n\nReply with the letter")


def test_both_prices_and_all_tokens_count_against_the_cap(bank):
    made = collecting.create_collection(
        bank=bank, model="m", price_in=Decimal(2), price_out=Decimal(10), cost_cap=Decimal("0.0001")
    )
    made.tokens_in, made.tokens_out = 10, 3
    run = collecting._Run(type("Held", (), {"row": made})(), None)
    run.tokens_in, run.tokens_out = 10, 2
    assert run._cost() == pytest.approx((2 * 20 + 10 * 5) / 1e6) and not run._over_the_cap()
    run.tokens_out = 3
    assert run._over_the_cap(), "what is reached is not exceeded"
    made.cost_cap = None
    assert not run._over_the_cap()


@pytest.mark.parametrize("state", AnswerCollection.State.values)
def test_what_runs_is_stopped_and_what_has_ended_is_resumed(bank, state):
    made = collecting.create_collection(bank=bank, model="m")
    lease = timezone.now() if state == "running" else None
    AnswerCollection.objects.filter(pk=made.pk).update(state=state, lease_until=lease)
    collecting.request_stop(made, by=None)
    made.refresh_from_db()
    assert made.stop_requested is (state in ("queued", "running"))
    collecting.resume(made, by=None)
    made.refresh_from_db()
    goes_on = state in ("stopped", "failed", "done")
    assert made.state == ("queued" if goes_on else state)
    entries = set(AuditEntry.objects.values_list("action", flat=True))
    assert ("stop_collection" in entries) is not goes_on and ("resume_collection" in entries) is goes_on


OWN = """use = "answer"
prompt = "{question} {form}"
[[models]]
model = "m*"
system = "Be brief."
"""


def test_a_collection_keeps_its_template_and_another_one_needs_another_name(bank):
    """The template's words and the system message of the model are of the request; an edited file is another way."""
    made = collecting.create_collection(bank=bank, model="m", template=OWN)
    question = bank.questions.exclude(answer="").first()
    asked = collecting.prompt_for(question, collecting.template_for(AnswerCollection.objects.get(pk=made.pk)))
    assert asked == f"{question.plain} {collecting.INSTRUCTIONS[collecting.kind_of(question.answer)]}"
    other = collecting.create_collection(bank=bank, model="m", template=OWN.replace("Be brief.", "Be long."))
    first, second = (collecting.request_digest(each, asked, collecting.template_for(each)) for each in (made, other))
    assert first != second
    ModelAnswer.objects.create(language_model=made.language_model, question=question, request_sha256=first)
    with pytest.raises(HunchError, match="with another model, prompt or length"):
        collecting.create_collection(bank=bank, model="m")
    assert collecting.create_collection(bank=bank, model="m", template=OWN).pk
    with pytest.raises(HunchError, match=r"line 2: \{answer\} is no place"):
        collecting.create_collection(bank=bank, model="m", template=OWN.replace("{form}", "{answer}"))


def test_a_server_gets_the_templates_words_and_system_message(bank, monkeypatch):
    with running() as fake:
        monkeypatch.setenv("HUNCH_LLM_URL", fake.url)
        fake.answer = chat("A")
        made = collecting.create_collection(bank=bank, model="m", template=OWN, limit=1)
        collecting.run_collection(made.pk)
        assert [message["role"] for message in fake.seen[0].body["messages"]] == ["system", "user"]


def test_a_template_file_that_is_wrong_is_refused_by_its_line(bank, tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('use = "answer"\nprompt = "{q}"\n')
    with pytest.raises(SystemExit):
        call_command("collect_answers", "m", "--bank", bank.name, "--template", str(path))
    assert "--template: template, line 2: {q} is no place" in capsys.readouterr().err
    assert not AnswerCollection.objects.exists()
