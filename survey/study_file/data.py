"""What becomes of the data. Imports pydantic alone."""

from datetime import date

from pydantic import Field

from .base import Strict


class DataConfig(Strict):
    """Until when personal data is kept: data protection asks for a term before anybody is asked anything."""

    retention_until: date | None = Field(default=None, description="No stage opens without it, or after it.")
