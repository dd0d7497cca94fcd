"""What a page shows where a message names a command: the page that does the same.

A message is written once, for terminals, the API and pages, with what helps as a command in backticks: "try it again:
`hunch retry_steps demo`". On a page it becomes a link to the button that does it, with the button's words. Of a command
that no page stands for, the page says that it is for the person who runs the server, and leads to what Help says of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from survey.models import JobStep, Study
from survey.services.base import rights
from survey.services.base.rights import Right

COMMAND = re.compile(r"`hunch (?P<command>[a-z_]+)(?P<rest>[^`]*)`")
HELP = ("document", "reference/commands")


@dataclass(frozen=True)
class Cure:
    """A page that does what a command does.

    text: of the link, which reads well where the command stands in a sentence.
    address: of the page for a study, by the words after the command's name.
    right: what the reader needs in the study. Others read whom to ask.
    """

    text: str
    address: Callable[[Study, Sequence[str]], str]
    right: Right | Callable[[Study], Right] = Right.SEE

    def may_be_used(self, user: Any, study: Study) -> bool:
        right = self.right if isinstance(self.right, Right) else self.right(study)
        return rights.may(user, right, study.pk)


def _page(name: str, place: str = "") -> Callable[[Study, Sequence[str]], str]:
    return lambda study, words: reverse(f"admin:survey_study_{name}", args=[study.pk]) + place


def _list(model: str) -> Callable[[Study, Sequence[str]], str]:
    return lambda study, words: reverse(f"admin:survey_{model}_changelist", query={"study": study.slug})


def _action(name: str) -> Callable[[Study, Sequence[str]], str]:
    """The page of a stage's action; without the stage's number in the command, the study page with all stages."""

    def address(study: Study, words: Sequence[str]) -> str:
        index = next((int(word) for word in words if word.isdecimal()), None)
        if index is None:
            return reverse("admin:survey_study_change", args=[study.pk]) + "#overview"
        return reverse("admin:survey_study_action", args=[study.pk, index, name])

    return address


def _right_to_change(study: Study) -> Right:
    return Right.EDIT if study.locked_at is None else Right.AMEND


def _job(study: Study, words: Sequence[str]) -> str:
    return reverse("admin:survey_job_ask", args=[study.pk, words[1]])


def _retry(study: Study, words: Sequence[str]) -> str:
    """The stage whose steps failed, if there is one."""
    failed = JobStep.objects.filter(stage__study=study, state=JobStep.State.FAILED).order_by("pk")
    index = failed.values_list("stage__index", flat=True).first()
    return _action("retry")(study, [] if index is None else [str(index)])


# By the command, or by the command with words that stand behind it; the first that fits counts.
PAGES: Mapping[str, Cure] = {
    "jobs ask prepare": Cure("Prepare the texts", _job, Right.RUN),
    "jobs ask": Cure("Ask for it", _job, Right.RUN),
    "amend_study": Cure("Amend the study file", _page("amend"), _right_to_change),
    "archive_study": Cure("Bring it back", _page("change"), Right.EDIT),
    "close_stage": Cure("Close", _action("close"), Right.RUN),
    "estimate": Cure("Estimates", _page("estimates")),
    "open_stage": Cure("Open", _action("open"), Right.RUN),
    "pay_bonuses": Cure("Postings and payments", _list("posting"), Right.SEE_POSTINGS),
    "plan_stage --uniform": Cure("Plan uniformly", _action("plan-uniformly"), Right.RUN),
    "plan_stage": Cure("Plan", _action("plan"), Right.RUN),
    "posting": Cure("Postings", _list("posting"), Right.SEE_POSTINGS),
    "purge_identities": Cure("Remove panels' ids", _page("remove_ids"), Right.WITHDRAW),
    "reconcile": Cure("Postings", _list("posting"), Right.SEE_POSTINGS),
    "retry_steps": Cure("Retry failed steps", _retry, Right.RUN),
    "study_status": Cure("The study's stages", _page("change", "#stages")),
    "test_copy": Cure("Try out", _page("try"), Right.RUN),
}


@dataclass(frozen=True)
class SiteCure:
    """The same of a page that is of no study. `page`: its address's name. `may_be_used`: by this user."""

    text: str
    page: str
    may_be_used: Callable[[Any], bool]


OF_THE_SITE: Mapping[str, SiteCure] = {
    "collect_answers": SiteCure("Ask a language model", "answercollection_add", rights.may_collect_answers),
    "import_questions": SiteCure("New bank", "bank_add", rights.may_make_banks),
    "store_logo": SiteCure("New logo", "logo_add", rights.may_make_studies),
    "verify_audit": SiteCure("Check the audit's chain", "auditentry_check", lambda user: user.is_superuser),
}
# Options that a page does not have: the command is then for the person who runs the server.
ONLY_IN_A_SHELL = ("--short-booklets", "--by")


def with_cures(text: str, user: Any, study: Study | None) -> SafeString:
    """The message as HTML, escaped, with links in place of commands.

    Args:
        user: who reads it; a link leads only where they may go.
        study: whose page it is, if it is one.
    """
    parts, end = [], 0
    for match in COMMAND.finditer(text):
        parts += [conditional_escape(text[end : match.start()]), _cure(match, user, study)]
        end = match.end()
    parts.append(conditional_escape(text[end:]))
    return mark_safe("".join(parts))  # noqa: S308


def _cure(match: re.Match[str], user: Any, study: Study | None) -> SafeString:
    command, words = match["command"], match["rest"].split()
    of_the_site = OF_THE_SITE.get(command)
    if of_the_site is not None and of_the_site.may_be_used(user):
        return format_html('<a href="{}">{}</a>', reverse(f"admin:survey_{of_the_site.page}"), of_the_site.text)
    page = next((page for key, page in PAGES.items() if {*key.split()} <= {command, *words}), None)
    if page is None or any(word in ONLY_IN_A_SHELL for word in words):
        return _for_the_server(match[0].strip("`"), command)
    about = _study_of(words, user, study)
    if about is None or not page.may_be_used(user, about):
        return format_html("{} (ask an owner of the study)", page.text)
    return format_html('<a href="{}">{}</a>', page.address(about, words), page.text)


def _study_of(words: Sequence[str], user: Any, study: Study | None) -> Study | None:
    """The study that the command names, if the user may see it; else that of the page."""
    named = [word for word in words if not word.startswith("-") and word.upper() != word]
    if not named or (study is not None and study.slug in named):
        return study
    rows = rights.visible(user, Study.objects.all()).filter(slug__in=named)
    return min(rows, key=lambda row: named.index(row.slug), default=None)


def _for_the_server(typed: str, command: str) -> SafeString:
    try:
        address = f"{reverse(HELP[0], args=[HELP[1]])}#{command}"
    except NoReverseMatch:
        return format_html("<code>{}</code> (for the person who runs this server)", typed)
    return format_html('<code>{}</code> (for the person who runs this server: <a href="{}">Help</a>)', typed, address)
