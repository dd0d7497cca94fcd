"""The OpenAPI document of the API. Anyone who asks gets the same one, so each process makes it once."""

import threading
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

_LOCK = threading.Lock()


class DocumentView(SpectacularAPIView):
    """It takes no account, and making and writing it takes more than a second. So no request makes it again, and
    neither a language nor a version in the address asks for another one."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponse:
        renderer: Any = request.accepted_renderer
        with _LOCK:  # Who asks meanwhile waits for what the first one makes.
            content = _written(renderer.__class__)
        named = {"Content-Disposition": f'inline; filename="hunch.{renderer.format}"'}
        return HttpResponse(content, content_type=f"{renderer.media_type}; charset=utf-8", headers=named)


@cache
def _written(renderer: type[BaseRenderer]) -> bytes | str:
    return renderer().render(_document(), renderer.media_type, {})


@cache
def _document() -> dict[str, Any]:
    with translation.override(settings.LANGUAGE_CODE):
        document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return document
