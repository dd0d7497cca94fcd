"""The report of reading times, of a study and of files."""
