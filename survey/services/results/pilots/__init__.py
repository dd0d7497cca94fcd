"""What a pilot showed, and what respondents said of its questions."""
