"""Records the examples of the API's document: of people who take part in the study of `everything`, and of a researcher
with a judged study.

What differs from one run to the next is replaced by a value of its kind: hosts, times, hashes, tokens, codes, numbers
of rows, and how long something took. Lists of researchers' answers are cut to their first two members.
"""

import json
import random
import re
import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from predictors.readings import Text, parse_source
from survey.instruments.belief_update.reports.reasons.written import reasons_of
from survey.models import ApiToken, Booklet, CompletionCode, Receiver, Sitting, Study
from survey.services.banks import ngrams, readings
from survey.services.base import jobs
from tests import cast
from tests.api.everything import RIGHT, STUDY
from tests.panels.world import stored_posting, stored_submission
from tests.survey.instruments import test_reasons
from tests.survey.sittings import test_waves
from tests.survey.stages.test_training import judged_stage

Bodies = dict[str, dict[str, Any]]
V1 = "/api/v1/"
MOMENT, HASH = "2026-11-21T09:00:00Z", "3f0c" + 60 * "0"
PERSON, TOKEN = "0f8b2a6f5a2e4c0c9d1e7b3a4c5d6e7f", "8c9f…:Yw3…"
CODES = {
    "completed": "C7QX4M2P9K",
    "failed_checks": "F3WN8T6B2H",
    "screened_out": "S5LD9R4V7J",
    "study_full": "U2HG6Z8Y3N",
}
REPLACED = (
    (re.compile(r"https?://testserver"), "https://survey.example.org"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), MOMENT),
    (re.compile(r"\b[0-9a-f]{64}\b"), HASH),
    (re.compile(r"(?<=/)(jobs|receivers|study)/\d+/"), r"\1/7/"),
    (re.compile(r"\br-[0-9a-f]{16}\b"), "r-29bc0da08670201b"),
    (re.compile(r"127\.0\.0\.1"), "hooks.example.org"),
    (re.compile(r"(?<=[?&])cursor=[^&]+"), "cursor=SIGNED"),
    (re.compile(r"(?<=[?&])link=[^&]+"), "link=0123456789abcdefghijAB"),
)
# Names whose values are other ones each time, with what stands for them; only where there is a value.
VALUES: dict[str, Any] = {"bytes": 81234, "seconds": 12.5, "secret": "kept-by-you-alone"}
AS_SENT = {  # What people send at a step, by its name; checks are answered by their texts.
    "form, before the items": {"adult": "yes"},
    "practice, first screen": {"value": 62},
    "practice, second screen": {"direction": "higher", "value": 70},
    "practice, reasons": {"explanation": "Both are about everyday things."},
    "practice, own answer": {"answer": "water", "confidence": 90},
    "item, first screen": {"screen": "prior", "value": 62, "client_shown_ms": 140, "client_submitted_ms": 9800},
    "item, direction asked for": {
        "screen": "posterior",
        "direction": "higher",
        "value": 70,
        "value_by": "typed",
        "value_first": 70,
        "value_changes": 1,
    },
    "item, blank field": {"value": 70},
    "item, a button to keep the number": {"keep": "yes"},
    "item, prefilled": {"value": 62, "value_by": "prefilled"},
    "item, reasons": {"explanation": "If it knows the planets, it can do small sums."},
    "item, own answer": {"answer": "56", "confidence": 95},
    "form, every type of field": {"age": 34, "sure": "4", "tools": ["pen", "paper"], "remark": "No."},
    "form, a ready one": {"looked_up": "no"},
    "debriefing with a choice": {"my_data": "use"},
}
SCREENS = {
    "prior": "first screen",
    "posterior": "second screen",
    "explanation": "reasons",
    "own_answer": "own answer",
    None: "what was entered",
}
FORMS = {"adult": "before the items", "age": "every type of field", "looked_up": "a ready one"}


