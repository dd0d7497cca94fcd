"""A panel that puts its ids into the address and has no API that we know: its people are paid from a list."""
