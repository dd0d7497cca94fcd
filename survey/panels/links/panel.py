"""People who each have a personal link. Opening a link writes nothing; beginning uses it up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

from django.utils.translation import gettext as _

from survey.contracts.panels import PAY_KEYS, Panel, PanelIds
from survey.models import Study
from survey.services.sittings import links
from survey.study_file import StudyConfig


class Links(Panel):
    contract = 1
    name = links.KIND
    title = "links of their own"
    keys = PAY_KEYS | {"screen_out_pay", "screen_out_places"}
    has_submissions = False
    ids_are_secret = True

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

    def simulated_queries(self, study: Study, *, count: int, root: str) -> Sequence[Mapping[str, str]]:
        made: list[links.NewLink] = []
        while len(made) < count:
            some = min(count - len(made), links.MOST_AT_ONCE)
            made += links.make_links(study, count=some, root=root, via="simulate")
        return [dict(parse_qsl(urlsplit(link.address).query)) for link in made]
