"""A respondent's way: from the door through every page to the end, and taking it all back."""
