"""Makes preferences known to the core."""

from survey.contracts.apps import InstrumentApp


class PreferenceConfig(InstrumentApp):
    name = "survey.instruments.preference"
    label = "preference"
    verbose_name = "preference"
    instrument = "survey.instruments.preference.instrument.Preference"
