"""Members of studies, invitations, and what a token may do.

Present accounts keep what they could do: their permissions stay as they are and still limit them, and here each gets
the smallest role that does not take anything away. It holds for the studies of today; later ones have their own members.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

import survey.models.audit

OWNER, EDITOR, ANALYST, VIEWER = "owner", "editor", "analyst", "viewer"
# What only an editor may do or see.
OF_EDITORS = {
    *("run_study", "amend_study", "make_links", "recruit", "see_panel_identity", "withdraw_people"),
    *("view_posting", "view_submission", "view_paymentbatch", "view_panelidentity"),
}
OF_ANALYSTS = {
    *("export_study", "view_respondent", "view_sitting", "view_assignment", "view_response", "view_questionreport"),
    *("view_withdrawal", "view_booklet", "view_auditentry"),
}
SPENDING = {"recruit", "pay_people"}


def make_members(apps, schema_editor):
    Study, StudyMembership = apps.get_model("survey", "Study"), apps.get_model("survey", "StudyMembership")
    studies = list(Study.objects.values_list("pk", "created_by"))
    rows = [
        StudyMembership(study_id=study, user_id=owner, role=OWNER, may_spend=True)
        for study, owner in studies
        if owner is not None
    ]
    owners = set(studies)
    for user, held in _permissions_of_users(apps).items():
        role, may_spend = _role(held), bool(held & SPENDING)
        if role is not None:
            rows += [
                StudyMembership(study_id=study, user_id=user, role=role, may_spend=may_spend)
                for study, _owner in studies
                if (study, user) not in owners
            ]
    StudyMembership.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)


def _role(held):
    if held & OF_EDITORS:
        return EDITOR
    if held & OF_ANALYSTS:
        return ANALYST
    return VIEWER if held & SPENDING or any(name.startswith("view_") for name in held) else None


def _permissions_of_users(apps):
    """The permissions of our rows that each account has by itself or by a group; superusers need no role."""
    User = apps.get_model(settings.AUTH_USER_MODEL)
    Permission, Group = apps.get_model("auth", "Permission"), apps.get_model("auth", "Group")
    ours = dict(Permission.objects.filter(content_type__app_label="survey").values_list("pk", "codename"))
    groups = {}
    for group, permission in Group.permissions.through.objects.values_list("group", "permission"):
        groups.setdefault(group, set()).add(permission)
    found = {}
    for user, permission in User.user_permissions.through.objects.values_list("user", "permission"):
        found.setdefault(user, set()).add(permission)
    for user, group in User.groups.through.objects.values_list("user", "group"):
        found.setdefault(user, set()).update(groups.get(group, ()))
    superusers = set(User.objects.filter(is_superuser=True).values_list("pk", flat=True))
    return {
        user: {ours[key] for key in keys if key in ours} for user, keys in found.items() if user not in superusers
    }


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0016_second_factor'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='StudyInvitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('role', models.CharField(choices=[('owner', 'owner'), ('editor', 'editor'), ('analyst', 'analyst'), ('viewer', 'viewer')], max_length=8)),
                ('may_spend', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['study', 'id'],
            },
        ),
        migrations.CreateModel(
            name='StudyMembership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'owner'), ('editor', 'editor'), ('analyst', 'analyst'), ('viewer', 'viewer')], max_length=8)),
                ('may_spend', models.BooleanField(default=False, help_text='Publish at a panel, approve, pay bonuses.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['study', 'id'],
            },
        ),
        migrations.AddField(
            model_name='apitoken',
            name='expires_at',
            field=models.DateTimeField(default=survey.models.audit.end_of_new_tokens),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='for_all_studies',
            field=models.BooleanField(default=True, help_text="All of its user's studies, later ones as well."),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='scope',
            field=models.CharField(choices=[('read', 'read'), ('run', 'read and run')], default='read', max_length=4),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='studies',
            field=models.ManyToManyField(blank=True, help_text='Otherwise these alone.', related_name='+', to='survey.study'),
        ),
        migrations.AddConstraint(
            model_name='apitoken',
            constraint=models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'run'])), name='api_token_scope_known'),
        ),
        migrations.AddField(
            model_name='studyinvitation',
            name='accepted_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='studyinvitation',
            name='invited_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='studyinvitation',
            name='study',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='survey.study'),
        ),
        migrations.AddField(
            model_name='studymembership',
            name='study',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='survey.study'),
        ),
        migrations.AddField(
            model_name='studymembership',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='study_memberships', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='studyinvitation',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'editor', 'analyst', 'viewer'])), name='study_invitation_role_known'),
        ),
        migrations.AddConstraint(
            model_name='studyinvitation',
            constraint=models.CheckConstraint(condition=models.Q(('accepted_at__isnull', True), ('revoked_at__isnull', True), _connector='OR'), name='study_invitation_accepted_or_revoked'),
        ),
        migrations.AddConstraint(
            model_name='studymembership',
            constraint=models.UniqueConstraint(fields=('study', 'user'), name='study_membership_once_a_user'),
        ),
        migrations.AddConstraint(
            model_name='studymembership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'editor', 'analyst', 'viewer'])), name='study_membership_role_known'),
        ),
        migrations.RunPython(make_members, migrations.RunPython.noop),
    ]
