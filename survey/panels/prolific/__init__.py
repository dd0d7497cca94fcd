"""Prolific: its client, its door, postings, submissions and webhooks, and a pretended one to try them on."""