def name_of(step: Mapping[str, Any]) -> str:
    """The name of a step's example."""
    screen = step["screen"] or {"name": None, "fields": []}
    fields = {field["name"]: field for field in screen["fields"]}
    match step["kind"]:
        case "form":
            return f"form, {FORMS[step['fields'][0]['name']]}"
        case "practice":
            return f"practice, {SCREENS[screen['name']]}"
        case "item" if screen["name"] == "posterior" and "direction" in fields:
            return "item, direction asked for"
        case "item" if screen["name"] == "posterior" and "keep" in fields:
            return "item, a button to keep the number"
        case "item" if screen["name"] == "posterior":
            return "item, blank field" if fields["value"]["initial"] is None else "item, prefilled"
        case "item":
            return f"item, {SCREENS[screen['name']]}"
        case "checks":
            return "comprehension checks" + ("" if step["attempt"] == 1 else ", second attempt")
        case "attention":
            return "attention check"
        case "debriefing":
            return "debriefing with a choice"
        case "end":
            return f"end, {step['outcome']}"
    return str(step["kind"])


class Visit:
    """Somebody who takes part by the API and answers as `AS_SENT` says.

    Args:
        number: of the person, by which the orders of options are drawn, which are by chance otherwise.
        wrong: how often the comprehension checks are answered wrongly first.
    """

    def __init__(self, bodies: Bodies, number: int, *, wrong: int = 0, **answers: Any) -> None:
        self.bodies, self.wrong, self.answers = bodies, wrong, answers
        begun = post(Client(), "studies/cast/sittings/", {"consent": True}, 201)
        sitting = Sitting.objects.latest("pk")
        sitting.public_id = uuid.UUID(int=number)
        sitting.save(update_fields=["public_id"])
        self.client = Client(headers={"X-Sitting-Token": sitting.token})
        self.step: dict[str, Any] = get(self.client, "sitting/")
        bodies.setdefault("Begun", {}).setdefault("begun", {**begun, "token": TOKEN, "person": PERSON})
        self.see()

    def see(self) -> None:
        self.bodies.setdefault("Step", {}).setdefault(name_of(self.step), self.step)

    def go_on(self, *, until: str = "end") -> None:
        while self.step["kind"] not in (until, "end"):
            name = name_of(self.step)
            sent = {"step": self.step["number"], **AS_SENT.get(name, {}), **self._choices()}
            sent |= {key: value for key, value in self.answers.items() if key in sent}
            if not self.answers:
                self.bodies.setdefault("Answer", {}).setdefault(name, sent)
            self.step = post(self.client, "sitting/", sent)
            self.see()

    def _choices(self) -> dict[str, str]:
        is_wrong = self.step["kind"] == "checks" and self.wrong > 0
        self.wrong -= is_wrong
        return {
            check["name"]: next(
                option["value"] for option in check["options"] if (option["text"] in RIGHT) is not is_wrong
            )
            for check in self.step["checks"]
        }


def post(client: Client, path: str, body: Any, status: int = 200) -> Any:
    response = client.post(f"{V1}{path}", body, content_type="application/json")
    assert response.status_code == status, (path, response.content)
    return response.json() if response.content else None


def get(client: Client, path: str) -> Any:
    response = client.get(f"{V1}{path}")
    assert response.status_code == 200, (path, response.content)
    return response.json()


