"""A blind study: no page, command, API address or export names a condition, until an owner unblinds it."""

import io
import zipfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from survey.exceptions import FileErrors, HunchError, StateRefused
from survey.models import ApiToken, AuditEntry, Job, Study
from survey.services.answers import blinding
from survey.services.base import jobs as workers
from survey.services.base import rights, tokens
from survey.services.base.job_kinds import KINDS
from survey.services.results import reports
from survey.services.results.export import files
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast
from tests.kept import kept

from .conftest import client_of, stage_of, take_part

pytestmark = pytest.mark.slow

FACTOR, LEVELS, ITEM_FACTOR, ITEM_LEVELS = "zframing", ["zplain", "zwarm"], "zmode", ["zblank", "zkeep"]
NAMES = (FACTOR, *LEVELS, ITEM_FACTOR, *ITEM_LEVELS)
CONDITIONS = [
    {"factor": FACTOR, "levels": LEVELS},
    {
        "factor": ITEM_FACTOR,
        "levels": ITEM_LEVELS,
        "per": "item",
        "options": {"zblank": {"answer_mode": "blank"}, "zkeep": {"answer_mode": "prefilled"}},
    },
]


@kept
def a_study_that_has_run(*, blind: bool) -> Study:
    """Both conditions were drawn, a predictor was judged under each level, the file was amended, a stage is open."""
    made = cast.open_study(
        blind=blind,
        panel=cast.PROLIFIC,
        predictor={"name": "same_task"},
        stages=[{"sittings": 2}, {"sittings": 3, "design": {"kind": "epsilon_greedy"}}],
        conditions=CONDITIONS,
        instrument={"kind": "belief_update", "options": {"explanation": "all"}},
    )
    text = made.source_text.replace("Welcome to the cast.", "Welcome, all of you.")
    amending.amend(made, text=text, source_name="cast.toml", reason="A kinder word.")
    for number in (101, 102):
        take_part(made, number)
    jobs.run_inline(lifecycle.close_stage(stage_of(made)))
    lifecycle.open_stage(stage_of(made, 2))
    for number in (201, 202):
        take_part(made, number)
    jobs.run_inline(lifecycle.close_stage(stage_of(made, 2), now=True))
    return made


@pytest.fixture
def study(db: None) -> Study:
    """Before any account is made: so it can be put back."""
    return a_study_that_has_run(blind=True)


def named(text: str) -> list[str]:
    return [name for name in NAMES if name in text]


def body_of(response: Any) -> str:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode(errors="replace")


# The walk


def study_addresses(study: Study) -> Iterator[str]:
    """Every page of the study by GET. The two that change the file are left out: they must have the file, and while the
    study is blind only an owner gets them."""
    study_admin: Any = admin.site.get_model_admin(Study)
    for pattern in study_admin.get_urls():
        route = str(pattern.pattern)
        if not isinstance(pattern, URLPattern) or not pattern.name or "history" in route:
            continue
        if any(part in route for part in ("amend", "build")):
            continue
        parameters = set(pattern.pattern.converters)
        if parameters == {"pk"}:
            yield reverse(f"admin:{pattern.name}", args=[study.pk])
        elif parameters == {"pk", "name"} and "reports" in route:
            for entry in reports.entries_of(study):
                yield reverse(f"admin:{pattern.name}", args=[study.pk, entry.name])
    yield reverse("admin:survey_study_change", args=[study.pk])


def row_addresses(study: Study) -> Iterator[str]:
    """Every list, and the pages of the first rows of each model: of both levels of each factor."""
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        path = rights.path_to_study(model)
        rows = model._default_manager.filter(**{path: study.pk}) if path else model._default_manager.none()
        if hasattr(page, "change_view") and model is not Study:
            yield from (reverse(f"{name}_change", args=[pk]) for pk in rows.values_list("pk", flat=True)[:4])


