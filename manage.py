#!/usr/bin/env python
"""Hunch's commands from a checkout, as `hunch` is from an installed package: `python manage.py help` lists them."""

from survey.cli import main

if __name__ == "__main__":
    main()
