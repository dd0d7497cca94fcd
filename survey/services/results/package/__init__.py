"""A study's data with its description, to be published or kept."""
