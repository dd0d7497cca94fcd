"""Writes the locks in requirements/ from the files *.in there: each package once, with its hashes.

    .venv/bin/python tools/lock.py                  # the newest of everything
    .venv/bin/python tools/lock.py --package httpx  # the newest httpx, and of what it needs only what must change

`make lock` calls it. Everything is resolved together. Each lock then names the locks that it rests on (`-r`), and has
what they lack: ml.lock rests on web.lock, dev.lock on all.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
# Each lock with those that it rests on. Extras are installed with either of web and ml, torch after ml.
RESTS_ON = {"web": (), "ml": ("web",), "extras": ("web",), "dev": ("ml", "extras")}
LINUX = ("--python-platform", "linux", "--override", "overrides.txt")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", help="upgrade this package alone")
    package = parser.parse_args(arguments).package
    with tempfile.TemporaryDirectory(dir=REQUIREMENTS) as folder:
        everything = Path(folder) / "all.txt"
        # uv keeps the versions that stand in its output file.
        present = [block for name in RESTS_ON for block in blocks_of(name).values()]
        everything.write_text("".join(present), encoding="utf-8")
        upgrade = ("--upgrade-package", package) if package else ("--upgrade",)
        resolve("dev.in", everything, *LINUX, *upgrade, "--generate-hashes")
        resolved = blocks_of(everything)
        names = {name: _names_in(f"{name}.in", everything) for name in RESTS_ON}
        (torch,) = re.findall(r"(?m)^TORCH_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
        wanted, with_torch = Path(folder) / "torch.in", Path(folder) / "torch.txt"
        wanted.write_text(f"torch=={torch}\n", encoding="utf-8")
        with_torch.write_text("".join(blocks_of("torch").values()), encoding="utf-8")
        options = ("--universal", "--generate-hashes", "--no-annotate", "-c", str(everything))
        resolve(str(wanted), with_torch, *options, *upgrade)
        cuda = {name: block for name, block in blocks_of(with_torch).items() if name not in names["ml"]}
    for name, below in RESTS_ON.items():
        rest = names[name].difference(*(names[other] for other in below))
        head = "".join(f"-r {other}.lock\n" for other in below)
        (REQUIREMENTS / f"{name}.lock").write_text(
            head + "".join(block for package, block in resolved.items() if package in rest), encoding="utf-8"
        )
    (REQUIREMENTS / "torch.lock").write_text("".join(cuda.values()), encoding="utf-8")


def resolve(source: str, target: Path, *options: str) -> None:
    """Let uv resolve a file of requirements/ into `target`, whose versions it keeps unless an option says otherwise."""
    command = ["-m", "uv", "pip", "compile", "--quiet", "--no-header", "--python-version", "3.11", *options]
    subprocess.run([sys.executable, *command, "-o", str(target), source], cwd=REQUIREMENTS, check=True)


def _names_in(source: str, everything: Path) -> set[str]:
    """What a file of requirements/ needs, with what that needs."""
    target = everything.with_name(f"{source}.txt")
    resolve(source, target, *LINUX, "-c", str(everything))
    return set(blocks_of(target))


def blocks_of(lock: str | Path) -> dict[str, str]:
    """Each package of a lock, or of a file, with its lines: version, hashes, and what needs it."""
    path = REQUIREMENTS / f"{lock}.lock" if isinstance(lock, str) else lock
    packages = re.findall(r"(?m)^(([a-z0-9][\w.-]*)==.*\n(?:[ \t].*\n)*)", path.read_text(encoding="utf-8"))
    return {name: block for block, name in packages}


if __name__ == "__main__":
    main(sys.argv[1:])
