"""The report of cloze studies, and of norms that somebody already has."""
