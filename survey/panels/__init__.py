"""Panels: which people they send, what they report about each submission, and what people are paid.

The modules here serve all panels and reach each one only through `contracts.panels`. Each panel has its own folder.
Panels use services and models. Services import no panel: they find one by the name in the study file.
"""
