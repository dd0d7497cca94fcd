"""Every screen of a study as files: a throw-away copy of it is walked through, and nothing of it stays."""
