"""Makes the belief update known to the core."""

from survey.contracts.apps import InstrumentApp


class BeliefUpdateConfig(InstrumentApp):
    name = "survey.instruments.belief_update"
    label = "belief_update"
    verbose_name = "belief update"
    instrument = "survey.instruments.belief_update.instrument.BeliefUpdate"
