"""The results kit: a figure with its interval, a table of them, and everything that writes tables. Pure: `bandit`,
numpy and the standard library alone, so that it can be used and tested without Django and without a study.

    figure.py     `Figure`: a value with its interval, or the reason why it is withheld
    words.py      numbers as people read them; nothing else formats a number
    tables.py     `Column`, `FigureColumn`, `Table`, and `TableView`, which says what of a table people see
    rendering.py  a table as CSV, JSON, Markdown and LaTeX, in a terminal and on a page
"""

from .figure import Figure
from .tables import Column, FigureColumn, LinkedCell, PartColumn, Table, TableView, plain_columns

__all__ = [
    "Column",
    "Figure",
    "FigureColumn",
    "LinkedCell",
    "PartColumn",
    "Table",
    "TableView",
    "plain_columns",
]
