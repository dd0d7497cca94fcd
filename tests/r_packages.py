"""Whether R and a package of it are there."""

import shutil
import subprocess
from functools import cache


@cache
def is_installed(package: str) -> bool:
    """Looked up and not loaded, which takes a second."""
    if (program := shutil.which("Rscript")) is None:
        return False
    look = f'quit(status = !nzchar(system.file(package = "{package}")))'
    return subprocess.run([program, "-e", look], capture_output=True, check=False).returncode == 0
