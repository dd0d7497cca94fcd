"""The respondent's pages. Stands on top: it may import survey, and nothing imports it."""
