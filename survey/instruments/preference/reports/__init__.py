"""The tables, figures and files of a preference study, or of a file of comparisons."""
