"""What users of such systems ask for, each as one walk through the real pages, commands and addresses.

A file is a scenario and a test function a part of it; the numbers are those of the list in docs/how-a-study-runs.md.
"""
