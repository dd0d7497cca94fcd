"""The WSGI entry that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")

application = get_wsgi_application()

from django.urls import get_resolver  # noqa: E402 (needs the settings)

from survey.storage import database  # noqa: E402 (needs the settings)

database.serve_pages()
# Every page, the admin's too, so that no request waits until they are loaded.
get_resolver().url_patterns  # noqa: B018
