"""People of a panel that puts their ids into the address. The study file gives the names of the parameters.

A panel cannot be asked whether it sent somebody. With `signed_entry` it shows that it did: it signs each address with a
secret that it shares with us.
"""

import time
from collections.abc import Mapping, Sequence

from django.conf import settings

from survey.contracts.panels import PAY_KEYS, Panel, PanelIds, Verdict
from survey.models import Study
from survey.study_file import ParametersConfig, StudyConfig

from .signatures import is_signed

NOT_CONFIGURED = "HUNCH_GENERIC_SECRET is not set: without it no signed address can be checked, and nobody can enter"


class Generic(Panel):
    contract = 1
    name = "generic"
    title = "the panel"
    keys = PAY_KEYS | {"exclude_people_of", "parameters", "completion_urls", "signed_entry"}

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        named = _parameters(config)
        given = {"person": named.person, "study": named.study, "submission": named.submission}
        return {what: name for what, name in given.items() if name}

    def proof_names(self, config: StudyConfig) -> Sequence[str]:
        named = _parameters(config).of_signed()
        return (str(named.time), str(named.signature)) if config.panel.signed_entry else ()

    def missing_setting(self, config: StudyConfig) -> str:
        return NOT_CONFIGURED if config.panel.signed_entry and not settings.HUNCH_GENERIC_SECRET else ""

    def verdict(self, study: Study, ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        if not study.config.panel.signed_entry or self.missing_setting(study.config):
            return Verdict.NOT_KNOWN
        signed_at, signature = (query.get(name, "").strip() for name in self.proof_names(study.config))
        sent = is_signed(study.slug, ids, signed_at=signed_at, signature=signature, now=time.time())
        return Verdict.SENT if sent else Verdict.NOT_SENT


def _parameters(config: StudyConfig) -> ParametersConfig:
    return config.panel.parameters or ParametersConfig()
