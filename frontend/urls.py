"""Addresses of the respondent's pages under /s/."""

from django.urls import path

from . import views

app_name = "frontend"
urlpatterns = [
    path("<slug:slug>/", views.welcome, name="welcome"),
    path("<slug:slug>/consent", views.consent, name="consent"),
    path("<slug:slug>/resume", views.resume, name="resume"),
    path("<slug:slug>/sitting", views.sitting, name="sitting"),
    path("<slug:slug>/report", views.report, name="report"),
    path("<slug:slug>/back", views.back, name="back"),
    path("<slug:slug>/beacon", views.beacon, name="beacon"),
]
