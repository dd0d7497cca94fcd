"""Makes self-paced reading known to the core."""

from survey.contracts.apps import InstrumentApp


class SelfPacedReadingConfig(InstrumentApp):
    name = "survey.instruments.self_paced_reading"
    label = "self_paced_reading"
    verbose_name = "self-paced reading"
    instrument = "survey.instruments.self_paced_reading.instrument.SelfPacedReading"
