"""How our own ways of logging in stand in the OpenAPI schema."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class ApiTokenScheme(OpenApiAuthenticationExtension):
    target_class = "survey.api.authentication.ApiTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token SECRET`; `manage.py create_token USER` or the admin makes one.",
        }


class SittingTokenScheme(OpenApiAuthenticationExtension):
    target_class = "survey.api.respondents.SittingToken"
    name = "sitting"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "X-Sitting-Token",
            "description": "The `token` that beginning the sitting returned.",
        }
