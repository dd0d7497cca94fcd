"""What a preference study, or a file of comparisons, is told in tables, figures and files."""
