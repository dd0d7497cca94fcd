"""Which files an export has in addition to answers.csv."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from survey.contracts import instruments
from survey.contracts.exports import CountedAnswers as Counted
from survey.contracts.exports import NoAnswers
from survey.contracts.tables import ExtraFile
from survey.exceptions import HunchError, NotFound
from survey.models import Stage, Study
from survey.services.banks.question_flags import questions_file
from survey.services.results import reports
from survey.services.results.estimates.design_rows import design_files
from survey.services.results.export.answers_file import NO_LEVELS, CountedAnswers
from survey.services.results.export.columns import IS_TEST
from survey.services.results.export.majority_file import majorities_file
from survey.services.results.export.proof_files import proof_files
from survey.services.results.export.sitting_files import sitting_files
from survey.services.results.export.study_files import study_files
from survey.services.results.export.timing_files import timing_files
from survey.services.stages import leaderboard
from survey.services.studies.amending import amendments_file

# Files that every export has in addition to these; the last is what is owed to people of some panels.
RESERVED = ("answers.csv", "codebook.csv", "owed.csv")


def extra_files(
    study: Study,
    *,
    levels: Mapping[str, str] = NO_LEVELS,
    since: datetime | None = None,
    with_pay: bool = False,
) -> Iterable[ExtraFile]:
    """The instrument's further files, of the answers that count; how its predictors did, where it has any; and what its
    reports add.

    Args:
        since: in files about people only sittings in which anything was stored since.
        with_pay: what panels say and pay, for who may see postings.
    """
    own = _own_files(study, CountedAnswers(study, levels), levels=levels, since=since, with_pay=with_pay)
    return _with_reports(study, own, levels)


def _with_reports(study: Study, own: Iterable[ExtraFile], levels: Mapping[str, str]) -> Iterator[ExtraFile]:
    names = set(RESERVED)
    for file in own:
        if file.name in names:
            raise HunchError(
                f"{study.slug}: two files of the export are called {file.name}, and one would be lost; the author of "
                f"the instrument {study.config.instrument.kind} must rename its own"
            )
        names.add(file.name)
        yield _marked(study, file)
    for file in reports.export_files(study, levels, names):
        yield _marked(study, file)


def _marked(study: Study, file: ExtraFile) -> ExtraFile:
    """With a column that says so, if it is of a test copy."""
    if not study.is_test:
        return file
    return ExtraFile(file.name, (*file.columns, IS_TEST), ((*row, True) for row in file.rows))


def file_heads(study: Study) -> Iterable[ExtraFile]:
    """The same files for who needs only their names and columns. No answer is read: the instrument's files have no
    rows."""
    return _with_reports(study, _own_files(study, NoAnswers()), NO_LEVELS)


def file_named(study: Study, name: str, *, with_pay: bool = False) -> ExtraFile | None:
    """The file with its rows; None if there is no such file. The instrument is asked for its files only if it is one of
    them."""
    own = {file.name for file in instruments.of_study(study).export.extra_files(NoAnswers())}
    files = (
        extra_files(study)
        if name in own
        else _with_reports(study, _own_files(study, NoAnswers(), with_pay=with_pay), NO_LEVELS)
    )
    return next((file for file in files if file.name == name), None)


def _own_files(
    study: Study,
    answers: Counted,
    *,
    levels: Mapping[str, str] = NO_LEVELS,
    since: datetime | None = None,
    with_pay: bool = False,
) -> Iterator[ExtraFile]:
    instrument = instruments.of_study(study)
    yield from instrument.export.extra_files(answers)
    yield from study_files(study, since=since, with_pay=with_pay)
    yield from sitting_files(study, since=since)
    yield questions_file(study.bank)
    yield from timing_files(study, since=since)
    if (learning := instrument.learning) is not None:
        yield ExtraFile(leaderboard.FILE, leaderboard.columns_of(learning), leaderboard.file_rows(study, learning))
        yield majorities_file(study)
    yield from design_files(study, levels=levels)
    yield amendments_file(study)
    yield from proof_files(study)


def stage_of(study: Study, index: int | None) -> int | None:
    """The number of a stage that exists, as it was asked for.

    Raises:
        NotFound: the study has no such stage.
    """
    if index is not None and not Stage.objects.filter(study=study, index=index).exists():
        raise NotFound(f"{study.slug} has no stage {index}")
    return index
