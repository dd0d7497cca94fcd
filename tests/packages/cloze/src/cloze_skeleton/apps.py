"""Registers the instrument."""

from survey.contracts.apps import InstrumentApp


class Cloze(InstrumentApp):
    name = "cloze_skeleton"
    label = "cloze"
    instrument = "cloze_skeleton.instrument.Cloze"
