"""`manage.py members SLUG`: who may do what in a study, and changing it from the shell."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.figures.rendering import aligned
from survey.models import Study, StudyMembership
from survey.services.base.groups import ensure_researchers_group
from survey.services.studies import lookup, members


class Command(HunchCommand):
    help = "Show a study's members; add or change one, or remove one. docs/rights.md says what each role may do."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        what = parser.add_subparsers(dest="what", metavar="WHAT")
        setting = what.add_parser("set", help="make an account a member, or give a member another role")
        setting.add_argument("username", metavar="USER")
        setting.add_argument("role", choices=StudyMembership.Role.values)
        setting.add_argument("--may-spend", action="store_true", help="publish at a panel, approve, pay bonuses")
        what.add_parser("remove", help="the last owner stays").add_argument("username", metavar="USER")

    def handle(self, *args: Any, slug: str, what: str | None = None, **options: Any) -> None:
        study = lookup.find_study(slug)
        if what == "set":
            self._set(study, options["username"], options["role"], may_spend=options["may_spend"])
        elif what == "remove":
            member = study.memberships.filter(user__username=options["username"]).first()
            if member is None:
                raise NotFound(f"{study} has no member {options['username']!r}")
            members.remove_member(member)
        rows = [
            [str(membership.user), membership.role, "yes" if membership.may_spend else "no"]
            for membership in study.memberships.select_related("user").order_by("pk")
        ]
        self.stdout.write(aligned(["who", "role", "may spend"], rows) if rows else "nobody: superusers alone see it")

    def _set(self, study: Study, username: str, role: str, *, may_spend: bool) -> None:
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise NotFound(f"no active user is called {username!r}; the admin makes one")
        members.set_member(study, user=user, role=role, may_spend=may_spend)
        if not user.has_perm("survey.view_study"):
            user.groups.add(ensure_researchers_group())
            self.stderr.write(f"{username} is in the group researchers now, which every role presumes")
