"""Nets: whole ways through commands, pages, sittings and money, whose words, files and rows are compared with recorded
ones. A net says that something is another one now, not whether it is right: read the diff before you renew it."""