def of_respondents() -> Bodies:
    """A whole sitting, every other end, and what else people send."""
    bodies: Bodies = {}
    cast.open_study(**STUDY)
    by_chance = random.getstate()
    random.seed(7)  # Which booklet somebody gets.
    bodies["StudyInfo"] = {"an open study": get(Client(), "studies/cast/")}
    bodies["Begin"] = {"an open study": {"consent": True}}
    Visit(bodies, 1, wrong=1).go_on()
    Visit(bodies, 2, wrong=2).go_on()
    Visit(bodies, 3, adult="no").go_on()
    late = Visit(bodies, 4)
    late.go_on(until="checks")
    Booklet.objects.update(claimed_at=timezone.now())
    late.go_on()
    Booklet.objects.update(claimed_at=None)
    inside = Visit(bodies, 5)
    inside.go_on(until="item")
    left = {"step": inside.step["number"], "client_shown_ms": 140, "client_hidden_ms": 0, "client_pastes": 1}
    post(inside.client, "sitting/left/", left, 204)
    report = {"position": 1, "screen": "prior", "report": "Two of the options are the same."}
    bodies["Left"] = {"an item, left after some seconds": left}
    bodies["Report"] = {"on the first screen of an item": report}
    bodies["Reported"] = {"noted": post(inside.client, "sitting/report/", report)}
    random.setstate(by_chance)
    cast.open_study(slug="panel", panel=cast.PROLIFIC)
    sent = {
        "consent": True,
        "PROLIFIC_PID": "5f8d0d55b54764421b7156d9",
        "STUDY_ID": "60d9aadeb86739de712faee0",
        "SESSION_ID": "60e1aadeb86739de712fa001",
    }
    post(Client(), "studies/panel/sittings/", sent, 201)
    bodies["Begin"]["a study entered from a panel"] = sent
    codes = {row.code: CODES[row.outcome] for row in CompletionCode.objects.filter(outcome__in=CODES)}
    return {name: clean(by_name, codes=codes) for name, by_name in bodies.items()}


def of_researchers(settings: Any) -> Bodies:
    """What somebody reads and sends who runs a study with two stages, and others that have what it lacks."""
    settings.HUNCH_WEBHOOKS_INSIDE = True
    study = judged_stage().study
    user = User.objects.create_superuser("ada")
    runner = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1]}"})
    cast.open_first_stage(cast.small_study("open"))
    spent = {"rewards": 300, "bonuses": 20, "fees": 80, "currency": "USD"}
    posting = stored_posting(study, panel_facts={"spent": spent})
    for status in ("APPROVED", "APPROVED", "AWAITING REVIEW"):
        stored_submission(posting, None, status)
    here = f"studies/{study.slug}/"
    bodies: Bodies = {
        "Study": {"a study": get(runner, "studies/")[-1]},
        "Overview": {"a study": get(runner, f"{here}overview/")},
        "StudyFile": {"a study file": get(runner, f"{here}file/")},
        "Stage": {
            "a frozen stage": get(runner, f"{here}stages/1/"),
            "an open stage": get(runner, "studies/open/stages/1/"),
        },
        "StageActed": {"a stage that was paused": post(runner, "studies/open/stages/1/pause/", {})},
        "WorkStep": {"a step that is done": get(runner, f"{here}steps/")[0]},
        "Run": {"a trained predictor": get(runner, f"{here}runs/")[0]},
        "LeaderboardLine": {"a predictor on the next stage": get(runner, f"{here}leaderboard/")[0]},
        "AnswerPage": {"a page": get(runner, f"{here}answers/")},
        "ReportLine": report_lines(get(runner, f"{here}reports/")),
        "Findings": {"the estimates": get(runner, f"{here}reports/estimates/")},
        "Posting": {"an active posting": get(runner, f"{here}postings/")[0]},
        "JobKind": {"what can be asked for": by_key(get(runner, f"{here}job-kinds/"), kind="export")},
        "Index": {"the list": get(runner, "")},
    }
    get(runner, f"{here}estimates/")  # Once, so that they are stored.
    bodies["Estimates"] = {"estimates": get(runner, f"{here}estimates/")}
    wanted = {"kind": "export", "arguments": {}}
    job = post(runner, f"{here}jobs/", wanted, 202)
    assert jobs.run(job["number"])
    bodies["JobAsk"] = {"an export": wanted}
    bodies["Job"] = {"one that waits": job, "one that is done": get(runner, f"jobs/{job['number']}/")}
    hook = {"kind": "webhook", "address": "http://127.0.0.1:9/hunch", "causes": ["stage_full", "cap_near"]}
    made = post(runner, f"{here}receivers/", hook, 201)
    place = f"{here}receivers/{Receiver.objects.get().pk}/"
    bodies["NewReceiver"] = {"two alerts": {**hook, "address": "https://hooks.example.org/hunch"}}
    bodies["ReceiverMade"] = {"a new webhook": made}
    bodies["Receiver"] = {"a webhook, with its newest event": post(runner, f"{place}test/", None, 202)}
    file = cast.study_text(**{**cast.SMALL, "slug": "my-study", "bank": study.bank.name})
    checked = {"file": file, "check_only": True}
    bodies["Overview"]["a study file that was only checked"] = post(runner, "studies/", checked)
    bodies["NewStudy"] = {"a study file": {**checked, "file": "\n".join(file.splitlines()[:4]) + "\n# ...\n"}}
    test_waves.study_in_wave_2()
    bodies["Invited"] = {"people invited by links": post(runner, "studies/waves/waves/2/invite/", None)}
    bodies["Reading"] = {"a text of some tokens": reading(study, runner)}
    bodies["Taken"] = {"codes of reasons": taken(user)}
    return {name: clean(by_name, most=2, number=7) for name, by_name in bodies.items()}


