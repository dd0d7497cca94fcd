"""The proxy of docker-compose.yml: its own files, run by an nginx of this machine in front of our web process.

Only paths, ports and the address of web are local. The nginx of a distribution may be older than the image's and lacks
the module that fetches certificates, so what only newer ones know is left out here, line by line.
"""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from survey import gunicorn_config, settings
from tests.conftest import unavailable
from tests.infrastructure.test_request_worker import (
    Server,
    read_all,
    serving,
)
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parents[2]
PROXY = ROOT / "proxy"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICE = COMPOSE["services"]["proxy"]
NAMES = "localhost,study.example.org"
NEWER_ONLY = re.compile(r"(?m)^(load_module .*|\s*http2 on;|\s*resolver .*)$")


@dataclass
class Proxy:
    tls: int
    plain: int
    health: int
    folder: Path
    web: Server
    certificate: Path

    def connect(self, name: str = "localhost", *, source: str = "127.0.0.1", buffer: int = 0) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False
        sock = socket.socket()
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.settimeout(PATIENCE)
        sock.bind((source, 0))
        sock.connect(("127.0.0.1", self.tls))
        return context.wrap_socket(sock, server_hostname=name)

    def log(self) -> str:
        return (self.folder / "access.log").read_text() + (self.folder / "error.log").read_text()

    def kept(self) -> list[str]:
        """The files in which nginx keeps parts of requests and answers. They have no names any more."""
        first = (self.folder / "nginx.pid").read_text().strip()
        workers = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        assert len(workers) == 2
        files = [str(path.readlink()) for worker in workers for path in Path(f"/proc/{worker}/fd").iterdir()]
        return [name for name in files if name.startswith(str(self.folder / "temporary"))]

    def ask(
        self, path: str, method: str = "GET", *, source: str = "127.0.0.1", **options: Any
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect(source=source)
        try:
            connection.request(method, path, **options)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def filled(text: str, variables: dict[str, str]) -> str:
    """As the image's entry point does it: only variables that the filter lets through."""
    let_through = re.compile(SERVICE["environment"]["NGINX_ENVSUBST_FILTER"])
    return re.sub(r"\$\{(\w+)\}", lambda match: variables[match[1]] if let_through.search(match[1]) else match[0], text)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with started(tmp_path_factory.mktemp("proxy")) as running:
        yield running


def make_certificate(folder: Path) -> tuple[Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@contextmanager
def started(folder: Path, *, deadline: float = 60.0) -> Iterator[Proxy]:
    """The proxy in front of a web process that gives a slow client `deadline` seconds."""
    nginx = shutil.which("nginx")
    if nginx is None:
        unavailable("the proxy of docker-compose.yml: install nginx")
    folder.chmod(0o755)
    certificate, key = make_certificate(folder)
    tls, plain, health = free_ports(3)
    (folder / "temporary").mkdir(mode=0o777)
    with serving(folder, deadline=deadline) as web:
        local = {
            "/etc/nginx/conf.d": str(folder / "conf.d"),
            "/etc/nginx/certificates/fullchain.pem": str(certificate),
            "/etc/nginx/certificates/privkey.pem": str(key),
            "/run/nginx.pid": str(folder / "nginx.pid"),
            "/dev/stdout": str(folder / "access.log"),
            "/dev/stderr": str(folder / "error.log"),
            "server web:8000 resolve;": f"server 127.0.0.1:{web.address[1]};",
            "listen 443": f"listen 127.0.0.1:{tls}",
            "listen 80": f"listen 127.0.0.1:{plain}",
            "listen 127.0.0.1:8080": f"listen 127.0.0.1:{health}",
            "client_header_timeout 10s": "client_header_timeout 1s",
            "include /etc/nginx/mime.types;": "include /etc/nginx/mime.types;"
            + "".join(f" {name}_temp_path {folder}/temporary/{name};" for name in ("client_body", "proxy")),
        }
        names = NAMES.replace(",", " ")
        (folder / "conf.d" / "tls").mkdir(parents=True)
        for source, name in [
            ("nginx.conf", "nginx.conf"),
            ("hunch.conf.template", "conf.d/hunch.conf"),
            ("files/certificate.inc.template", "conf.d/tls/certificate.inc"),
        ]:
            text = filled((PROXY / source).read_text(encoding="utf-8"), {"HUNCH_NAMES": names})
            for ours, theirs in local.items():
                text = text.replace(ours, theirs)
            (folder / name).write_text(NEWER_ONLY.sub("", text), encoding="utf-8")
        user = f"user {'root' if os.getuid() == 0 else ''};" if os.getuid() == 0 else ""
        command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", f"daemon off; {user}"]
        check = subprocess.run([*command, "-t"], capture_output=True, text=True)
        assert check.returncode == 0, check.stderr
        script = ROOT / "survey/processes/die_with_parent.py"
        die_with_parent = [sys.executable, "-I", "-S", str(script), str(os.getpid())]
        process = subprocess.Popen([*die_with_parent, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        running = Proxy(tls, plain, health, folder, web, certificate)
        try:
            assert eventually(lambda: is_well(running)), (folder / "error.log").read_text()
            yield running
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def is_well(proxy: Proxy) -> bool:
    with suppress(OSError):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.health, timeout=PATIENCE)
        connection.request("GET", "/")
        return connection.getresponse().status == 204
    return False


pytestmark = pytest.mark.slow


def test_a_request_arrives_over_tls_with_the_clients_own_address(proxy: Proxy) -> None:
    status, _headers, body = proxy.ask("/a?PROLIFIC_PID=5f1a2b3c", headers={"X-Forwarded-For": "203.0.113.9"})
    said = json.loads(body)
    assert (status, said["path"], said["forwarded"]) == (200, "/a", ["https", "127.0.0.1", "localhost"])
    # Of a person's address the log has the network, and nothing of what a panel wrote into the query string.
    assert eventually(lambda: '127.0.0.0 "GET /a" 200' in proxy.log())
    assert "5f1a2b3c" not in proxy.log() and "127.0.0.1" not in proxy.log()


def test_no_control_character_of_a_request_reaches_the_log(proxy: Proxy) -> None:
    assert proxy.ask("/s/%1b%5b31mred%07%7f%c2%9b%0aGET")[0] == 200
    assert eventually(lambda: "31mred" in proxy.log())
    assert "\\x1B[31mred\\x07\\x7F\\xC2\\x9B\\x0AGET" in proxy.log()
    assert proxy.log().replace("\n", "").isprintable()


def test_a_body_is_passed_on_whole_and_within_the_limits_of_web(proxy: Proxy) -> None:
    status, _headers, body = proxy.ask("/s/demo/", "POST", body=iter([b"a" * 60_000] * 3), encode_chunked=True)
    assert (status, json.loads(body)["length"]) == (200, "180000")
    assert proxy.ask("/s/demo/", "POST", body=b"a" * 300_000)[0] == 413
    status, headers, body = proxy.ask("/api/v1/sittings/", "POST", body=b"a" * 300_000)
    assert (status, headers["Content-Type"]) == (413, "application/json")
    error = json.loads(body)["error"]
    assert (error["code"], len(error["request_id"])) == ("too_large", 32)
    assert str(settings.HUNCH_MAX_BODY) in error["message"]
    status, _headers, body = proxy.ask("/admin/survey/bank/", "POST", body=b"a" * 300_000)
    assert (status, json.loads(body)["size"]) == (200, 300_000)


def test_without_tls_one_is_sent_to_it_and_other_names_are_refused(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.plain, timeout=PATIENCE)
    connection.request("GET", "/s/demo/?a=1", headers={"Host": "study.example.org"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (308, "https://study.example.org/s/demo/?a=1")
    answer.read()
    connection.request("GET", "/", headers={"Host": "elsewhere.example.org"})
    assert connection.getresponse().status == 421
    with pytest.raises(ssl.SSLError):
        proxy.connect("elsewhere.example.org")
    assert proxy.ask("/", headers={"Host": "elsewhere.example.org"})[0] == 421


@pytest.mark.parametrize(
    "line", [b"GET /" + b"a" * 9_000 + b" HTTP/1.1", b"GET /\x01 HTTP/1.1", b"TRACE /api/ HTTP/1.1"]
)
def test_what_is_no_request_that_we_know_gets_the_apis_kind_of_error(proxy: Proxy, line: bytes) -> None:
    with proxy.connect() as sock:
        sock.sendall(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400") and b"application/json" in head
    assert json.loads(body)["error"]["code"] == "bad_request"


def upload(length: int = 20_000_000) -> bytes:
    head = f"POST /admin/survey/bank/add/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + b"a" * 1000


def test_the_proxy_keeps_nothing_of_what_is_sent_or_not_read(proxy: Proxy) -> None:
    """Its files are in its memory, of 256 MB: twenty uploads, or one slow reader of a large file, would end it."""
    with proxy.connect() as sender, proxy.connect(buffer=4096) as reader:
        sender.sendall(upload() + b"a" * 2_000_000)
        reader.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert reader.recv(12) == b"HTTP/1.1 200"
        assert eventually(lambda: '"GET /large" 200' in proxy.web.log.read_text())
        assert proxy.kept() == []
    assert len(proxy.ask("/large")[2]) == 12_000_000
    _status, _headers, body = eventually(
        lambda: (answer := proxy.ask("/admin/survey/bank/add/", "POST", body=b"a" * 20_000_000))[0] == 200 and answer
    )
    assert json.loads(body)["size"] == 20_000_000 and proxy.kept() == []


def test_an_address_may_send_two_large_files_at_a_time_and_all_together_eight(proxy: Proxy) -> None:
    def is_refused(source: str) -> bool:
        return proxy.ask("/admin/survey/bank/add/", "POST", body=b"a", source=source)[0] == 429

    with ExitStack() as stack:
        for number in (2, 3, 4, 5):
            for _ in range(2):
                stack.enter_context(proxy.connect(source=f"127.0.0.{number}")).sendall(upload())
            assert eventually(lambda number=number: is_refused(f"127.0.0.{number}"))
            assert is_refused("127.0.0.6") == (number == 5)
        assert proxy.ask("/admin/survey/bank/", "POST", body=b"a", source="127.0.0.2")[0] == 200
    assert eventually(lambda: not is_refused("127.0.0.6"))


def test_the_deadline_of_web_ends_a_body_that_drips(tmp_path_factory: pytest.TempPathFactory) -> None:
    """nginx alone would wait as long as a byte comes every ten seconds."""
    with started(tmp_path_factory.mktemp("impatient"), deadline=0.5) as running, running.connect() as sock:
        sock.sendall(upload())
        assert b"The request took too long to arrive" in read_all(sock)
        with running.connect() as other:
            other.sendall(
                upload().replace(b"/admin/survey/bank/add/", b"/api/v1/sittings/").replace(b"20000000", b"2000")
            )
            head, _, body = read_all(other).partition(b"\r\n\r\n")
        assert b"application/json" in head and json.loads(body)["error"]["code"] == "request_timeout"


def test_a_header_that_does_not_come_ends_the_connection(proxy: Proxy) -> None:
    with proxy.connect() as sock, suppress(ConnectionResetError):
        sock.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert read_all(sock).startswith((b"HTTP/1.1 408", b""))


@pytest.fixture(scope="module")
def without_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy whose web process has ended, so that it answers everything itself and at once."""
    with started(tmp_path_factory.mktemp("without-web")) as running:
        assert running.ask("/")[0] == 200
        running.web.process.kill()
        running.web.process.wait()
        assert eventually(lambda: running.ask("/s/demo/")[0] == 503)  # Its workers end a little later.
        yield running


@pytest.mark.thorough
def test_one_address_may_not_send_as_many_requests_as_it_likes(without_web: Proxy) -> None:
    begun = time.monotonic()
    with without_web.connect() as sock:
        sock.sendall(b"GET /s/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
        sock.sendall(b"GET /s/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answers = read_all(sock)
    most = 201 + 30 * (time.monotonic() - begun)  # A burst, and so many each second.
    assert 0 < answers.count(b"HTTP/1.1 503") <= most  # These were passed on to web, which is not there.
    assert answers.count(b"HTTP/1.1 503") + answers.count(b"HTTP/1.1 429") == 401
    assert answers.count(b"HTTP/1.1 429") > 0 and b"Retry-After: 5" in answers
    _status, headers, body = eventually(lambda: one_too_many(without_web))
    assert (headers["Content-Type"], headers["Retry-After"]) == ("application/json", "5")
    assert json.loads(body)["error"]["code"] == "throttled"


def one_too_many(proxy: Proxy) -> tuple[int, dict[str, str], bytes] | None:
    """The answer of the API to an address that has used up its requests."""
    with proxy.connect() as sock:
        sock.sendall(b"GET /s/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 250)
        sock.sendall(b"GET /s/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        read_all(sock)
    answer = proxy.ask("/api/v1/sittings/")
    return answer if answer[0] == 429 else None


def test_where_web_is_down_a_page_says_when_to_try_again(without_web: Proxy) -> None:
    _status, headers, body = eventually(lambda: (response := without_web.ask("/s/demo/"))[0] == 503 and response)
    assert (headers["Retry-After"], headers["Cache-Control"]) == ("10", "no-store")
    assert b"Wait ten seconds" in body
    _status, headers, body = eventually(lambda: (answer := without_web.ask("/api/v1/sittings/"))[0] == 503 and answer)
    assert (headers["Content-Type"], headers["Retry-After"]) == ("application/json", "10")
    assert json.loads(body)["error"]["code"] == "unavailable"


# The files, without an nginx


def directive(name: str, text: str | None = None) -> list[str]:
    text = (PROXY / "hunch.conf.template").read_text(encoding="utf-8") if text is None else text
    return re.findall(rf"(?m)^\s*{name} ([^;]+);", text)


def test_it_agrees_with_the_web_process_about_limits_and_time() -> None:
    assert directive("client_max_body_size") == ["256k", "20m", "1m"]
    assert (settings.HUNCH_MAX_BODY, settings.HUNCH_MAX_ADMIN_BODY) == (256 * 1024, 1024 * 1024)
    assert settings.HUNCH_MAX_UPLOAD_BODY == 20 * 1024 * 1024
    assert [int(value.removesuffix("s")) for value in directive("keepalive_timeout")][1] < gunicorn_config.keepalive


def test_every_file_that_the_service_mounts_is_there() -> None:
    mounted = [volume.rsplit(":", 2)[0] for volume in SERVICE["volumes"] if volume.startswith("./")]
    assert len(mounted) == 4
    for path in mounted:
        for kind in ("acme", "files"):
            assert (ROOT / re.sub(r"\$\{HUNCH_TLS[^}]*\}", kind, path)).exists(), path
    script = PROXY / "17-names.envsh"
    assert script.stat().st_mode & stat.S_IXUSR  # The entry point sources only what may be executed.
    names = subprocess.run(
        ["sh", "-c", f'. {script}; printf %s "$HUNCH_NAMES"'],
        env={"HUNCH_HOSTS": NAMES, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert names.stdout == "localhost study.example.org"


def test_every_variable_of_the_templates_is_given_to_the_container() -> None:
    named = {
        name
        for path in PROXY.rglob("*.template")
        for name in re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8"))
    }
    assert named == (set(SERVICE["environment"]) - {"NGINX_ENVSUBST_FILTER", "HUNCH_HOSTS"}) | {"HUNCH_NAMES"}


def test_every_image_that_is_not_ours_is_pinned_by_its_digest() -> None:
    images = [service["image"] for service in COMPOSE["services"].values() if not service["image"].startswith("hunch-")]
    images += re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert len(images) == 4
    assert all(re.fullmatch(r"[a-z]+:[\d.]+[\w.-]*@sha256:[0-9a-f]{64}", image) for image in images), images
