"""Inviting people to a later wave, through their panel. May be repeated: who was invited is not invited again, and who
was not due yet comes with the next time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import Invitee, InviteLink, PanelClient
from survey.exceptions import StateRefused
from survey.figures.csv_lines import csv_line
from survey.figures.words import date_and_time
from survey.models import Study
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.rights import Right
from survey.services.sittings import waves
from survey.services.sittings.identities import unseal

from .addresses import public_root
from .asking import client_of


@dataclass(frozen=True)
class Invited:
    """What became of an invitation.

    `invited`: how many people; `later`: how many are not due yet, and `next_at` when the first of them is; `forgotten`:
    how many can come and could not be invited, since their ids were removed. `links`: of a panel whose people come by
    links of their own; they are shown this one time.
    """

    study: str
    wave: int
    invited: int
    later: int
    next_at: datetime | None
    forgotten: int
    links: tuple[InviteLink, ...] = ()

    @property
    def sentence(self) -> str:
        parts = [f"{self.invited} people invited to wave {self.wave} of {self.study}"]
        if self.later and self.next_at is not None:
            first = f"{date_and_time(self.next_at)}"
            parts.append(f"{self.later} are not due yet, the first from {first}: invite again then")
        if self.forgotten:
            parts.append(f"{self.forgotten} cannot be invited, since their ids were removed")
        return "; ".join(parts)


def right_needed(study: Study) -> Right:
    """Who makes links may hand them out again; elsewhere the panel is asked, as for a posting."""
    return Right.MAKE_LINKS if panels.of_study(study).invites_by_links else Right.RECRUIT


def may_invite(user: Any, study: Study) -> list[int]:
    """The waves to which the user is offered to invite people now."""
    if not study.config.waves or study.is_test or not rights.may(user, right_needed(study), study.pk):
        return []
    return list(range(2, len(study.config.waves) + 2))


def invite(
    study: Study,
    wave: int,
    *,
    root: str | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Invited:
    """Invite everybody who finished the wave before, has not begun this one, and can still come.

    Args:
        root: where respondents reach this server, for links.

    Raises:
        StateRefused: the study has no such wave, or it is over; a test copy invites nobody.
        PanelError: the panel cannot invite, or cannot be reached. It may be repeated.
        HunchError: the root is not an address.
    """
    if study.is_test:
        raise StateRefused(f"{study.slug} is a test copy: nobody is invited to it")
    now = timezone.now()
    stage = waves.stage_of_wave(study, wave)
    stage.study = study
    panel = panels.get(study.config.panel.kind)
    due = [
        due_person
        for due_person in waves.due_for(study, wave, now=now)
        if not due_person.sitting.respondent.is_simulated
    ]
    ready = [due_person for due_person in due if panel.invites_by_links or due_person.window.opens <= now]
    people, forgotten = [], 0
    for due_person in ready:
        sealed = bytes(due_person.sitting.respondent.panel_identity.ids_encrypted)
        ids = unseal(sealed.decode()) if sealed else None
        if ids is None:
            forgotten += 1
        else:
            people.append(Invitee(ids, due_person.window.opens, due_person.window.closes))
    if panel.invites_by_links:
        invitations = panel.invite(stage, people, root=root or public_root())
    else:
        panel.refuse_invitations(study)
        with client_of(panel.name, client) as asked:
            invitations = panel.invite(stage, people, client=asked)
    waiting = [due_person.window.opens for due_person in due if due_person not in ready]
    result = Invited(
        study=study.slug,
        wave=wave,
        invited=invitations.invited,
        later=len(waiting),
        next_at=min(waiting, default=None),
        forgotten=forgotten,
        links=tuple(invitations.links),
    )
    record("invite", study, by=by, via=via, wave=wave, invited=result.invited, later=result.later)
    return result


def lines_of(invited: Invited) -> list[str]:
    """The links as lines of a CSV file. `first_number` is the number of the link with which the person began: anyone
    who handed that one out knows who gets this one."""
    lines = [csv_line(["first_number", "number", "link", "from", "until"])]
    for link in invited.links:
        times = [at.astimezone(UTC).isoformat(timespec="minutes") for at in (link.opens, link.closes)]
        lines.append(csv_line([link.first_number, link.number, link.address, *times]))
    return lines
