"""Registers the toy."""

from survey.contracts.apps import InstrumentApp


class Toy(InstrumentApp):
    name = "toy_instrument"
    label = "toy"
    instrument = "toy_instrument.instrument.Toy"
