"""The bases of the admin's pages, under the name by which packages from outside import them."""

from survey.admin_base.read_only_admin import *  # noqa: F403
