"""What each member of a study may do. Every page, action, download and API address asks here.

Two things decide. The account's permissions say what it may do at all (`GATES`); a superuser gives them. The role in a
study says where (`RIGHTS`). Superusers may do everything. Commands run with all rights: anybody with access to
the shell can read and write the whole database.

A row belongs to the study that its foreign keys lead to (`path_to_study`). Banks and what belongs to them are shared by
studies: who is a member of one that uses a bank sees it. A reading belongs to every bank that holds its text. What
belongs to neither is for superusers.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, ForeignKey, Model, OuterRef, Q, QuerySet

from survey.contracts import instruments
from survey.models import (
    AnswerCollection,
    Assignment,
    Bank,
    LanguageModel,
    ModelAnswer,
    Question,
    QuestionText,
    Reading,
    Respondent,
    Response,
    Sitting,
    Study,
    StudyMembership,
    Task,
)

Role = StudyMembership.Role
STARTER_BANK = "starter"  # Comes with Hunch, whichever instruments there are.
Row = TypeVar("Row", bound=Model)


class Right(StrEnum):
    SEE = "see"
    """The study, how it goes, its plans, predictors and figures; nothing of a single person."""
    READ_ANSWERS = "read_answers"
    """What single people did and wrote, by pseudonym."""
    EXPORT = "export"
    RUN = "run"
    EDIT = "edit"
    """Change the study file before the first main stage locks it; archive the study."""
    AMEND = "amend"
    """Change the study file at any time, as far as it may be changed."""
    MAKE_LINKS = "make_links"
    SEE_POSTINGS = "see_postings"
    """What a panel says of its people, by pseudonym, and what is owed."""
    RECRUIT = "recruit"
    """What costs nothing at a panel: read, pause, start, ask for returns."""
    SPEND = "spend"
    """Publish at a panel and approve, which pays the rewards."""
    PAY = "pay"
    """Pay bonuses, and say how a payment ended."""
    SEE_IDENTITIES = "see_identities"
    WITHDRAW = "withdraw"
    MANAGE_MEMBERS = "manage_members"
    UNBLIND = "unblind"
    """Show the conditions of a blind study, to everybody and for good."""


# The permission that an account needs besides its role.
GATES: Mapping[Right, str] = {
    Right.EXPORT: "survey.export_study",
    Right.RUN: "survey.run_study",
    Right.EDIT: "survey.add_study",
    Right.AMEND: "survey.amend_study",
    Right.MAKE_LINKS: "survey.make_links",
    Right.SEE_POSTINGS: "survey.view_posting",
    Right.RECRUIT: "survey.recruit",
    Right.SPEND: "survey.recruit",
    Right.PAY: "survey.pay_people",
    Right.SEE_IDENTITIES: "survey.see_panel_identity",
    Right.WITHDRAW: "survey.withdraw_people",
}

_VIEWER = frozenset({Right.SEE})
_ANALYST = _VIEWER | {Right.READ_ANSWERS, Right.EXPORT}
_EDITOR = _ANALYST | {
    Right.RUN,
    Right.EDIT,
    Right.AMEND,
    Right.MAKE_LINKS,
    Right.SEE_POSTINGS,
    Right.RECRUIT,
    Right.SEE_IDENTITIES,
    Right.WITHDRAW,
}
RIGHTS: Mapping[str, frozenset[Right]] = {
    Role.VIEWER: _VIEWER,
    Role.ANALYST: _ANALYST,
    Role.EDITOR: _EDITOR,
    Role.OWNER: _EDITOR | {Right.MANAGE_MEMBERS, Right.UNBLIND},
}
SPENDING = frozenset({Right.SEE_POSTINGS, Right.SPEND, Right.PAY})
"""What `may_spend` adds to any role."""


_OF_TEST_COPY = frozenset({Right.SEE, Right.READ_ANSWERS, Right.EXPORT, Right.RUN})
"""What is left of a role's rights in the study's test copy, which has neither postings nor members of its own."""


# Who may what


def may(user: Any, right: Right, study: int) -> bool:
    """Whether the user has the right in the study with that key."""
    keys = studies_with(user, right)
    return keys is None or study in keys


def require(user: Any, right: Right, study: int) -> None:
    """
    Raises:
        PermissionDenied: the user lacks the right. Ask only about a study that they see; of others they learn nothing.
    """
    if not may(user, right, study):
        raise PermissionDenied


def studies_with(user: Any, right: Right) -> frozenset[int] | None:
    """The keys of the studies in which the user has the right; None: all studies."""
    gate = GATES.get(right)
    if not user.is_active or (gate is not None and not user.has_perm(gate)):
        return frozenset()
    only: frozenset[int] | None = getattr(user, "_only_studies", None)
    if user.is_superuser:
        return only
    keys = frozenset(study for study, given_rights in _memberships(user).items() if right in given_rights)
    return keys if only is None else keys & only


def is_spender(user: Any, study: int) -> bool:
    """Whether the user was given the right to spend in the study, whatever the account's permissions are."""
    return user.is_active and (user.is_superuser or Right.SPEND in _memberships(user).get(study, ()))


