"""Simulated studies: what a budget buys."""
