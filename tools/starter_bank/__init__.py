"""The project's own bank of questions, so that a new clone has something to ask.

Dependency rule: a leaf. The standard library only: no Django, no models, nothing else of survey. To use the bank, read
`starter.csv`; `python -m tools.starter_bank` writes it again from `handwritten.csv` and `templates.py`.
"""
