"""The one exception of this library. Leaf module: imports nothing."""


class DesignError(ValueError):
    """A design, draw, deal or estimate is not possible. The message names the sizes and says what to change."""
