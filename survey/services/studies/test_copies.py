"""The test copy of a study: a study of its own for previews, walks of researchers and simulated people.

It has the study's file and its own stages, places, people and codes. Nobody real gets in (`enrolment`), it is never
posted and pays nobody, and it can be deleted with all that happened in it. A study has one at most.
"""

import hashlib
from typing import Any

from django.apps import apps
from django.db import models, router, transaction
from django.utils import timezone

from survey.exceptions import NotFound, StateRefused
from survey.models import Alert, CompletionCode, Job, JobStep, Sitting, Stage, Study
from survey.models.study import TEST_ENDING
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.seeds import derive

LONGEST_SLUG = 80
DRY_RUN = "dry_run"  # The kind of job that fills a copy (`survey/simulator/job.py`).


def slug_of_copy(slug: str) -> str:
    """The short name of a study's test copy; a long one is cut, with a hash of the whole."""
    if len(slug) + len(TEST_ENDING) <= LONGEST_SLUG:
        return slug + TEST_ENDING
    return f"{slug[:60]}-{hashlib.sha256(slug.encode()).hexdigest()[:12]}{TEST_ENDING}"


def copy_of(study: Study) -> Study | None:
    """The study's test copy; None if it has none."""
    return Study.objects.select_related("bank", "test_of").filter(test_of=study.pk).first()


def find_copy(study: Study) -> Study:
    """
    Raises:
        NotFound: the study has no test copy.
    """
    copy = copy_of(study)
    if copy is None:
        raise NotFound(f"{study.slug} has no test copy: make one (`hunch test_copy {study.slug} make`)")
    return copy


def is_current(copy: Study) -> bool:
    """Whether the copy has the study's file as it is now."""
    original = copy.test_of
    return original is not None and copy.source_sha256 == original.source_sha256


@transaction.atomic
def make_copy(study: Study, *, by: Any = None, via: str = "command") -> Study:
    """The study's test copy with its present file: the one there is, or a new one where there is none or the file has
    changed since.

    Raises:
        StateRefused: the study is a test copy itself, or the old copy cannot be deleted now.
    """
    refuse_copy(study, "cannot be copied")
    study = _locked(study)
    old = copy_of(study)
    if old is not None and is_current(old):
        return old
    if old is not None:
        delete_copy(study, by=by, via=via)
    return _made(study, by=by, via=via)


@transaction.atomic
def renew_copy(study: Study, *, in_dry_run: bool = False, by: Any = None, via: str = "command") -> Study:
    """A new test copy, without anything that happened in the one before.

    Args:
        in_dry_run: the dry run itself asks, before it begins.

    Raises:
        StateRefused: as `make_copy`.
    """
    refuse_copy(study, "cannot be copied")
    study = _locked(study)
    if copy_of(study) is not None:
        delete_copy(study, in_dry_run=in_dry_run, by=by, via=via)
    return _made(study, by=by, via=via)


@transaction.atomic
def delete_copy(study: Study, *, in_dry_run: bool = False, by: Any = None, via: str = "command") -> int:
    """Delete a study's test copy with all its rows; return how many people had walked through it. Files of predictors
    and candidates stay in the storage: a file is named by its content, and the study itself may have the same.

    Raises:
        NotFound: there is none.
        StateRefused: a dry run goes on in it, or a worker is at work on one of its stages.
    """
    study = _locked(study)
    copy = find_copy(study)
    running = Job.objects.filter(study=study, kind=DRY_RUN, state=Job.State.RUNNING, lease_until__gt=timezone.now())
    if not in_dry_run and (job := running.first()) is not None:
        raise StateRefused(f"a dry run goes on in {copy.slug}: wait until it is over, or cancel job {job.pk}")
    # Who begins or answers there locks a stage or a sitting first: they wait, and then find nothing.
    stages = list(Stage.objects.select_for_update(no_key=True).filter(study=copy).order_by("pk"))
    list(Sitting.objects.select_for_update(no_key=True).filter(stage__in=stages).order_by("pk").values_list("pk"))
    busy = JobStep.objects.filter(stage__in=stages, state=JobStep.State.RUNNING, lease_until__gt=timezone.now()).first()
    if busy is not None:
        raise StateRefused(
            f"{copy.slug}: a worker is at work ({busy}): try again when it has finished, in some minutes"
        )
    people = copy.respondents.count()
    _delete_rows(copy)
    record("delete_test_copy", study, by=by, via=via, people=people, source_sha256=copy.source_sha256)
    return people


def refuse_copy(study: Study, what: str) -> None:
    """
    Raises:
        StateRefused: the study is a test copy. `what`: what cannot be done with one.
    """
    if study.is_test:
        raise StateRefused(f"{study.slug} is the test copy of a study and {what}: take the study itself")


def _locked(study: Study) -> Study:
    return Study.objects.select_for_update(of=("self",), no_key=True).select_related("bank").get(pk=study.pk)


def _made(study: Study, *, by: Any, via: str) -> Study:
    copy = Study.objects.create(
        slug=slug_of_copy(study.slug),
        title=study.title,
        bank=study.bank,
        instrument=study.instrument,
        seed=study.seed,
        stored_config=study.stored_config,
        source_text=study.source_text,
        source_sha256=study.source_sha256,
        is_blind=study.is_blind,
        created_by=by if getattr(by, "is_authenticated", False) else None,
        test_of=study,
    )
    Stage.objects.bulk_create(
        Stage(study=copy, index=index, seed=derive(copy.seed, "stage", index))
        for index in range(1, len(copy.config.stages) + 1)
    )
    # No panel pays anybody for these.
    CompletionCode.objects.bulk_create(
        CompletionCode(study=copy, outcome=outcome, code=f"TEST-{outcome.upper().replace('_', '-')}")
        for outcome in CompletionCode.Outcome.values
    )
    record("make_test_copy", study, by=by, via=via, source_sha256=study.source_sha256)
    return copy


def _delete_rows(copy: Study) -> None:
    """The copy and every row that belongs to it, of whichever app. The database checks at the commit that nothing
    refers to them any more."""
    belonging: list[tuple[int, type[models.Model], str]] = []
    others: list[type[models.Model]] = []
    for model in apps.get_models(include_auto_created=True):
        if not model._meta.managed or model._meta.proxy or model is Study:
            continue
        path = rights.path_to_study(model)
        if path is None:
            others.append(model)
        else:
            belonging.append((path.count("__"), model, path))
    ruled = {model for _depth, model, _path in belonging} | {Study}
    Alert.objects.filter(study=copy).delete()
    for model in others:
        for field in model._meta.concrete_fields:
            if field.null and field.related_model in ruled:
                path = rights.path_to_study(field.related_model)
                place = field.name if path == "pk" else f"{field.name}__{path}"
                model._base_manager.filter(**{place: copy.pk}).update(**{field.name: None})
    # The longest ways first: the rows that lead to the study are still there then.
    for _depth, model, path in sorted(belonging, key=lambda entry: -entry[0]):
        rows = model._base_manager.filter(**{path: copy.pk})
        rows._raw_delete(router.db_for_write(model))
    Study.objects.filter(pk=copy.pk)._raw_delete(router.db_for_write(Study))
