"""A panel's ids of a person are in no log, answer, address, cookie, file, page or error report.

For each kind of entrance a whole sitting is done, by pages and by API, with ids that are easy to find.
"""

import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils.encoding import force_str

from survey.contracts import panels
from survey.contracts.panels import PanelIds
from survey.logs.log_format import LineFormatter, redact
from survey.models import EntryLink, PanelIdentity, Sitting, Study
from survey.services.results.export import files
from survey.services.sittings.links import make_links
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.frontend.pages import read, send

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
IDS = {"person": "Zq7Kx9wPERSONzq7kx9w", "study": "Zq7Kx9wSTUDYzq7kx9w", "submission": "Zq7Kx9wSUBMISSIONzq7kx9w"}
MARK = "zq7kx9w"  # Every id contains it, in upper or lower case, and no random token does by chance.
PANELS: dict[str, dict[str, Any]] = {
    "prolific": {"panel": cast.PROLIFIC},
    "generic": {
        "panel": {
            "kind": "generic",
            "parameters": {"person": "pid", "study": "survey", "submission": "tic"},
            "completion_url": "https://panel.example/?p={person}&t={submission}&c={code}",
        }
    },
    "links": {"panel": {"kind": "links"}},
}


class Heard(logging.Handler):
    """Every log line of the process, as it would be written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(LineFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "django.db.backends":  # It only logs with DEBUG, and shows what is stored.
            self.lines.append(self.format(record))


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    # Django's own loggers may not pass their records on to the root logger.
    quiet = [logging.getLogger(name) for name in ("django", "django.request", "survey")]
    propagation = [(logger, logger.propagate) for logger in quiet]
    for logger in quiet:
        logger.propagate = True
    yield handler
    for logger, propagate in propagation:
        logger.propagate = propagate
    root.removeHandler(handler)
    root.setLevel(level)


class Watched(Client):
    """A client that keeps everything that the server sent: bodies, headers, cookies and addresses."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[str] = []

    def request(self, **request: Any) -> Any:
        response: Any = super().request(**request)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        headers = [f"{name}: {value}" for name, value in response.headers.items()]
        cookies = [morsel.OutputString() for morsel in response.cookies.values()]
        self.seen += [force_str(body, errors="replace"), *headers, *cookies]
        # Where the request was redirected to, and the address that a browser would send as the referrer.
        self.seen += [address for address, _status in getattr(response, "redirect_chain", ())]
        return response


@pytest.fixture(params=PANELS)
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def study(kind: str) -> Study:
    return cast.open_study(
        **PANELS[kind], flags={"hidden": {}, "speeder": {}}, exclusions={"flags": ["hidden"]}, stages=[{"sittings": 4}]
    )


def parameters(study: Study, monkeypatch: pytest.MonkeyPatch, *, end: str = "") -> dict[str, str]:
    """The parameters in the person's address. A link's token is also chosen so that it is easy to find."""
    names = panels.of_study(study).parameter_names(study.config)
    if "submission" in names or study.config.panel.kind != "links":
        return {name: IDS[what] + end for what, name in names.items()}
    token = ("zq7kx9w" * 3 + "x" + end)[:22]
    monkeypatch.setattr("survey.services.sittings.links.secrets.token_urlsafe", lambda size: token)
    make_links(study, count=1, root="http://testserver")
    return {names["person"]: token}


def assert_clean(texts: list[str], where: str) -> None:
    for text in texts:
        at = text.lower().find(MARK)
        assert at < 0, f"{where}: …{text[max(0, at - 60) : at + 40]}…"


def by_pages(client: Watched, query: dict[str, str]) -> None:
    client.get("/s/cast/", query)
    client.get("/s/cast/consent")
    page = read(client.post("/s/cast/consent", {"consent": "yes"}, follow=True).content.decode())
    client.post("/s/cast/beacon", {"step": page.hidden["step"], "client_shown_ms": "3"})
    while page.main["data-kind"] != "end":
        page = send(client, page)
    client.get("/s/cast/", query)  # A second time, like a reload of the panel's page.
    client.post("/s/cast/resume", follow=True)


def by_api(client: Watched, query: dict[str, str], kind: str) -> None:
    address = "/api/v1/studies/cast/"
    client.get(address)
    carried: dict[str, Any] = query if kind == "prolific" else {"parameters": query}
    body = {"consent": True, **carried}
    begun = client.post(f"{address}sittings/", body, content_type="application/json")
    assert begun.status_code == 201, begun.content
    header = {"X-Sitting-Token": begun.json()["token"]}
    client.get("/api/v1/sitting/", headers=header)
    client.post("/api/v1/sitting/", {"step": 1}, content_type="application/json", headers=header)
    broken = client.post(f"{address}sittings/", {**body, "consent": "perhaps"}, content_type="application/json")
    assert broken.status_code == 400 or broken.status_code == 422


