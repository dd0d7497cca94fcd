#!/bin/sh
# Prints every Python of 3.11 to 3.14 that runs here, one per line, best first: those on the path, then pyenv's.
# A name on the path is not enough: pyenv has names for versions that do not run, and Debian's Python may lack venv.
# Where the path has several of one name, the fastest comes first: a Python that was built without optimization, as
# pyenv builds them, takes a quarter longer for all that follows. Less than a tenth between two of them says nothing.
runs='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'
calls='import time
class Call:
    def __init__(self, value): self.value = value
    def answer(self): return self.value
def microseconds():
    started = time.process_time()
    for number in range(100_000): Call(number).answer()
    return round((time.process_time() - started) * 1e6)
print(min(microseconds() for _ in range(3)))'

on_the_path() {  # Those of this name that run, in the order of the path, each once.
  rest=$PATH: last=""
  while [ -n "$rest" ]; do
    python=${rest%%:*}/$1 rest=${rest#*:}
    [ -x "$python" ] && ! [ "$python" -ef "$last" ] && "$python" -c "$runs" 2> /dev/null || continue
    echo "$python"
    last=$python
  done
}

fastest_first() {
  best="" least=0
  for python in "$@"; do
    taken=$("$python" -c "$calls") || continue
    if [ -z "$best" ] || [ $((taken * 10)) -lt $((least * 9)) ]; then best=$python least=$taken; fi
  done
  echo "${best:=$1}"
  for python in "$@"; do [ "$python" = "$best" ] || echo "$python"; done
}

for name in python3.11 python3.12 python3.13 python3.14 python3; do
  found=$(on_the_path "$name")
  case $found in
    *"
"*) IFS='
'; fastest_first $found; unset IFS ;;
    ?*) echo "$found" ;;
  esac
done
for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1234].*/bin/python; do
  "$python" -c "$runs" 2> /dev/null && echo "$python"
done
exit 0
