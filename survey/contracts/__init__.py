"""What instruments and panels must provide, and where to find them by name. Imports no model and no service."""
