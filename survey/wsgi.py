"""The WSGI entry that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")

application = get_wsgi_application()

from survey import database  # noqa: E402 (needs the settings)

database.serve_pages()
