"""Who may see and change whom, each way there is; and what the audit says of it."""

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from survey.models import AuditEntry, Bank, Study
from survey.services.base.auditing import actor_of
from survey.services.studies import members
from tests import cast

from .conftest import client_of

USERS = "/admin/auth/user/"
PASSWORD = "a long and odd sentence 7"


@pytest.fixture
def manager(db: None) -> User:
    """May see, add and change users, and is no superuser."""
    user = User.objects.create_user("manager", is_staff=True)
    names = ("view_user", "add_user", "change_user", "view_group", "change_group", "add_group", "delete_group")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def as_manager(manager: User) -> Client:
    return client_of(manager)


@pytest.fixture
def helper(db: None) -> User:
    """Has no permission."""
    return User.objects.create_user("helper", last_name="Featherstonehaugh", is_staff=True, password=PASSWORD)


def page(user: User) -> str:
    return f"{USERS}{user.pk}/change/"


def change(client: Client, user: User, **values: Any) -> Any:
    fields = {
        "username": user.username,
        "is_active": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00",
        **values,
    }
    return client.post(page(user), {name: value for name, value in fields.items() if value is not None})


def entry(action: str) -> AuditEntry:
    return AuditEntry.objects.get(action=action)


def test_others_see_no_superuser(as_manager: Client, superuser: User, helper: User) -> None:
    listed = as_manager.get(USERS).context["cl"].queryset
    assert helper in listed and superuser not in listed
    for address in (page(superuser), f"{USERS}{superuser.pk}/history/", f"{USERS}{superuser.pk}/password/"):
        response = as_manager.get(address)
        assert response.status_code in (302, 403, 404), address


def test_others_change_no_superuser_and_no_password_of_one(as_manager: Client, superuser: User) -> None:
    change(as_manager, superuser, first_name="other", is_active=None)
    as_manager.post(f"{USERS}{superuser.pk}/password/", {"password1": PASSWORD, "password2": PASSWORD})
    as_manager.post(f"{USERS}{superuser.pk}/delete/", {"post": "yes"})
    superuser.refresh_from_db()
    assert superuser.is_active and superuser.first_name == "" and not superuser.has_usable_password()


def test_nobody_lifts_themselves(as_manager: Client, manager: User, superuser: User) -> None:
    group = Group.objects.create(name="strong")
    wanted = Permission.objects.get(codename="see_panel_identity")
    group.permissions.add(wanted)
    before = set(manager.user_permissions.all())
    change(as_manager, manager, is_superuser="on", user_permissions=[wanted.pk], groups=[group.pk], first_name="me")
    manager.refresh_from_db()
    assert manager.first_name == "me" and manager.is_staff and not manager.is_superuser
    assert set(manager.user_permissions.all()) == before and not manager.groups.exists()


def test_others_give_no_rights_to_anybody(as_manager: Client, helper: User) -> None:
    User.objects.filter(pk=helper.pk).update(is_staff=False)
    wanted = Permission.objects.get(codename="view_user")
    change(as_manager, helper, is_staff="on", is_superuser="on", user_permissions=[wanted.pk], first_name="ours")
    helper.refresh_from_db()
    assert helper.first_name == "ours"
    assert not helper.is_staff and not helper.is_superuser and not helper.user_permissions.exists()


