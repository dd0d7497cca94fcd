"""The respondent's pages. This is the top layer: it may import survey, and nothing imports it."""
