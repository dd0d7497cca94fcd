"""The tables that people bring: their bytes as a text, their cells, and rows that are declared once.

Every such file is read here: `reader` makes rows of cells of it, and `rows` makes typed rows of these.
"""
