"""Prolific: the panel, its API and its events, and a fake Prolific to try them with."""
