"""Dates and times of the console: 28 November 2026, 15:04 UTC."""

DATE_FORMAT = "j F Y"
DATETIME_FORMAT = "j F Y, H:i T"
TIME_FORMAT = "H:i T"
