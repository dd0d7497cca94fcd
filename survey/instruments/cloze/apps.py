"""Makes the cloze task known to the core."""

from survey.contracts.apps import InstrumentApp


class ClozeConfig(InstrumentApp):
    name = "survey.instruments.cloze"
    label = "cloze"
    verbose_name = "cloze"
    instrument = "survey.instruments.cloze.instrument.Cloze"
