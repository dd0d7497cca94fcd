"""What only belief studies have: alignment of language models, human calibration, budgets."""
