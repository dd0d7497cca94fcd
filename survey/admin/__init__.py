"""Django admin for researchers. Imports models, services and the contracts; no instrument."""

from django.contrib import admin

from . import (  # noqa: F401 (each registers its pages)
    alerts,
    banks,
    comments,
    jobs,
    language_models,
    links,
    log_ins,
    logos,
    people,
    plans,
    postings,
    predictors,
    records,
    studies,
    study_file,
    users,
)

admin.site.site_header = "Hunch"
admin.site.site_title = "Hunch"
admin.site.enable_nav_sidebar = False  # Our tables need the width; the way back is in the breadcrumbs.
