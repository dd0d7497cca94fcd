"""The group of researchers: they run studies, export answers and see everything except who a panel's people are."""

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db.models import Q

from survey.contracts.apps import InstrumentApp

RESEARCHERS = "researchers"
# In addition to viewing: make studies and banks, run and export studies, flag questions, make their
# own tokens, ask language models, recruit at a panel, make links for a lab. Paying bonuses needs a permission that is
# given to single users.
DO = (
    *("add_study", "add_bank", "run_study", "export_study", "change_question", "add_apitoken"),
    *("collect_answers", "recruit", "make_links"),
)


def ensure_researchers_group() -> Group:
    """Make the group, or give it exactly these permissions; safe to call again after an update. The rows of instruments
    that other packages bring can be viewed as well."""
    ours = [
        config.label
        for config in apps.get_app_configs()
        if config.name.split(".")[0] == "survey" or isinstance(config, InstrumentApp)
    ]
    group, _created = Group.objects.get_or_create(name=RESEARCHERS)
    group.permissions.set(
        Permission.objects.filter(content_type__app_label__in=ours)
        .exclude(content_type__model="panelidentity")
        .filter(Q(codename__startswith="view_") | Q(codename__in=DO))
    )
    return group
