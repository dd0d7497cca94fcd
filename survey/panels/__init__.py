"""Panels: whom they send, what they are told, and what they are paid for.

Stands on services, selectors and models. Only `registry`, which imports nothing of survey, is known below: that is how
services reach a panel, by the name in the study file.
"""
