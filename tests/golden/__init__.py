"""Finished studies that earlier code made and stored: what is read off them never changes.

`make.py` made them. `data/` holds the database, the stored files, and for each study every export and figure.
"""
