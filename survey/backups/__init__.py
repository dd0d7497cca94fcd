"""Backups: the database, the files that it names and the keys in one encrypted file, and the way back."""
