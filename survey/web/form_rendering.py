"""How the inputs of forms are rendered, in pages and in the admin."""

from functools import cached_property
from typing import Any

from django.forms.renderers import BaseRenderer, DjangoTemplates
from django.template import TemplateDoesNotExist, engines


class FormRenderer(BaseRenderer):
    """By Jinja2 where it has a template of the widget, as it has of Django's own ones; otherwise as Django does it."""

    @cached_property
    def _otherwise(self) -> BaseRenderer:
        return DjangoTemplates()

    def get_template(self, template_name: str) -> Any:
        try:
            return engines["pages"].get_template(template_name)
        except TemplateDoesNotExist:
            return self._otherwise.get_template(template_name)
