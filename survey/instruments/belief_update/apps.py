"""Makes the belief update known to the core."""

from django.apps import AppConfig


class BeliefUpdateConfig(AppConfig):
    name = "survey.instruments.belief_update"
    label = "belief_update"
    verbose_name = "belief update"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey.contracts import instruments

        from .instrument import BeliefUpdate

        instruments.register(BeliefUpdate)
