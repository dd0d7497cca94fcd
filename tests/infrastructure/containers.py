"""What a container engine makes of docker-compose.yml: each service's user, mounts and read-only root.

The rules are those of the compose specification, Docker and runc. A tmpfs over a folder of the image takes that
folder's mode, and root owns it; options after its path replace both. A new named volume takes owner and mode of the
image's folder. `enclosed` runs a command like that on this machine, without an engine.
"""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
TOOLS = ("unshare", "mount", "chroot", "setpriv", "env")


@dataclass(frozen=True)
class Folder:
    uid: int
    gid: int
    mode: int

    def may_be_written(self, uid: int, gid: int) -> bool:
        bits = self.mode >> (6 if uid == self.uid else 3 if gid == self.gid else 0)
        return bits & 0o3 == 0o3


@dataclass(frozen=True)
class Mount:
    path: str
    kind: str  # tmpfs, volume or bind
    folder: Folder
    is_read_only: bool = False


def our_user() -> int:
    (name,) = re.findall(r"(?m)^USER (\w+)$", DOCKERFILE)
    (uid,) = re.findall(rf"useradd --system --uid (\d+) [\w -]*\b{name}\b", DOCKERFILE)
    return int(uid)


def our_folders() -> dict[str, Folder]:
    """What the Dockerfile makes, in addition to what is in every image."""
    uid = our_user()
    made = re.findall(r"install -d -o hunch -g hunch -m (\d+) (\S+)", DOCKERFILE)
    return {"/tmp": Folder(0, 0, 0o1777)} | {path: Folder(uid, uid, int(mode, 8)) for mode, path in made}


# The Dockerfiles of docker-library and of nginx make these.
THEIR_FOLDERS = {
    "postgres": {
        "/tmp": Folder(0, 0, 0o1777),
        "/run/postgresql": Folder(999, 999, 0o3777),
        "/var/lib/postgresql/data": Folder(999, 999, 0o1777),
    },
    "redis": {"/tmp": Folder(0, 0, 0o1777), "/data": Folder(999, 999, 0o755)},
    "nginx": {
        "/tmp": Folder(0, 0, 0o1777),
        "/run": Folder(0, 0, 0o755),
        "/etc/nginx/conf.d": Folder(0, 0, 0o755),
        "/var/cache/nginx": Folder(0, 0, 0o755),
    },
}


def folders_of(service: dict[str, Any]) -> dict[str, Folder]:
    name = service["image"].partition(":")[0]
    return our_folders() if name.startswith("hunch-") else THEIR_FOLDERS[name]


def user_of(service: dict[str, Any]) -> tuple[int, int]:
    """The numbers of user and group: those that compose names, else those of the image."""
    if "user" in service:
        uid, gid = service["user"].split(":")
        return int(uid), int(gid)
    return (our_user(), our_user()) if service["image"].startswith("hunch-") else (0, 0)


def mounts_of(service: dict[str, Any]) -> list[Mount]:
    image = folders_of(service)
    mounts = []
    for entry in service.get("tmpfs", ()):
        path, _colon, options = entry.partition(":")
        named = dict(option.split("=") for option in options.split(",") if option)
        assert set(named) <= {"uid", "gid", "mode", "size"}, entry
        mode = image[path].mode if path in image else 0o1777
        folder = Folder(int(named.get("uid", 0)), int(named.get("gid", 0)), int(named.get("mode", f"{mode:o}"), 8))
        mounts.append(Mount(path, "tmpfs", folder))
    for entry in service.get("volumes", ()):
        source, path, *options = re.sub(r"\$\{[^}]*\}", "./", entry).split(":")
        kind = "bind" if source.startswith((".", "/")) else "volume"
        mounts.append(Mount(path, kind, image.get(path, Folder(0, 0, 0o755)), options == ["ro"]))
    return mounts


@cache
def why_not() -> str:
    """Why this machine cannot run a command enclosed; empty where it can."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"there is no {missing[0]}"
    tried = subprocess.run(
        enclosed(["true"], [], user=(our_user(), our_user()), visible={}), capture_output=True, text=True
    )
    return tried.stderr.strip() if tried.returncode else ""


def enclosed(
    command: list[str], mounts: list[Mount], *, user: tuple[int, int], visible: dict[str, str], volume: str = ""
) -> list[str]:
    """The command line that runs `command` in /app as `user`, without capabilities, on a read-only root with `mounts`.

    `visible`: files and folders of this machine by their path there. `volume`: the folder that is the named volume.
    """
    lines = ["set -e", "mount --make-rprivate /", "new=/media", "mount -t tmpfs -o mode=0755 tmpfs $new"]

    def bind(source: str, path: str, *, writable: bool = False) -> None:
        inside, outside = f"$new{shlex.quote(path)}", shlex.quote(source)
        make = f"mkdir -p {inside}" if Path(source).is_dir() else f"mkdir -p $(dirname {inside}); touch {inside}"
        lines.append(f"{make}; mount --rbind {outside} {inside}")
        if not writable:
            lines.append(f"mount -o remount,bind,ro {inside}")

    for name in ("bin", "sbin", "lib", "lib64", "usr", "etc"):
        if Path("/", name).is_symlink():
            lines.append(f"ln -s {Path('/', name).readlink()} $new/{name}")
        elif Path("/", name).exists():
            bind(f"/{name}", f"/{name}")
    bind("/dev", "/dev", writable=True)
    bind("/proc", "/proc", writable=True)
    for mount in mounts:
        inside, folder = f"$new{mount.path}", mount.folder
        if mount.kind == "volume":
            bind(volume, mount.path, writable=True)
            lines.append(f"chown {folder.uid}:{folder.gid} {inside}; chmod {folder.mode:04o} {inside}")
        elif mount.kind == "tmpfs":
            options = f"noexec,nosuid,nodev,uid={folder.uid},gid={folder.gid},mode={folder.mode:04o}"
            lines.append(f"mkdir -p {inside}; mount -t tmpfs -o {options} tmpfs {inside}")
    bind(str(ROOT), "/app")
    for path in dict.fromkeys([sys.base_prefix, sys.prefix]):
        bind(path, path)
    for path, source in visible.items():
        bind(source, path, writable=True)
    rights = f"--reuid={user[0]} --regid={user[1]} --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs"
    lines.append("mount -o remount,bind,ro $new")
    lines.append(f"exec chroot $new setpriv {rights} env -C /app -- {shlex.join(command)}")
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines)]
