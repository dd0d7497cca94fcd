"""Answers as files."""
