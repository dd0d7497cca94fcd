"""The page at the root."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
