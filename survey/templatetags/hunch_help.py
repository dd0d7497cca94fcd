"""Links from pages to the documents: `{% help_link "panels.md#adding-a-panel" "How to add a panel" %}`."""

from django import template

from survey.documents import addresses

register = template.Library()
register.simple_tag(addresses.help_address)
register.simple_tag(addresses.help_link)
