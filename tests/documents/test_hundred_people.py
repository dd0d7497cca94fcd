"""The plan for 100 people holds: its commands run in their order, against a Prolific that imitates the real one."""

import io
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from survey.models import PaymentBatch, Stage, Study, Submission
from survey.panels.prolific.fake import FakeProlific
from survey.printed_screens import walking
from survey.services.banks.importing import import_questions
from survey.services.sittings import debriefing
from survey.services.sittings.answering import advance
from survey.services.sittings.entry import arrive, begin
from survey.services.stages import jobs
from survey.services.studies import file_texts
from survey.storage.paths import STUDIES_DIR
from survey.study_file.editing import EditableFile
from tests import cast
from tests.panels.conftest import fake as fake
from tests.panels.conftest import signing_key as signing_key

from .blocks import DOCS, blocks_of

PAGE = "hundred-people.md"
PEOPLE = 3  # of each stage who really come
pytestmark = [pytest.mark.any_database, pytest.mark.django_db, pytest.mark.thorough]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeProlific, settings: Any) -> Path:
    """Where the reader stands after Day 3: with a bank, an account, the study file and a panel."""
    monkeypatch.chdir(tmp_path)
    settings.HUNCH_PUBLIC_URL = "https://study.example.org"
    settings.ALLOWED_HOSTS = ["study.example.org"]
    rows = [f"q{n},task {n % 30},How much is {n} plus {n % 7}?,{n + n % 7}" for n in range(400)]
    Path("questions.csv").write_text("\n".join(["id,source,question,answer", *rows]), encoding="utf-8")
    import_questions(Path("questions.csv"), "mine")
    User.objects.create_user("ada", is_staff=True)
    Path("my-study.toml").write_text(the_file(fake), encoding="utf-8")
    return tmp_path


def the_file(fake: FakeProlific) -> str:
    """The example with what the page says to change. The network that it learns with is left out, since it is
    downloaded, and so are attention checks, which our walkers do not answer."""
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    said: dict[str, Any] = {}
    for block in re.findall(r"(?ms)^```toml\n(.*?)^```$", page):
        said |= tomllib.loads(block)
    pilot, main = said.pop("stages")
    assert pilot["pilot"]
    text = (STUDIES_DIR / "example-prolific.toml").read_text(encoding="utf-8")
    panel, of_example = said.pop("panel"), tomllib.loads(text)["panel"]
    said |= {key: panel.pop(key) for key in ("currency", "reward", "spending_cap")}
    assert panel.items() <= of_example.items() and "places" not in of_example
    places = {"currency": "panel", "reward": "panel", "spending_cap": "panel"}
    file = EditableFile(
        file_texts.changed(text, {f"{places[key]}.{key}" if key in places else key: said[key] for key in said})
    )
    for index in reversed(range(1, len(file.data["stages"]))):
        file.remove(("stages", index))
    file.set(("stages", 0, "sittings"), main["sittings"])
    file.insert(("stages", 0), {"sittings": pilot["sittings"], "pilot": True})
    text = file.text
    text = re.sub(r"(?ms)^\[\[sitting\.attention_checks\]\]\n.*?(?=^\[)", "", text)
    text = re.sub(r'(?s)name = "bert"\n.*?learning_rate = [^\n]*\n', 'name = "same_task"\n', text)
    return re.sub(r"(?m)^completion_url = .*$", f'completion_url = "{fake.url}/submissions/complete?cc={{code}}"', text)


def run(line: str) -> str:
    out = io.StringIO()
    _hunch, command, *arguments = shlex.split(line)
    arguments = [
        argument for argument in arguments if argument not in ("--wait", "--pdf")
    ]  # No worker runs here, and nobody reads the PDF.
    if command == "report":
        arguments.insert(2, "studies=2")  # Ten take the same path.
    call_command(command, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def people_come(study: Study, stage: Stage, fake: FakeProlific) -> None:
    posting = study.postings.get(stage=stage)
    for _person in range(PEOPLE):
        place = fake.take_place(posting.external_id)
        assert place is not None
        address = urlsplit(fake.entry_address(place["id"]))
        visitor = arrive(study, dict(parse_qsl(address.query)), host=address.netloc)
        assert visitor is not None
        sitting = begin(study, visitor, address="127.0.0.1", language="en")
        step = cast.walk(sitting, until="debriefing")
        advance(sitting=sitting, step=step.number, data={debriefing.FIELD: debriefing.USE})
        cast.walk(sitting)
        fake.submit(place["id"], study.completion_code("completed"))


def test_its_commands_run_in_their_order(folder: Path, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    # Screens that other draws of the levels would add are those of tests/survey/printed_screens.
    monkeypatch.setattr(walking, "MAX_DRAWS", 1)
    fake.currency = "GBP"  # That of the template.
    said = ""
    for block in blocks_of(PAGE):
        for line in block.text.strip().splitlines():
            said += run(line)
            study = Study.objects.filter(slug="my-study").select_related("bank").first()
            if line.endswith("posting my-study publish") and study is not None:
                people_come(study, study.stages.get(state="open"), fake)
            if "close_stage" in line and study is not None:
                jobs.run_inline(study.stages.select_related("study__bank").get(state="closing"))
    assert "0 problems" in said and "11.25 GBP an hour" in said
    assert {posting.places for posting in Study.objects.get().postings.all()} == {10, 90}
    assert Submission.objects.count() == 2 * PEOPLE and not PaymentBatch.objects.exists()
    assert (folder / "budget" / "stages.csv").exists() and (folder / "screens" / "index.html").exists()
    answers = (folder / "export" / "answers.csv").read_text(encoding="utf-8")
    assert answers.count(",counted,") >= 2 * PEOPLE
