"""A panel that puts its ids into the address and has no API known to Hunch: its people are paid from a list."""
