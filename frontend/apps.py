"""The respondent's pages as a Django app: templates and static files, no models."""

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    name = "frontend"
    label = "frontend"
    verbose_name = "Respondent's pages"
