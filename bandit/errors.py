"""The one exception of this library. Leaf module: imports nothing."""


class DesignError(ValueError):
    """A design, draw, deal or estimate that cannot be had; the message names the sizes and the way out."""