def may_make_studies(user: Any) -> bool:
    """Whether the user may create studies, of which they become the owner."""
    return bool(user.is_active and user.has_perm("survey.add_study"))


def may_collect_answers(user: Any) -> bool:
    """Whether the user may ask language models. It may cost money: it needs a permission of the account, and a study to
    run that uses the bank."""
    return bool(user.has_perm("survey.collect_answers")) and studies_with(user, Right.RUN) != frozenset()


def may_make_banks(user: Any) -> bool:
    """Whether the user may upload banks, which they then see and use in their studies."""
    return bool(user.is_active and user.has_perm("survey.add_bank"))


def reaches_more_than(other: Any, user: Any) -> bool:
    """Whether who logs in as the other has a right in some study, or sees a bank, that the user does not: as a member,
    by the right to spend, or because the other uploaded the bank. The permissions of the accounts are not compared."""
    mine = _memberships(user)
    if any(given_rights - mine.get(study, frozenset()) for study, given_rights in _memberships(other).items()):
        return True
    return Bank.objects.filter(created_by=other.pk).exclude(pk__in=visible_banks(user).order_by().values("pk")).exists()


def limit(user: Any, studies: Iterable[int]) -> None:
    """From now on this object has rights in these studies alone: a token may be for some of its user's studies."""
    user._only_studies = frozenset(studies)


def read_again(user: Any) -> None:
    """Forget what this object knows of the user's memberships: one was added in this request."""
    user._study_rights = None


def _memberships(user: Any) -> Mapping[int, frozenset[Right]]:
    """Study to rights. Read once for each object, which lives as long as its request."""
    known: dict[int, frozenset[Right]] | None = getattr(user, "_study_rights", None)
    if known is None:
        rows = StudyMembership.objects.filter(user=user.pk).order_by()
        known = {}
        for study, copy, role, spends in rows.values_list("study", "study__test_copy", "role", "may_spend"):
            known[study] = RIGHTS[role] | (SPENDING if spends else frozenset())
            if copy is not None:
                known[copy] = RIGHTS[role] & _OF_TEST_COPY
        user._study_rights = known
    return known


# Which rows somebody sees


def visible(user: Any, rows: QuerySet[Row], right: Right | None = None) -> QuerySet[Row]:
    """The rows that the user may see.

    Args:
        right: needed in the row's study; by default what the row's model says (`right_to_see`).
    """
    right = right or right_to_see(rows.model)
    keys = studies_with(user, right)
    if keys is None:
        return rows
    if (path := path_to_study(rows.model)) is not None:
        return rows.filter(**{f"{path}__in": keys})
    if rows.model is LanguageModel:
        banks = _banks(user, keys, right)
        answers = ModelAnswer.objects.filter(language_model=OuterRef("pk"), question__bank__in=banks)
        asking = AnswerCollection.objects.filter(language_model=OuterRef("pk"), bank__in=banks)
        hashes = QuestionText.objects.filter(question__bank__in=banks).order_by().values("text_sha256")
        reading = Reading.objects.filter(language_model=OuterRef("pk"), text_sha256__in=hashes)
        return rows.filter(Exists(answers) | Exists(asking) | Exists(reading))
    if rows.model is Reading:
        texts = QuestionText.objects.filter(
            text_sha256=OuterRef("text_sha256"), question__bank__in=_banks(user, keys, right)
        )
        return rows.filter(Exists(texts))
    if (path := _path_to_bank(rows.model)) is not None:
        return rows.filter(**{f"{path}__in": _banks(user, keys, right)})
    return rows.none()


