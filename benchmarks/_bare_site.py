"""A Django view that does no more than a page of a survey must: what our pages are held against.

Our settings and middleware, a page of the same size, and per answer one locked row, one inserted row, one commit. It is
a settings module, a URL configuration and its views in one, since a benchmark needs no more.
"""

from survey.settings import *  # noqa: F403  (a settings module takes all of another)

ROOT_URLCONF = "_bare_urls"
