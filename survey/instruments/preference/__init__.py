"""Preference: two replies to a prompt are shown, and people and language models judge which is better."""