def visible_banks(user: Any, right: Right = Right.SEE) -> QuerySet[Bank]:
    """The banks of the studies in which the user has the right. To see: also those that the user uploaded, and for who
    may create studies the starter bank and those that instruments bring."""
    return visible(user, Bank.objects.all(), right)


def answers_of_visible_banks(user: Any) -> Q:
    """A language model's answers that the user sees, as a filter of its `answers`."""
    keys = studies_with(user, Right.SEE)
    return Q() if keys is None else Q(answers__question__bank__in=_banks(user, keys, Right.SEE))


def is_ruled(model: type[Model]) -> bool:
    """Whether rows of this model belong to studies or to banks."""
    return path_to_study(model) is not None or _path_to_bank(model) is not None or model in (LanguageModel, Reading)


def _banks(user: Any, keys: frozenset[int], right: Right) -> Any:
    """The keys of the banks of these studies, and to see them those that need no study."""
    of_studies = Q(pk__in=Study.objects.filter(pk__in=keys).order_by().values("bank"))
    if right is not Right.SEE or getattr(user, "_only_studies", None) is not None:
        return Bank.objects.filter(of_studies).order_by().values("pk")
    free = Q(created_by=user.pk)
    if may_make_studies(user):
        free |= Q(name__in={STARTER_BANK, *instruments.shipped_banks()}, created_by__isnull=True)
    return Bank.objects.filter(of_studies | free).order_by().values("pk")


PATHS_TO_BANK: Mapping[type[Model], str] = {
    Bank: "pk",
    Task: "bank",
    Question: "bank",
    ModelAnswer: "question__bank",
    AnswerCollection: "bank",
    QuestionText: "question__bank",
}


@cache
def _path_to_bank(model: type[Model]) -> str | None:
    """The lookup from a row to its bank; None where it belongs to none. Of an instrument's own row, which may belong to
    replies or questions and to no study, by foreign keys that are always set."""
    if model in PATHS_TO_BANK or model._meta.app_label == Study._meta.app_label:
        return PATHS_TO_BANK.get(model)
    for field in model._meta.get_fields():
        if isinstance(field, ForeignKey) and not field.null and field.related_model in PATHS_TO_BANK:
            return f"{field.name}__{PATHS_TO_BANK[field.related_model]}".removesuffix("__pk")
    return None


PERSONAL = {Respondent, Sitting, Assignment, Response}


def right_to_see(model: type[Model]) -> Right:
    """What belongs to a single person needs the right to read answers."""
    return Right.READ_ANSWERS if PERSONAL & set(_way_to_study(model)[1]) else Right.SEE


def path_to_study(model: type[Model]) -> str | None:
    """The lookup that leads from a row to its study ("pk" for a study itself); None where it belongs to no study."""
    return _way_to_study(model)[0]


def study_key_of(row: Model) -> int:
    """The key of the study that the row belongs to.

    Raises:
        LookupError: rows of its model belong to no study.
    """
    path = path_to_study(type(row))
    if path is None:
        raise LookupError(f"rows of {type(row).__name__} belong to no study")
    *relations, last = path.split("__")
    owner: Any = row
    for relation in relations:
        owner = getattr(owner, relation)
    return int(owner.pk if last == "pk" else getattr(owner, f"{last}_id"))


@cache
def _way_to_study(model: type[Model]) -> tuple[str | None, tuple[type[Model], ...]]:
    """The shortest way by foreign keys that are always set, and the models on it."""
    if model is Study:
        return "pk", ()
    ways: list[tuple[str, tuple[type[Model], ...]]] = [("", (model,))]
    seen: set[type[Model]] = {model}
    while ways:
        path, models = ways.pop(0)
        for field in models[-1]._meta.get_fields():
            if not isinstance(field, ForeignKey) or field.null:
                continue
            related, longer = field.related_model, f"{path}__{field.name}" if path else field.name
            if related is Study:
                return longer, models
            if related not in seen:
                seen.add(related)
                ways.append((longer, (*models, related)))
    return None, ()
