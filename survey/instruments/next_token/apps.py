"""Makes the next-token task known to the core."""

from survey.contracts.apps import InstrumentApp


class NextTokenConfig(InstrumentApp):
    name = "survey.instruments.next_token"
    label = "next_token"
    verbose_name = "next token"
    instrument = "survey.instruments.next_token.instrument.NextToken"
