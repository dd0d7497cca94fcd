"""How requests reach the application: a gunicorn worker of our own. Imports gunicorn and settings; no model."""
