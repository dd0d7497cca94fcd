"""People of a panel that puts their ids into the address. The study file gives the names of the parameters."""

from collections.abc import Mapping

from survey.contracts.panels import PAY_KEYS, Panel
from survey.study_file import ParametersConfig, StudyConfig


class Generic(Panel):
    contract = 1
    name = "generic"
    title = "the panel"
    keys = PAY_KEYS | {"exclude_people_of", "parameters", "completion_urls"}

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        named = (config.panel.parameters or ParametersConfig()).model_dump()
        return {what: name for what, name in named.items() if name}
