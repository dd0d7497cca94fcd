"""Template filters of the admin pages."""
