#!/bin/sh
# Prints every Python of 3.11 to 3.14 that runs here, one per line, best first: those on the path, then pyenv's.
# A name on the path is not enough: pyenv has names for versions that do not run, and Debian's Python may lack venv.
for python in python3.11 python3.12 python3.13 python3.14 python3 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1234].*/bin/python; do
  "$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2> /dev/null \
    && echo "$python"
done
exit 0
