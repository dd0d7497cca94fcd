"""A study's estimates: computed from rows, combined over stages, stored, and shown as a report."""
