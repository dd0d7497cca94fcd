"""The methods section of a study, before and after its data."""
