"""What the answers say: estimates, comparisons, pilots, exports."""
