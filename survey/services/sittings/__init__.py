"""A respondent's way: from arrival through every page to the end, and withdrawing the answers."""
