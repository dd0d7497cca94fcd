"""Where a message names a command, a page shows the button that does the same, or says whom to ask."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.management import get_commands
from django.test import Client
from django.urls import resolve

from survey.admin_base.cures import OF_THE_SITE, PAGES, with_cures
from survey.models import Alert, JobStep, Study
from survey.operation.causes import failed_steps
from tests import cast

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
# What only terminals show: the processes, the checks of the machine, backups, and commands themselves.
IN_TERMINALS = ("management/", "console/", "processes/", "backups/", "operation/doctor.py", "services/base/keys.py")
IN_TERMINALS += (
    "cli.py",
    "tasks.py",
    "admin_base/cures.py",
    "reports/paper/files.py",
    "settings.py",
    "system_checks.py",
    "apps.py",
    "gunicorn_config.py",
)
HREF = re.compile(r'<a href="([^"#]*)')


def member(study: Study, role: str, name: str = "") -> User:
    user = User.objects.create_user(name or role, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    cast.join(user, study, role)
    return user


@pytest.fixture
def study() -> Study:
    return cast.small_study()


def texts(source: str) -> list[str]:
    """The strings of a module, without its docstrings."""
    tree = ast.parse(source)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    # Below a field stands what it means, for docs/study-file.md.
    documented |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in ast.walk(node) if part is not node}
    plain = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (documented | inside)
    ]
    return [*plain, *(ast.unparse(node) for node in joined)]


def test_every_message_that_names_a_command_has_it_in_backticks_so_that_pages_can_show_a_button() -> None:
    ours = [name for name, app in get_commands().items() if app.startswith("survey") and "_" in name]
    named = re.compile(rf"\bhunch [a-z_]+ |(?<![\w.])({'|'.join(ours)})(?![\w.])")
    wrong = []
    for path in sorted((ROOT / "survey").rglob("*.py")):
        where = str(path.relative_to(ROOT / "survey"))
        if not any(part in where for part in (*IN_TERMINALS, "migrations/", "-tpl")):
            source = path.read_text(encoding="utf-8")
            if not named.search(source) and not re.search(r"\bhunch\b", source):  # To parse all of them takes long.
                continue
            bare = [re.sub(r"`[^`]*`", "", text) for text in texts(source)]
            wrong += [f"{where}: {text[:150]}" for text in bare if " " in text and named.search(text)]
    assert wrong == [], "\n".join(wrong)


def test_a_page_shows_the_button_to_who_may_press_it_and_others_whom_to_ask(study: Study) -> None:
    message = "It failed. Try it again: `hunch retry_steps small`."
    owner, viewer = member(study, "owner"), member(study, "viewer")
    html = with_cures(message, owner, None)
    assert f'<a href="/admin/survey/study/{study.pk}/change/#overview">Retry failed steps</a>.' in html
    assert (
        with_cures(message, viewer, None) == "It failed. Try it again: Retry failed steps (ask an owner of the study)."
    )
    stranger = User.objects.create_user("stranger", is_staff=True)
    assert "href" not in with_cures(message, stranger, None)


def test_the_alert_of_a_failed_step_leads_to_its_stage(study: Study) -> None:
    JobStep.objects.create(stage=study.stages.get(), kind=JobStep.Kind.FREEZE, input_sha256="0", state="failed")
    (trouble,) = failed_steps(None)  # type: ignore[arg-type]
    html = with_cures(trouble.message, member(study, "owner"), None)
    assert f'<a href="/admin/survey/study/{study.pk}/stages/1/retry/">Retry failed steps</a>' in html
    assert "hunch" not in html


def test_a_command_that_no_page_stands_for_is_for_who_runs_the_server(study: Study) -> None:
    owner = member(study, "owner")
    html = with_cures("Look: `hunch doctor`, <b>now</b>", owner, study)
    assert html.startswith("Look: <code>hunch doctor</code> (for the person who runs this server")
    assert html.endswith(", &lt;b&gt;now&lt;/b&gt;")
    short = with_cures("by: `hunch plan_stage small 2 --short-booklets`", owner, study)
    assert "<code>hunch plan_stage small 2 --short-booklets</code>" in short and "stages/2" not in short


def test_nothing_of_a_message_is_taken_for_html(study: Study) -> None:
    owner = member(study, "owner")
    html = with_cures("`hunch doctor <script>` & `hunch plan_stage small 2 --uniform <img>`", owner, study)
    assert "<script>" not in html and "<img" not in html and "&amp;" in html


def test_a_locked_file_is_amended_by_who_may_amend_alone(study: Study) -> None:
    owner, editor = member(study, "owner"), member(study, "editor")
    editor.user_permissions.remove(Permission.objects.get(codename="amend_study"))
    message = "Change the file: `hunch amend_study FILE`."
    assert "/amend/" in with_cures(message, editor, study)
    study.locked_at = study.created_at
    assert "/amend/" not in with_cures(message, editor, study) and "/amend/" in with_cures(message, owner, study)


def test_every_page_that_stands_for_a_command_is_there(study: Study) -> None:
    owner = member(study, "owner")
    for command in PAGES:
        assert command.split()[0] in get_commands()
        html = with_cures(f"`hunch {command} small 1`", owner, None)
        link = HREF.search(html)
        assert link is not None and resolve(link[1].partition("?")[0]).view_name.startswith("admin:survey_"), html


def test_stages_that_are_drawn_uniformly_lead_to_that_button(study: Study) -> None:
    html = with_cures("`hunch plan_stage small 2 --uniform`", member(study, "owner"), study)
    assert html == f'<a href="/admin/survey/study/{study.pk}/stages/2/plan-uniformly/">Plan uniformly</a>'


def test_who_may_ask_language_models_is_led_to_it(study: Study) -> None:
    user: Any = User.objects.create_superuser("super")
    assert 'href="/admin/survey/answercollection/add/"' in with_cures("`hunch collect_answers`", user, None)
    assert "<code>" in with_cures("`hunch collect_answers`", AnonymousUser(), None)
    # The account's permission is not enough: it takes a study to run.
    assert 'href="/admin' in with_cures("`hunch collect_answers`", member(study, "owner"), None)
    assert 'href="/admin' not in with_cures("`hunch collect_answers`", member(study, "viewer"), None)


def test_the_pages_of_the_whole_server_are_for_who_may_open_them(study: Study) -> None:
    superuser: Any = User.objects.create_superuser("super")
    viewer = User.objects.create_user("stranger", is_staff=True)
    for command, cure in OF_THE_SITE.items():
        assert command in get_commands()
        link = HREF.search(with_cures(f"`hunch {command}`", superuser, None))
        assert link is not None and resolve(link[1]).view_name == f"admin:survey_{cure.page}"
        assert "(for the person who runs this server" in with_cures(f"`hunch {command}`", viewer, None)


def test_texts_that_a_worker_has_to_read_lead_to_that_job(study: Study) -> None:
    message = "It has not read the sentences: `hunch jobs ask prepare small --now`."
    html = with_cures(message, member(study, "owner"), None)
    assert html.endswith(f'<a href="/admin/survey/job/ask/{study.pk}/prepare/">Prepare the texts</a>.')
    assert with_cures(message, member(study, "viewer"), study).endswith(
        "Prepare the texts (ask an owner of the study)."
    )


def test_the_home_page_shows_an_alert_with_its_button(study: Study, client: Client) -> None:
    client.force_login(User.objects.create_superuser("super"))
    now = study.created_at
    message = "Then: `hunch retry_steps small`."
    Alert.objects.create(
        cause="step_failed", subject="step 1", study=study, message=message, opened_at=now, seen_at=now
    )
    body = client.get("/admin/").content.decode()
    assert "Retry failed steps</a>" in body and "hunch retry_steps" not in body
    assert "Retry failed steps</a>" in client.get(f"/admin/survey/study/{study.pk}/change/").content.decode()
