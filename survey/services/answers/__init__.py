"""Which answers count, and under which conditions they were given."""
