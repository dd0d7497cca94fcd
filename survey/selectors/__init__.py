"""Reads with rules: what may be drawn, what counts, how far a stage is. They write nothing."""
