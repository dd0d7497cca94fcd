"""Registers the instrument."""

from survey.contracts.apps import InstrumentApp


class Preference(InstrumentApp):
    name = "preference_skeleton"
    label = "preference"
    instrument = "preference_skeleton.instrument.Preference"
