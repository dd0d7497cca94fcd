"""How long personal data is kept. Imports pydantic alone."""

from datetime import date

from pydantic import Field

from .base import Strict


class DataConfig(Strict):
    """Until when personal data is kept. Data protection requires this date before the first person is asked."""

    retention_until: date | None = Field(default=None, description="No stage opens without this date, or after it.")
