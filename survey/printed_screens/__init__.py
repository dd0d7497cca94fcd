"""Writes every screen of a study to files. It walks through a temporary copy of the study and then removes the copy."""
