"""Predictors of belief change: a library of its own.

It knows neither Django nor the survey nor the bandit; plain data comes in, plain data goes out. Importing it, its
`registry`, `settings`, `pairs`, `evaluation`, `artifacts` or `training` loads nothing heavier than numpy: torch,
transformers and scikit-learn are imported by the modules under `models` and `networks`, on first use.
"""
