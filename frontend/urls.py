"""Addresses of the respondent's pages under /s/."""

from django.urls import URLPattern

app_name = "frontend"
urlpatterns: list[URLPattern] = []
