"""The documents of docs/ as pages of the site at /docs/, with a search: offline, for everybody, without a build.

markdown-it-py renders a page when somebody opens it. They hold no data of a study, so nobody logs in for them.
"""
