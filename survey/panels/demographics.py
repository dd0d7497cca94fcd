"""What the panel knows of a study's people, joined by pseudonym. The panel's ids are used to join and never written.

It is read from the panel whenever it is asked for, and kept nowhere but in the file. Who withdrew is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from survey.contracts import panels
from survey.contracts.panels import Demographics, PanelCannot, PanelClient, PanelIds
from survey.exceptions import StateRefused
from survey.figures.csv_lines import csv_line
from survey.models import PanelIdentity, Posting, Respondent, Study
from survey.services.base.auditing import record
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.base.writing import write_private_file
from survey.services.sittings.identities import people_by_submission, submission_hash

from .asking import client_of

PSEUDONYM = "pseudonym"
EXPORTED = "export_demographics"


@dataclass(frozen=True)
class DemographicTable:
    """`rows` have a value for each of `columns`, the pseudonym first. `unknown`: how many of the panel's people are not
    listed, since they never began here or have withdrawn."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    unknown: int


def read_demographics(
    study: Study, *, client: PanelClient | None = None, by: Any = None, via: str = "command"
) -> DemographicTable:
    """
    Raises:
        StateRefused: the study has no posting, or its people's ids were removed.
        PanelCannot: the panel has no such data.
        PanelError: it could not be asked.
    """
    refuse_without_posting(study)
    postings = list(study.postings.exclude(external_id="").order_by("pk"))
    facts: dict[str, Mapping[str, str]] = {}
    unknown = 0
    with client_of(postings[0].panel, client) as asked:
        if not asked.can("demographics"):
            raise PanelCannot(f"{postings[0].panel} exports no demographic data by its API")
        for posting in postings:
            received = list(asked.demographics(posting.external_id))
            people = _people(study, posting, received)
            for demographics in received:
                who = people.get(_key(study, posting, demographics))
                if who is None:
                    unknown += 1
                else:
                    facts[who] = _without_ids(demographics)
    came = Respondent.objects.filter(study=study, is_simulated=False)
    if not facts and came.exists() and not PanelIdentity.objects.filter(study=study).exists():
        raise StateRefused("the panel's ids were removed, as was promised: nobody can be found by them any more")
    names = list(dict.fromkeys(name for row in facts.values() for name in row))
    rows = tuple((who, *(facts[who].get(name, "") for name in names)) for who in sorted(facts))
    record(EXPORTED, study, by=by, via=via, people=len(rows), facts=names)
    return DemographicTable((PSEUDONYM, *names), rows, unknown)


def refuse_without_posting(study: Study) -> None:
    """
    Raises:
        StateRefused: the study has no posting at a panel.
    """
    if not study.postings.exclude(external_id="").exists():
        raise StateRefused(f"{study.slug} has no posting at a panel: there is nobody to ask about")


def _key(study: Study, posting: Posting, demographics: Demographics) -> str:
    return submission_hash(
        study, PanelIds(posting.panel, demographics.person, posting.external_id, demographics.submission)
    )


def _people(study: Study, posting: Posting, received: list[Demographics]) -> dict[str, str]:
    """Pseudonyms by the hash of the submission, in whichever wave."""
    known = people_by_submission(study, {_key(study, posting, demographics) for demographics in received})
    staying = Respondent.objects.filter(pk__in=known.values()).exclude(sittings__withdrawn_at__isnull=False)
    pseudonyms = dict(staying.values_list("pk", "pseudonym"))
    return {key: pseudonyms[pk] for key, pk in known.items() if pk in pseudonyms}


def _without_ids(demographics: Demographics) -> dict[str, str]:
    """The facts, without any that is an id after all: panels rename their columns."""
    return {
        name: value
        for name, value in demographics.facts.items()
        if value not in (demographics.person, demographics.submission)
    }


def write_demographics(table: DemographicTable, path: Path) -> None:
    lines = (csv_line(row) for row in (table.columns, *table.rows))
    write_private_file(path, lines)


def has_demographics(study: Study) -> bool:
    """Whether the study's panel can be asked for what it knows of people."""
    client = panels.of_study(study).client
    return not study.is_test and client is not None and client.can("demographics")


def make(work: Work) -> Mapping[str, Any]:
    work.progress(0, 1, "asking the panel")
    table = read_demographics(work.study, by=work.asked_by, via="job")
    write_demographics(table, work.folder / f"{work.study.slug}-demographics.csv")
    return {"people": len(table.rows), "not_listed": table.unknown, "facts": list(table.columns[1:])}


KIND = JobKind(
    name="demographics",
    title="Demographic data",
    summary="What the panel knows of the people (age, sex, country ...), by pseudonym and without the panel's ids.",
    right=Right.SEE_IDENTITIES,
    make=make,
    suits=has_demographics,
    check=lambda study, arguments: refuse_without_posting(study),
    keeps=timedelta(days=1),
)
