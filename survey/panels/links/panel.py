"""People who each have a personal link. Opening a link writes nothing; beginning uses it up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

from django.utils.translation import gettext as _

from survey.contracts.panels import PAY_KEYS, Invitations, Invitee, InviteLink, Panel, PanelClient, PanelIds
from survey.models import Stage, Study
from survey.services.sittings import links
from survey.services.sittings.capacity import admitting_stage
from survey.study_file import StudyConfig


class Links(Panel):
    contract = 1
    name = links.KIND
    title = "links of their own"
    keys = PAY_KEYS | {"screen_out_pay", "screen_out_places"}
    has_submissions = False
    ids_are_secret = True
    invites_by_links = True

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        return {"person": links.PARAMETER}

    def address(self, config: StudyConfig, entrance: str) -> str:
        return entrance  # Each person has a different one.

    def recognise(self, study: Study, query: Mapping[str, str]) -> PanelIds | None:
        token = query.get(links.PARAMETER, "").strip()
        return links.ids_of_link(study, token) if token else None

    def how_to_enter(self) -> str:
        return _("This study is opened by a link of your own. Please open the link that you were sent.")

    def admit(self, study: Study, ids: PanelIds, *, now: datetime) -> None:
        links.use_link(study, ids, now=now)

    def invite(
        self, stage: Stage, people: Sequence[Invitee], *, root: str = "", client: PanelClient | None = None
    ) -> Invitations:
        made = links.make_later_links(
            stage.study, wave=stage.wave, firsts=[person.ids.person for person in people], root=root
        )
        of = {person.ids.person: person for person in people}
        listed = [
            InviteLink(link.first_number, link.number, link.address, of[link.first].opens, of[link.first].closes)
            for link in made
        ]
        return Invitations(len(listed), listed)

    def returning_queries(self, study: Study, people: Sequence[PanelIds], *, root: str) -> Sequence[Mapping[str, str]]:
        stage = admitting_stage(study)
        wave = stage.wave if stage is not None else 1
        made = links.make_later_links(study, wave=wave, firsts=[ids.person for ids in people], root=root)
        return [dict(parse_qsl(urlsplit(link.address).query)) for link in made]

    def simulated_queries(self, study: Study, *, count: int, root: str) -> Sequence[Mapping[str, str]]:
        made: list[links.NewLink] = []
        while len(made) < count:
            some = min(count - len(made), links.MAX_AT_ONCE)
            made += links.make_links(study, count=some, root=root, via="simulate")
        return [dict(parse_qsl(urlsplit(link.address).query)) for link in made]
