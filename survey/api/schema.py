"""What we add to the OpenAPI schema: the ways of logging in, and what each refusal means."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

REFUSALS = {
    400: "The body or the query does not have the form that this address expects.",
    401: "No token, or one that is unknown, was revoked or has expired.",
    403: "Not for this person: see `code`.",
    404: "There is nothing with that name.",
    409: "Not possible yet: the step was not reached, or the study is not far enough.",
    410: "It was there and is no longer kept: ask for it again.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "Answers that were not accepted, by field. Nothing was stored; the step is still the same.",
    503: "Not possible at the moment: see `code`. Nothing is lost: send the same again after `Retry-After`.",
    429: "Too many requests or people from one address; `Retry-After` says when.",
}


class ApiTokenScheme(OpenApiAuthenticationExtension):
    target_class = "survey.api.authentication.ApiTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token SECRET`; `hunch create_token USER` or the admin makes one.",
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
