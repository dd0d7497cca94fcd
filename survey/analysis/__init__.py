"""Arrays and frames in, tables and figures out. Imports neither Django nor models."""
