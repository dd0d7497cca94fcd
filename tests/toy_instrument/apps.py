"""Registers the toy with the registry of instruments."""

from django.apps import AppConfig


class ToyInstrumentConfig(AppConfig):
    name = "tests.toy_instrument"
    label = "toy_instrument"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey.contracts import instruments

        from .instrument import Toy

        instruments.register(Toy)
