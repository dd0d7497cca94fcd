"""What instruments and panels must be, and where they are found by name. Leaves: no model, no service."""
