"""Panels: whom they send, what they say of each submission, and what people are paid.

What is true of every panel stands here and reaches a panel through `contracts.panels` alone; each panel has a folder.
Stands on services and models. Services know no panel: they reach one by the name in the study file.
"""