def test_the_form_for_new_users_gives_no_rights(as_manager: Client) -> None:
    added = {"username": "new", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    assert as_manager.post(f"{USERS}add/", {**added, "is_superuser": "on", "is_staff": "on"}).status_code == 302
    new = User.objects.get(username="new")
    assert not new.is_staff and not new.is_superuser and new.check_password(PASSWORD)
    assert entry("add_user").detail == {"given": ["active"], "taken": []}


def test_others_change_nobody_who_may_do_more(as_manager: Client, researcher: User, helper: User) -> None:
    """Anyone who sets a password can log in with it."""
    new = {"password1": PASSWORD + "!", "password2": PASSWORD + "!", "usable_password": "true"}
    for active in (True, False):
        User.objects.filter(pk=researcher.pk).update(is_active=active)
        assert as_manager.post(f"{USERS}{researcher.pk}/password/", new).status_code == 403
        assert change(as_manager, researcher, is_active="on").status_code == 403
    assert as_manager.post(f"{USERS}{helper.pk}/password/", new).status_code == 302
    helper.refresh_from_db()
    assert helper.check_password(PASSWORD + "!")
    assert entry("change_password").subject == actor_of(helper)
    assert entry("change_password").actor == actor_of(User.objects.get(username="manager"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theirs", "mine", "may"),
    [
        (None, None, True),
        (("viewer", False), None, False),
        (("owner", True), None, False),
        (("analyst", False), ("viewer", False), False),
        (("analyst", True), ("owner", False), False),
        (("viewer", False), ("owner", True), True),
        (("analyst", True), ("editor", True), True),
        (("owner", False), ("owner", False), True),
    ],
)
def test_others_change_nobody_who_may_do_more_in_a_study(
    theirs: Any, mine: Any, may: bool, as_manager: Client, manager: User, helper: User
) -> None:
    """Neither a password nor a name, an address or whether the account works, of who is in the second study."""
    for user, slug, member in (
        (manager, "first", ("owner", True)),
        (helper, "second", theirs),
        (manager, "second", mine),
    ):
        study = Study.objects.filter(slug=slug).first() or cast.small_study(slug)
        if member is not None:
            members.set_member(study, user=user, role=member[0], may_spend=member[1])
    new = {"password1": PASSWORD + "!", "password2": PASSWORD + "!", "usable_password": "true"}
    for active in (True, False):
        User.objects.filter(pk=helper.pk).update(is_active=active)
        assert as_manager.post(f"{USERS}{helper.pk}/password/", new).status_code == (302 if may else 403)
        changed = change(as_manager, helper, username="ours", email="me@example.org", is_active="on")
        assert changed.status_code == (302 if may else 403)
        helper.refresh_from_db()
        assert helper.check_password(PASSWORD + "!") == may
        assert (helper.username, helper.is_active) == (("ours", True) if may else ("helper", active))


def test_others_change_nobody_who_has_a_bank_of_their_own(as_manager: Client, manager: User, helper: User) -> None:
    bank = cast.bank()
    new = {"password1": PASSWORD + "!", "password2": PASSWORD + "!", "usable_password": "true"}
    for owner, status in ((helper, 403), (manager, 302)):
        Bank.objects.filter(pk=bank.pk).update(created_by=owner)
        assert as_manager.post(f"{USERS}{helper.pk}/password/", new).status_code == status


def test_only_superusers_change_groups(as_manager: Client, as_superuser: Client) -> None:
    group = Group.objects.create(name="readers")
    wanted = Permission.objects.get(codename="view_user")
    address = f"/admin/auth/group/{group.pk}/change/"
    fields = {"name": "readers", "permissions": [wanted.pk]}
    assert as_manager.get(address).status_code == 200
    assert as_manager.post(address, fields).status_code == 403
    assert as_manager.post("/admin/auth/group/add/", {**fields, "name": "x"}).status_code == 403
    deleted = {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"}
    as_manager.post("/admin/auth/group/", deleted)
    assert as_manager.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Group.objects.filter(name="readers").exists() and not group.permissions.exists()
    assert as_superuser.post(address, fields).status_code == 302
    assert entry("change_group").detail == {"given": ["auth.view_user"], "taken": []}
    assert as_superuser.post("/admin/auth/group/", deleted).status_code == 302
    assert entry("delete_group").detail == {"taken": ["auth.view_user"]}


def test_no_list_action_deletes_users(as_superuser: Client, helper: User) -> None:
    as_superuser.post(USERS, {"action": "delete_selected", "_selected_action": [helper.pk], "post": "yes"})
    assert User.objects.filter(pk=helper.pk).exists()


def test_superusers_alone_are_offered_what_helps_with_a_log_in(as_superuser: Client, as_manager: Client) -> None:
    form = as_superuser.get("/admin/auth/user/").context["action_form"]
    assert form.fields["action"].choices[1:] == [
        ("unlock_users", "Unlock: let them try to log in again at once"),
        ("remove_second_factors", "Remove their codes: they have lost the device"),
    ]
    assert as_manager.get("/admin/auth/user/").context["action_form"] is None


def test_a_superusers_changes_of_rights_are_written_down(as_superuser: Client, superuser: User, helper: User) -> None:
    helper.groups.add(Group.objects.create(name="old"))
    wanted = Permission.objects.get(codename="view_user")
    change(as_superuser, helper, is_superuser="on", user_permissions=[wanted.pk], is_active="on")
    written = entry("change_user")
    assert (written.actor, written.via, written.subject) == (actor_of(superuser), "admin", actor_of(helper))
    assert written.detail == {"given": ["auth.view_user", "superuser"], "taken": ["group old", "staff"]}
    change(as_superuser, helper, is_superuser="on", user_permissions=[wanted.pk], first_name="no right")
    assert AuditEntry.objects.filter(action="change_user").count() == 1


# Logging in and out


def log_in(client: Client, name: str = "helper", password: str = PASSWORD) -> Any:
    return client.post("/admin/login/", {"username": name, "password": password})


def test_logging_in_and_out_is_written_down(helper: User, client: Client) -> None:
    assert log_in(client).status_code == 302
    assert (entry("log_in").actor, entry("log_in").via) == (actor_of(helper), "admin")
    assert entry("log_in").detail["address"] == "127.0.0.1"
    client.post("/admin/logout/")
    assert entry("log_out").actor == actor_of(helper)


def test_a_failure_is_written_down_and_never_what_was_typed(helper: User, client: Client) -> None:
    assert log_in(client, password="wrong secret").status_code == 200
    assert log_in(client, name="my secret password").status_code == 200
    written = entry("fail_to_log_in")
    assert (written.actor, written.subject, written.detail) == ("", actor_of(helper), {"address": "127.0.0.1"})
    rows = [*AuditEntry.objects.values(), *AccessAttempt.objects.values()]
    assert len(rows) == 3 and not any("secret" in str(row) or "helper" in str(row.get("username")) for row in rows)


def test_a_password_of_ones_own_is_changed_and_logs_out_elsewhere(helper: User, client: Client) -> None:
    elsewhere = Client()
    log_in(client)
    log_in(elsewhere)
    new = "another odd sentence 8"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/admin/password_change/", {**fields, "old_password": "wrong"}).status_code == 200
    assert not AuditEntry.objects.filter(action="change_password").exists()
    assert client.post("/admin/password_change/", fields).status_code == 302
    assert (entry("change_password").actor, entry("change_password").subject) == (actor_of(helper), actor_of(helper))
    assert client.get("/admin/").status_code == 200
    assert elsewhere.get("/admin/").status_code == 302


@pytest.mark.parametrize("password", ["short1!", "featherstonehaug7", "123456789012345", "password1234"])
def test_a_weak_password_is_refused(password: str, as_superuser: Client, helper: User) -> None:
    fields = {"password1": password, "password2": password, "usable_password": "true"}
    assert as_superuser.post(f"{USERS}{helper.pk}/password/", fields).status_code == 200
    helper.refresh_from_db()
    assert helper.check_password(PASSWORD)


def test_a_log_in_ends_after_a_working_day_and_gets_a_new_key(helper: User, client: Client) -> None:
    planted = client.session
    planted.save()
    client.cookies["sessionid"] = planted.session_key
    log_in(client)
    cookie = client.cookies["sessionid"]
    assert cookie.value != planted.session_key and not planted.exists(planted.session_key)
    assert (cookie["max-age"], cookie["httponly"], cookie["samesite"]) == (12 * 3600, True, "Lax")
