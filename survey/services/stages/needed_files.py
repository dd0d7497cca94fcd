"""Which files plans and predictors cannot be read without, and whether all of them are whole in the storage."""

from collections.abc import Iterator
from dataclasses import dataclass

from survey.models import CandidateSet, NgramModel, PredictorRun, Stage
from survey.services.base import files


@dataclass(frozen=True)
class FileFault:
    sha256: str
    of: str
    what: str  # "is not in the storage" or "has changed"


def needed_files() -> dict[str, str]:
    """The hash of each file, and a name of what needs it."""
    files: dict[str, str] = {}
    for stage in Stage.objects.exclude(plan_sha256="").select_related("study").order_by("pk"):
        files.setdefault(stage.manifest.get("questions", {}).get("positions_sha256", ""), f"questions of {stage}")
    for run in PredictorRun.objects.select_related("stage__study").order_by("pk"):
        for member in run.members.values():
            for name, sha256 in member.items():
                files.setdefault(sha256, f"{name} of {run}")
        files.setdefault(run.held_out_sha256, f"scores of held-out items by {run}")
    for stored in CandidateSet.objects.select_related("stage__study").order_by("pk"):
        for sha256 in (
            *(stored.file_sha256, stored.shortlist_sha256, stored.drawn_sha256),
            *(stored.uniform_sha256, stored.both_outcomes_sha256),
        ):
            files.setdefault(sha256, f"candidates of {stored.stage}")
    for model in NgramModel.objects.order_by("pk"):
        for name, sha256 in model.files.items():
            files.setdefault(sha256, f"{name} of the n-gram model {model}")
    files.pop("", None)
    return files


def faults() -> Iterator[FileFault]:
    """Read every needed file, and name those that are lost or changed.

    Raises:
        StorageAway, StorageRefused: the storage cannot be read.
    """
    there = files.names_stored()
    for sha256, of in needed_files().items():
        if sha256 not in there:
            yield FileFault(sha256, of, "is not in the storage")
        elif not files.is_stored(sha256):
            yield FileFault(sha256, of, "has changed")