def api_addresses(study: Study) -> Iterator[str]:
    """A report says the same at each of its doors (test_every_report.py), and its page is read already."""
    for pattern in get_resolver("survey.api.urls").url_patterns:
        parameters = set(pattern.pattern.converters)
        if parameters <= {"slug"} and pattern.name:
            yield reverse(f"api:{pattern.name}", args=[study.slug] if parameters else [])


COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("study_status", ()),
    ("estimate", ()),
    ("leaderboard", ()),
    ("report", ()),
    ("report", ("live",)),
    ("report", ("reasons",)),
    ("members", ()),
)


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create_superuser("owner")


def everything_shown(
    study: Study, owner: User, folder: Path, *, only: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """What is shown of a study, with where; `only` what is shown there, if anything is named."""

    def is_asked(place: str) -> bool:
        return not only or place in only

    client = client_of(owner)
    # Before reports are made: the audit has a line of it, after which they would be made again for the API.
    _row, secret = tokens.issue_token(user=owner, name="walk", scope=ApiToken.Scope.READ, studies=None, days=1)
    for address in filter(is_asked, dict.fromkeys([*study_addresses(study), *row_addresses(study)])):
        yield address, body_of(client.get(address))
    exports = ("answers.csv", "codebook.md", *(extra.name for extra in reports_of_export(study)))
    for address in filter(is_asked, (reverse("admin:survey_study_export", args=[study.pk, name]) for name in exports)):
        yield address, body_of(client.post(address))
    asker = Client(headers={"Authorization": f"Token {secret}"})
    for address in filter(is_asked, api_addresses(study)):
        yield address, body_of(asker.get(address))
    for command, arguments in COMMANDS:
        if is_asked(place := f"hunch {command} {' '.join(arguments)}"):
            out = io.StringIO()
            with suppress(SystemExit):  # What it refuses is read too.
                call_command(command, study.slug, *arguments, stdout=out, stderr=out)
            yield place, out.getvalue()
    for kind in KINDS:
        if not only or any(place.startswith(f"job {kind}:") for place in only):
            yield from made_by_workers(study, owner, kind)
    files.write_export(study, folder)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"export: {path.name}", path.read_text(encoding="utf-8", errors="replace")


def made_by_workers(study: Study, owner: User, kind: str) -> Iterator[tuple[str, str]]:
    """Every file that a job of this kind makes, and every file in its archives."""
    if kind == "demographics":  # Asks a panel; this study has none, and what comes from there names no condition.
        with pytest.raises(StateRefused, match="has no posting"):
            workers.ask(study, kind, {}, by=owner, via="admin")
        return
    job, _is_new = workers.ask(study, kind, {}, by=owner, via="admin")
    done = workers.run(job.pk)
    job = Job.objects.get(pk=job.pk)
    # Screens are files named by condition, and the study has no holdout.
    assert done or kind in ("screens", "held_out_scores"), job.error
    yield f"job {kind}", f"{job.result} {job.error}"
    for file in job.files:
        with workers.opened(job, file["name"]) as opened:
            content = opened.read()
        if not zipfile.is_zipfile(io.BytesIO(content)):
            yield f"job {kind}: {file['name']}", content.decode(errors="replace")
            continue
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield f"job {kind}: {name}", archive.read(name).decode(errors="replace")


def reports_of_export(study: Study) -> Any:
    from survey.services.results.export import contents

    return contents.file_heads(study)


@pytest.mark.any_database
def test_nothing_that_is_shown_of_a_blind_study_names_a_condition(
    study: Study, owner: User, tmp_path: Path, settings: Any
) -> None:
    settings.HUNCH_LIVE_SECONDS = 3600  # One picture of the study for all pages.
    seen = list(everything_shown(study, owner, tmp_path))
    assert {place: named(text) for place, text in seen if named(text)} == {}
    assert len(seen) > 100


@pytest.mark.thorough
@pytest.mark.any_database
def test_the_same_walk_finds_them_where_the_study_is_not_blind(owner: User, tmp_path: Path) -> None:
    """Otherwise the walk above would show nothing."""
    study = a_study_that_has_run(blind=False)
    wanted = {
        reverse("admin:survey_study_change", args=[study.pk]),
        reverse("admin:survey_study_estimates", args=[study.pk]),
        reverse("admin:survey_sitting_changelist"),
        reverse("admin:survey_study_export", args=[study.pk, "answers.csv"]),
        reverse("api:answers", args=[study.slug]),
        "hunch estimate ",
        "export: answers.csv",
        "job export: sittings.csv",
    }
    texts = everything_shown(study, owner, tmp_path, only=wanted)
    assert wanted <= {place for place, text in texts if named(text)}


# Unblinding


@pytest.mark.django_db
def test_an_owner_unblinds_it_once_and_the_audit_says_so(study: Study, researcher: Any, as_researcher: Client) -> None:
    cast.join(researcher, study)
    address = reverse("admin:survey_study_unblind", args=[study.pk])
    assert "This cannot be undone" in body_of(as_researcher.get(address))
    assert "reason: is missing" in body_of(as_researcher.post(address, {"reason": " "}))
    as_researcher.post(address, {"reason": "All answers are in."})
    study = Study.objects.get(pk=study.pk)
    assert not study.is_blind and study.unblinded_at is not None
    assert AuditEntry.objects.get(action="unblind").detail == {"reason": "All answers are in."}
    assert named(body_of(as_researcher.get(reverse("admin:survey_study_change", args=[study.pk]))))
    with pytest.raises(HunchError, match="is not blind"):
        blinding.unblind(study, reason="again")


@pytest.mark.django_db
def test_an_editor_can_neither_unblind_it_nor_read_its_file(
    study: Study, researcher: Any, as_researcher: Client
) -> None:
    cast.join(researcher, study, "editor")
    for name in ("unblind", "amend", "build"):
        assert as_researcher.get(reverse(f"admin:survey_study_{name}", args=[study.pk])).status_code == 403
    body = body_of(as_researcher.get(reverse("admin:survey_study_change", args=[study.pk])))
    assert "This study is blind" in body and "/unblind/" not in body and "/amend/" not in body


@pytest.mark.django_db
def test_the_command_unblinds_it(study: Study) -> None:
    call_command("unblind", study.slug, reason="It is over.", stdout=io.StringIO())
    assert not Study.objects.get(pk=study.pk).is_blind


@pytest.mark.django_db
def test_asking_for_a_level_of_a_blind_study_is_refused_without_naming_any(study: Study) -> None:
    with pytest.raises(HunchError, match="there are: hidden while the study is blind"):
        reports.make(study, "live", {"condition": ["zframing=zwarm"]})


@pytest.mark.django_db
def test_an_amendment_does_not_unblind_it() -> None:
    study = cast.study(blind=True, conditions=CONDITIONS[:1])
    text = study.source_text.replace("blind = true", "blind = false")
    with pytest.raises(FileErrors, match="until an owner unblinds"):
        amending.amend(study, text=text, source_name="cast.toml", reason="why not")


@pytest.mark.django_db
def test_a_blind_study_has_conditions_and_does_not_stop_by_one() -> None:
    with pytest.raises(FileErrors, match="nothing to hide"):
        cast.study(blind=True)
    stop = {"factor": FACTOR, "width": 0.2, "after": 30}
    with pytest.raises(FileErrors, match="its looks would show the difference"):
        cast.study(blind=True, conditions=CONDITIONS[:1], stages=[{"sittings": 40, "stop": stop}])
    with pytest.raises(FileErrors, match=r"stages\.2\.stop\.factor: its looks would show the difference"):
        cast.study(blind=True, conditions=CONDITIONS[:1], stages=[{"sittings": 40}, {"sittings": 40, "stop": stop}])
