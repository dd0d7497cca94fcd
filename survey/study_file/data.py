"""How long personal data is kept. Imports pydantic alone."""

from datetime import date

from .base import Strict


class DataConfig(Strict):
    """Until when personal data is kept. Data protection requires this date before the first person is asked."""

    retention_until: date | None = None
    """Until when personal data is kept, as `2036-12-31`. No stage opens without it or after it. Once somebody has
    agreed to take part, an amendment may give an earlier day and no later one."""
