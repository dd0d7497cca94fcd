"""The estimators, one subject a module. Heavy libraries are imported here and in `networks` alone."""
