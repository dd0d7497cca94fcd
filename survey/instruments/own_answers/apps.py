"""Makes own answers known to the core."""

from survey.contracts.apps import InstrumentApp


class OwnAnswersConfig(InstrumentApp):
    name = "survey.instruments.own_answers"
    label = "own_answers"
    verbose_name = "own answers"
    instrument = "survey.instruments.own_answers.instrument.OwnAnswers"
