"""Filters for texts: questions and a study's own words."""
