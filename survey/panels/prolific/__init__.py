"""Prolific: its panel, its API and its events, and a pretended one to try them on."""
