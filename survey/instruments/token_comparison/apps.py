"""Makes the comparison of tokens known to the core."""

from survey.contracts.apps import InstrumentApp


class TokenComparisonConfig(InstrumentApp):
    name = "survey.instruments.token_comparison"
    label = "token_comparison"
    verbose_name = "token comparison"
    instrument = "survey.instruments.token_comparison.instrument.TokenComparison"
