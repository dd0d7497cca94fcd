"""Registers own answers with the core."""

from django.apps import AppConfig


class OwnAnswersConfig(AppConfig):
    name = "survey.instruments.own_answers"
    label = "own_answers"
    verbose_name = "own answers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey.contracts import instruments

        from .instrument import OwnAnswers

        instruments.register(OwnAnswers)
