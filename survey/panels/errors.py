"""What a panel's answer means for the caller. Imports only the exceptions of survey."""

from survey.exceptions import HunchError


class PanelError(HunchError):
    """A call to the panel that did not do what it should. The message holds no id of a person and no token.

    `outcome_is_known` is False where the panel may have done what it was asked all the same: whoever spends money must
    not ask again.
    """

    code = "panel"
    status = 502

    def __init__(self, message: str, *, answered: int | None = None, outcome_is_known: bool = True) -> None:
        super().__init__(message)
        self.answered = answered
        self.outcome_is_known = outcome_is_known


class PanelUnreachable(PanelError):
    """No answer, or none that can be used, after all tries that were safe."""


class PanelRefused(PanelError):
    """The panel understood and said no: asking again in the same words does not help."""


class PanelMissing(PanelRefused):
    """The panel knows nothing under this id."""


class PanelBusy(PanelUnreachable):
    """Too many requests, and it asks for more patience than we have."""