def test_a_whole_sitting_leaves_no_trace_of_who_it_was(
    study: Study, kind: str, heard: Heard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    browser, program = Watched(), Watched()
    by_pages(browser, parameters(study, monkeypatch))
    by_api(program, parameters(study, monkeypatch, end="b")
           if kind != "links" else other_link(study, monkeypatch), kind)  # fmt: skip
    assert Sitting.objects.count() == 2 and Sitting.objects.filter(state="complete").count() == 1
    assert_clean(browser.seen + program.seen, "what was sent")
    if kind == "generic":
        leaving = Client()
        leaving.cookies = browser.cookies
        assert f"p={IDS['person']}&t={IDS['submission']}&c=" in leaving.get("/s/cast/back").headers["Location"]
    jobs.run_inline(lifecycle.close_stage(study.stages.select_related("study__bank").get(index=1), now=True))

    files.write_export(study, tmp_path)
    assert_clean([path.read_text(encoding="utf-8") for path in tmp_path.iterdir()], "exports")
    out = StringIO()
    for command in (["study_status", "cast"], *([["reconcile", "cast"]] if kind != "prolific" else [])):
        call_command(*command, stdout=out)
    assert_clean([out.getvalue()], "commands")
    assert heard.lines and not [line for line in heard.lines if not line]
    assert_clean(heard.lines, "logs")


def other_link(study: Study, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    token = "y" + "zq7kx9w" * 3
    monkeypatch.setattr("survey.services.sittings.links.secrets.token_urlsafe", lambda size: token)
    make_links(study, count=1, root="http://testserver")
    return {"link": token}


@pytest.mark.any_database
def test_the_admin_shows_nobody_by_a_panels_name(
    study: Study, kind: str, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_pages(Watched(), parameters(study, monkeypatch))
    desk = Watched()
    desk.force_login(get_user_model().objects.create_superuser("super"))
    cache.clear()
    lists = ("respondent", "sitting", "assignment", "panelidentity", "entrylink", "auditentry", "submission")
    for name in lists:
        assert desk.get(f"/admin/survey/{name}/").status_code == 200
        desk.get(f"/admin/survey/{name}/", {"q": "r-"})
    page = desk.get(f"/admin/survey/study/{study.pk}/change/")
    for sitting in Sitting.objects.all():
        desk.get(f"/admin/survey/sitting/{sitting.pk}/change/")
        desk.get(f"/admin/survey/respondent/{sitting.respondent_id}/change/")
    for link in EntryLink.objects.all():
        desk.get(f"/admin/survey/entrylink/{link.pk}/change/")
    for name in page.context["files"]:
        assert desk.post(f"/admin/survey/study/{study.pk}/export/{name}").status_code == 200, name
    assert_clean(desk.seen, "admin")
    assert_clean(heard.lines, "logs")


@pytest.mark.parametrize("where", ["survey.services.sittings.entry.arrive", "survey.services.sittings.entry.begin"])
def test_a_crash_tells_nobody_who_was_there(
    study: Study, kind: str, where: str, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the page and in the error report, when the exception can see everything that was sent."""
    query = parameters(study, monkeypatch)
    client = Watched(raise_request_exception=False)
    client.get("/s/cast/", query)

    def broken(*args: Any, **named: Any) -> None:
        copied = {**named}  # A report that prints local variables would show it.
        raise RuntimeError(f"broken with {len(copied)}")

    monkeypatch.setattr(where, broken)
    answers = [client.get("/s/cast/", query), client.post("/s/cast/consent", {"consent": "yes", **query})]
    assert 500 in [answer.status_code for answer in answers]
    assert any("RuntimeError" in line for line in heard.lines), "the report is there"
    assert_clean(heard.lines, "logs")
    assert_clean(client.seen, "what was sent")


def test_a_refused_entrance_says_nothing_of_the_ids(
    study: Study, kind: str, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {name: f"{{{{{value}}}}}" for name, value in parameters(study, monkeypatch).items()}
    client = Watched()
    assert client.get("/s/cast/", query).status_code in (400, 403)
    client.get("/s/nobody/", query)
    client.post("/s/cast/sitting", query)
    assert_clean(client.seen, "what was sent")
    assert_clean(heard.lines, "logs")


@pytest.mark.thorough
def test_what_is_stored_is_encrypted_or_hashed(study: Study, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column of every table, as it is stored in the database."""
    by_pages(Watched(), parameters(study, monkeypatch))
    assert PanelIdentity.objects.count() == 1
    cells = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - a table of ours
            values = [bytes(v) if isinstance(v, memoryview) else v for row in cursor for v in row]
            cells += [f"{table}: {value!r}" for value in values]
    assert_clean(cells, "tables")


@pytest.mark.parametrize(
    "line",
    [
        "Not Found: /s/cast/?pid=Zq7Kx9wPERSONzq7kx9w&tic=Zq7Kx9wSUBMISSIONzq7kx9w",
        "<WSGIRequest: GET '/s/cast/?link=zq7kx9wzq7kx9wzq7kx9wzq7kx9w'>",
        "<QueryDict: {'pid': ['Zq7Kx9wPERSONzq7kx9w'], 'tic': ['Zq7Kx9wSUBMISSIONzq7kx9w']}>",
        repr(PanelIds("generic", **IDS)),
    ],
)
def test_a_line_that_somebody_wrote_with_ids_in_it_is_cleaned(line: str) -> None:
    assert MARK not in redact(line).lower()
