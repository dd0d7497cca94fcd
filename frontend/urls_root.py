"""The page at the root, and files that belong to no study."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.root, name="root"),
    path("logo/<slug:name>.png", views.logo, name="logo"),
    path("tokens/<str:sha256>", views.tokens, name="tokens"),
]
