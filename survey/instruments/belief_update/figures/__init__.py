"""Pictures. Each module imports matplotlib when it draws; no web process loads them."""
