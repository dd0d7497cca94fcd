"""The project's own bank of questions, so that a fresh clone has something to ask.

Dependency rule: a leaf. The standard library only: no Django, no models, nothing else of survey. Who wants the bank
reads `starter.csv`; `python -m tools.starter_bank` writes it anew from `handwritten.csv` and `templates.py`.
"""