def by_key(lines: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    return next(line for line in lines if wanted.items() <= line.items())


def report_lines(lines: list[dict[str, Any]]) -> dict[str, Any]:
    can = next(line for line in lines if not line["obstacle"] and line["arguments"])
    cannot = next(line for line in lines if line["obstacle"])
    return {"a report that can be made": can, "one that cannot be made yet": cannot}


def reading(study: Study, client: Client) -> Any:
    texts = [Text(question.external_id, question.plain) for question in study.bank.questions.order_by("position")[:2]]
    ngrams.train(texts, name="two", order=2, unit="word", smoothing="none")
    readings.read(parse_source("N=ngram:two"), texts)
    readings.note_bank(study.bank)
    return get(client, f"readings/?text_id={texts[0].id}")[0]


def taken(user: User) -> Any:
    explained = test_reasons.explained(cast.full_of_answers(cast.open_stage("why", instrument=test_reasons.ASKING)))
    (known, *_rest) = [reason.answer for reason in reasons_of(explained) if reason.text]
    codes = {"files": [SimpleUploadedFile("ann.csv", f"answer,code\n{known},alike\n".encode())]}
    coder = Client()
    coder.force_login(user)
    response = coder.post(f"{V1}studies/why/reports/reasons/files/", codes)
    assert response.status_code == 200, response.content
    return response.json()


def clean(
    value: Any, *, most: int | None = None, number: int | None = None, codes: Mapping[str, str] | None = None
) -> Any:
    """The value without what is another one each time.

    Args:
        most: how many members of a list stay.
        number: what stands for the numbers of rows.
        codes: completion codes, with what stands for each.
    """
    more: dict[str, Any] = {"most": most, "codes": codes}
    if isinstance(value, Mapping):
        fixed = {**VALUES, **({} if number is None else {"number": number, "first_number": number})}
        return {
            name: fixed[name]
            if name in fixed and inner not in (None, "")
            else clean(inner, number=None if name == "responses" else number, **more)  # They are counted from 1.
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [clean(inner, number=number, **more) for inner in value[:most]]
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, str):
        value = (codes or {}).get(value, value)
        for pattern, replacement in REPLACED:
            value = pattern.sub(replacement, value)
    return value


def as_text(recorded: Mapping[str, Bodies]) -> str:
    """As the file has it: parts and bodies sorted, values in the API's own order."""
    in_order = {part: dict(sorted(bodies.items())) for part, bodies in sorted(recorded.items())}
    return json.dumps(in_order, indent=1, ensure_ascii=False) + "\n"
