"""People of a panel that puts their ids into the address. The study file gives the names of the parameters.

A panel cannot be asked whether it sent somebody. With `signed_entry` it shows that it did: it signs each address with a
secret that it shares with us. At the end people can be sent back with the ids that they came with, and with a signature
of ours.
"""

import time
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.utils.translation import gettext as _

from survey.contracts.panels import PAY_KEYS, Panel, PanelIds, Verdict
from survey.exceptions import EntryRefused
from survey.models import Study
from survey.study_file import SIGNATURE, ParametersConfig, StudyConfig, filled

from .signatures import closing_signature, is_signed

NOT_CONFIGURED = "HUNCH_GENERIC_SECRET is not set: without it no signed address can be checked, and nobody can enter"
CANNOT_SIGN = (
    "HUNCH_GENERIC_CLOSING_SECRET is not set: without it no closing address can be signed, and nobody can enter"
)


class Generic(Panel):
    contract = 1
    name = "generic"
    title = "the panel"
    keys = PAY_KEYS | {
        *("exclude_people_of", "signed_entry", "parameters", "formats", "screen_out_pay", "screen_out_places"),
        *("completion_urls", "completion_signature"),
    }
    gives_ids_back = True

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        named = _parameters(config)
        names = {"person": named.person, "study": named.study, "submission": named.submission}
        return {what: name for what, name in names.items() if name}

    def proof_names(self, config: StudyConfig) -> Sequence[str]:
        named = _parameters(config).of_signed()
        return (str(named.time), str(named.signature)) if config.panel.signed_entry else ()

    def missing_setting(self, config: StudyConfig) -> str:
        if config.panel.signed_entry and not settings.HUNCH_GENERIC_SECRET:
            return NOT_CONFIGURED
        return CANNOT_SIGN if config.panel.completion_signature and not settings.HUNCH_GENERIC_CLOSING_SECRET else ""

    def recognise(self, study: Study, query: Mapping[str, str]) -> PanelIds | None:
        ids = super().recognise(study, query)
        if ids is None:
            return None
        if study.config.panel.completion_signature and not settings.HUNCH_GENERIC_CLOSING_SECRET:
            raise EntryRefused(_("This study is not open at the moment. Nothing has been recorded."), code="closed")
        names = self.parameter_names(study.config)
        for id_format in study.config.panel.formats:
            if id_format.of in names and not id_format.fits(getattr(ids, id_format.of)):
                raise EntryRefused(
                    _(
                        "The link is not right: %(name)s does not look like an id of the site that you came from. "
                        "Please start again from the page on which you found this study."
                    )
                    % {"name": names[id_format.of]},
                    code="bad_panel_ids",
                    status=400,
                )
        return ids

    def verdict(self, study: Study, ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        if not study.config.panel.signed_entry or self.missing_setting(study.config):
            return Verdict.NOT_KNOWN
        signed_at, signature = (query.get(name, "").strip() for name in self.proof_names(study.config))
        sent = is_signed(study.slug, ids, signed_at=signed_at, signature=signature, now=time.time())
        return Verdict.SENT if sent else Verdict.NOT_SENT

    def closing_address(self, study: Study, *, outcome: str, code: str, ids: PanelIds | None) -> str:
        panel = study.config.panel
        if not panel.is_personal_after(outcome):
            return panel.address_after(outcome, code)
        if ids is None:
            return ""
        values = {"person": ids.person, "study": ids.study, "submission": ids.submission, "code": code}
        address = filled(panel.closing_template(outcome), values)
        how = panel.completion_signature
        if how is None or not settings.HUNCH_GENERIC_CLOSING_SECRET:
            return "" if how else address
        text = how.text_to_sign(address, {**values, "slug": study.slug, "outcome": outcome})
        signature = closing_signature(how, text, secret=settings.HUNCH_GENERIC_CLOSING_SECRET)
        return filled(address, {SIGNATURE: signature})


def _parameters(config: StudyConfig) -> ParametersConfig:
    return config.panel.parameters or ParametersConfig()
