"""Panels: whom they send, what they say of each submission, and what people are paid.

The modules here are for all panels and reach each one through `contracts.panels` alone. Each panel has a folder.
They use services and models. Services import no panel: they find it by the name in the study file.
"""
