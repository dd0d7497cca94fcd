"""A stage's states, and the work between two stages: training, judging, scoring, verifying."""
