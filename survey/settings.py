"""Settings: one flat file, read from the environment. A bad value stops the start and names its variable.

With HUNCH_ENV unset Hunch runs on this machine alone: loopback hosts, SQLite, an embedded Redis, keys made on first
run. With HUNCH_ENV=production it refuses to start without its secrets, hosts and PostgreSQL. All run-time files live
under HUNCH_VAR.
"""

import base64
import binascii
import contextlib
import hashlib
import importlib.util
import os
import re
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import django
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from survey.contracts.apps import brought_apps
from survey.processes import background, queues
from survey.storage.paths import BASE_DIR, IS_INSTALLED

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

# Readers: each refuses what it cannot use, with the variable's name and the fix.


def read_text(name: str, default: str = "") -> str:
    """The variable's exact value; empty counts as unset. (An Env reader would read a leading $ as another variable.)"""
    return os.environ.get(name, "").strip() or default


def read_choice(name: str, choices: tuple[str, ...], default: str) -> str:
    value = read_text(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name}: {value!r} is not known; use one of: {', '.join(choices)}")
    return value


def read_flag(name: str, *, default: bool) -> bool:
    value = read_text(name, "true" if default else "false").lower()
    if value not in ("true", "false", "1", "0", "yes", "no"):
        raise ImproperlyConfigured(f"{name}: {value!r} is neither true nor false")
    return value in ("true", "1", "yes")


def read_number(name: str, *, default: int, lowest: int, highest: int) -> int:
    value = read_text(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}: {value!r} is not a whole number") from None
    if not lowest <= number <= highest:
        raise ImproperlyConfigured(f"{name}: {number} is not between {lowest} and {highest}")
    return number


def read_required(name: str, fix: str) -> str:
    value = read_text(name)
    if not value:
        raise ImproperlyConfigured(f"{name} is not set, and HUNCH_ENV=production needs it: {fix}")
    return value


def read_or_make_key(path: Path) -> str:
    """The key in this file; made (0600) if there is none. Several processes may start at once and must agree on one."""
    if path.exists():
        return path.read_text(encoding="ascii").strip()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mkstemp: O_EXCL and 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(base64.urlsafe_b64encode(os.urandom(32)).decode("ascii") + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another process was faster: a key that is in use is never replaced
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()
    return path.read_text(encoding="ascii").strip()


def check_identity_key(value: str) -> str:
    try:
        length = len(base64.b64decode(value.encode("ascii"), altchars=b"-_", validate=True))
    except (UnicodeEncodeError, binascii.Error):
        length = 0
    if length != 32:
        raise ImproperlyConfigured(
            "HUNCH_IDENTITY_KEY: not 32 bytes in URL-safe base64; make one with: "
            'python -c "import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())"'
        )
    return value


def read_service_url(name: str, default: str) -> str:
    """Scheme and host of a service. Without TLS it must be on this machine, since every call carries a token."""
    value = read_text(name, default).rstrip("/")
    parts = urlsplit(value)
    is_loopback = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if (
        not parts.hostname
        or parts.path
        or parts.query
        or (parts.scheme, is_loopback)
        not in (
            ("https", True),
            ("https", False),
            ("http", True),
        )
    ):
        raise ImproperlyConfigured(f"{name}: write https://HOST, or http://127.0.0.1:PORT for the fake panel")
    return value


def read_token(name: str) -> str:
    """A secret for a header; empty if there is none."""
    value = read_text(name)
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ImproperlyConfigured(f"{name}: holds a character that no token has; copy it again")
    return value


def read_secret_address(name: str) -> str:
    """An https address of somebody else's service; empty if there is none. It may hold a token: no log names it."""
    value = read_token(name)
    if value and (urlsplit(value).scheme != "https" or not urlsplit(value).hostname):
        raise ImproperlyConfigured(f"{name}: write https://HOST/PATH")
    return value


def read_compute(name: str) -> str:
    """The address of a Dask scheduler, dask://HOST:PORT or with TLS dask+tls://HOST:PORT; empty for threads alone."""
    value = read_text(name)
    if not value:
        return ""
    parts = urlsplit(value)
    try:
        is_place = bool(parts.hostname and parts.port)
    except ValueError:  # The port is no number, or too large.
        is_place = False
    rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in ("dask", "dask+tls") or not is_place or rest:
        # Without the value: it may hold a password.
        raise ImproperlyConfigured(f"{name}: write dask://HOST:PORT of a Dask scheduler, or dask+tls://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}"


def read_storage(name: str, default: Path) -> tuple[str, dict[str, Any]]:
    """Where the files of predictors and plans are: as a text that may be shown, and as Django's settings of a storage.

    file:///PATH, or s3://BUCKET/FOLDER?endpoint=https://HOST&region=NAME. No message shows the value: it may hold a
    password.
    """
    value = read_text(name)
    parts = urlsplit(value or default.as_uri())
    if parts.scheme != "file" and "@" in unquote(value):
        raise ImproperlyConfigured(
            f"{name}: holds an @, so perhaps a password, which logs would show; leave it out and set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY"
        )
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        if parts.netloc or parts.query or parts.fragment or not folder.is_absolute() or ".." in folder.parts:
            raise ImproperlyConfigured(f"{name}: write file:///PATH, with three slashes and the whole path")
        modes = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        options: dict[str, Any] = {"location": folder, **modes}
        return folder.as_uri(), {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}
    fix = f"{name}: write file:///PATH, or s3://BUCKET/FOLDER?endpoint=https://HOST&region=NAME"
    folder_names = [folder for folder in unquote(parts.path).split("/") if folder]
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme != "s3" or parts.fragment or not BUCKET_NAME.fullmatch(parts.netloc) or ".." in folder_names:
        raise ImproperlyConfigured(fix)
    if set(query) - {"endpoint", "region"} or any(len(values) != 1 or not values[0] for values in query.values()):
        raise ImproperlyConfigured(f"{fix}; nothing but endpoint and region may follow the ?, each once")
    endpoint, region = (query.get(key, [""])[0] for key in ("endpoint", "region"))
    place = urlsplit(endpoint)
    if endpoint and (place.scheme not in ("https", "http") or not place.hostname or place.query or place.fragment):
        raise ImproperlyConfigured(f"{name}: endpoint: write https://HOST or https://HOST:PORT")
    if region and not re.fullmatch(r"[a-z0-9-]+", region):
        raise ImproperlyConfigured(f"{name}: region: write a name such as eu-central-1")
    location = "/".join(folder_names)
    options = {
        "bucket_name": parts.netloc,
        "location": location,
        "endpoint_url": endpoint.rstrip("/") or None,
        "region_name": region or None,
    }
    description = (
        f"s3://{parts.netloc}" + (f"/{location}" if location else "") + (f" at {endpoint}" if endpoint else "")
    )
    return description, {"BACKEND": "survey.storage.s3_storage.Bucket", "OPTIONS": options}


def need_package(module: str, *, name: str, extra: str) -> None:
    """Refuse a setting whose package is not installed, without loading it."""
    if importlib.util.find_spec(module) is None:
        raise ImproperlyConfigured(f'{name}: needs a package that is not installed; run: pip install "hunch[{extra}]"')


def read_email(name: str) -> dict[str, Any]:
    """Django's e-mail settings for smtp+tls://USER:PASSWORD@HOST:PORT; without a value no e-mail is sent."""
    value = read_text(name)
    if not value:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    try:
        config: dict[str, Any] = Env.email_url_config(value)
        if urlsplit(value).scheme not in ("smtp", "smtp+tls", "smtp+ssl") or not config["EMAIL_HOST"]:
            raise ValueError
    except (ImproperlyConfigured, ValueError):  # Their words hold the address, and with it the password.
        raise ImproperlyConfigured(f"{name}: write smtp+tls://USER:PASSWORD@HOST:587 (or smtp+ssl, smtp)") from None
    config["EMAIL_PORT"] = config["EMAIL_PORT"] or {"smtp+tls": 587, "smtp+ssl": 465}.get(urlsplit(value).scheme, 25)
    return config


def read_shared_secret(name: str, *, shortest: int = 32) -> str:
    """A secret that signatures are made with; empty if there is none. A short one could be guessed from a signature."""
    value = read_token(name)
    if value and len(value) < shortest:
        raise ImproperlyConfigured(f"{name}: {len(value)} characters are too few; use at least {shortest} random ones")
    return value


def read_database(url: str) -> dict[str, Any]:
    """Django's database settings for sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        config: dict[str, Any] = Env.db_url_config(url)
        if urlsplit(url).netloc or config["NAME"] == ":memory:":
            raise ImproperlyConfigured("DATABASE_URL: write sqlite:///PATH; web and workers must share one file")
        config["NAME"] = str(Path(config["NAME"]).resolve())
        # Immediate: a transaction that reads first and writes later would fail at once under a second writer.
        # FULL: an answer that a respondent has seen stored must outlive a power cut.
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
        }
        config["TEST"] = {"NAME": str(HUNCH_VAR / "test.sqlite3")}  # a file: worker processes share it
        return config
    if scheme in ("postgresql", "postgres"):
        config = Env.db_url_config(url)
        config["ENGINE"] = "django.db.backends.postgresql"
        config["CONN_MAX_AGE"] = 60
        config["CONN_HEALTH_CHECKS"] = True
        return config
    raise ImproperlyConfigured("DATABASE_URL: use sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME")


@dataclass(frozen=True)
class DatabaseLimits:
    """Seconds until PostgreSQL ends a statement, the wait for a lock, and a transaction that does nothing; 0: never."""

    statement: int
    lock: int
    idle_transaction: int

    @property
    def milliseconds(self) -> dict[str, int]:
        return {
            "statement_timeout": 1000 * self.statement,
            "lock_timeout": 1000 * self.lock,
            "idle_in_transaction_session_timeout": 1000 * self.idle_transaction,
        }

    def as_options(self) -> str:
        """As libpq takes them when it connects."""
        return "".join(f" -c {name}={value}" for name, value in self.milliseconds.items())


# How often a statement is sent before PostgreSQL keeps its plan. Only statements of respondents' pages are alike each
# time (survey/services/base/compiled.py).
PREPARED_AFTER = 2

# A database that does not answer must fail soon, so that a page can say so. libpq reads texts.
DATABASE_NETWORK = {
    "connect_timeout": "5",  # seconds
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # milliseconds until what was sent must have arrived
}


def connect_as(config: dict[str, Any], *, limits: DatabaseLimits, reuse: str) -> dict[str, Any]:
    """Database settings with limits and a way to reuse connections; SQLite has neither."""
    if config["ENGINE"] != "django.db.backends.postgresql":
        if reuse != "kept":
            raise ImproperlyConfigured("HUNCH_DATABASE_REUSE: only PostgreSQL knows prepared statements and pools")
        return config
    options = config["OPTIONS"] = {**DATABASE_NETWORK, **config.get("OPTIONS", {})}
    options["application_name"] = HUNCH_APPLICATION_NAME
    options["options"] = (str(options.get("options", "")) + limits.as_options()).strip()
    if reuse == "prepared":
        options["prepare_threshold"] = PREPARED_AFTER
    if reuse == "pool":
        # A pool keeps the connections itself, and Django refuses to keep them too.
        options["pool"] = {"min_size": 1, "max_size": HUNCH_WEB_THREADS + 1, "timeout": 10}
        config["CONN_MAX_AGE"] = 0
    return config


def short_run_folder(folder: Path) -> Path:
    """A folder for sockets: a socket's path may have 107 bytes, so a deep checkout gets one under the temporary dir."""
    if len(str(folder / "redis.sock").encode()) <= 100:
        return folder
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"hunch-{os.getuid()}-{digest}"


def celery_broker_url(url: str) -> str:
    """The address of the same Redis as kombu writes it."""
    parts = urlsplit(url)
    if parts.scheme in ("redis", "rediss"):
        return url
    if parts.scheme == "unix" and parts.path:
        query = f"?{parts.query.replace('db=', 'virtual_host=')}" if parts.query else ""
        return f"redis+socket://{parts.netloc}{parts.path}{query}"
    raise ImproperlyConfigured("REDIS_URL: use redis://HOST:PORT/DB, rediss://… or unix:///PATH/TO/SOCKET")


# Where we are

HUNCH_ENV = read_choice("HUNCH_ENV", ("local", "production"), "local")
IN_PRODUCTION = HUNCH_ENV == "production"
# What a run writes never goes among installed packages, but into the folder where somebody calls `hunch`.
HUNCH_VAR = Path(read_text("HUNCH_VAR", str((Path.cwd() if IS_INSTALLED else BASE_DIR) / "var"))).resolve()
HUNCH_VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
# Where large files are while they are read or sent: the usual temporary folder of a container is in its memory.
FILE_UPLOAD_TEMP_DIR = HUNCH_VAR / "tmp"
FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
HUNCH_STUDY_DATA = Path(read_text("HUNCH_STUDY_DATA", str(BASE_DIR / "../shared/data"))).resolve()

DEBUG = False
if IN_PRODUCTION:
    SECRET_KEY = read_required("SECRET_KEY", "set it to at least 50 random characters")
    if len(SECRET_KEY) < 50:
        raise ImproperlyConfigured(f"SECRET_KEY: {len(SECRET_KEY)} characters are too few; use at least 50 random ones")
    HUNCH_IDENTITY_KEY = check_identity_key(
        read_required("HUNCH_IDENTITY_KEY", "set it to 32 random bytes in URL-safe base64 and keep a copy")
    )
    ALLOWED_HOSTS = read_required("HUNCH_HOSTS", "set it to the host names, with commas between").split(",")
    ALLOWED_HOSTS = [host.strip() for host in ALLOWED_HOSTS]
    if "*" in ALLOWED_HOSTS or "" in ALLOWED_HOSTS:
        raise ImproperlyConfigured("HUNCH_HOSTS: name each host; * and empty names are not allowed")
    CSRF_TRUSTED_ORIGINS = [f"https://*{host}" if host.startswith(".") else f"https://{host}" for host in ALLOWED_HOSTS]
else:
    SECRET_KEY = read_text("SECRET_KEY") or read_or_make_key(HUNCH_VAR / "secret_key")
    HUNCH_IDENTITY_KEY = check_identity_key(
        read_text("HUNCH_IDENTITY_KEY") or read_or_make_key(HUNCH_VAR / "identity_key")
    )
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    if read_text("HUNCH_HOSTS"):
        raise ImproperlyConfigured("HUNCH_HOSTS: only read with HUNCH_ENV=production; otherwise Hunch is loopback only")

# Keys that signatures were made with before: what they signed stays valid.
SECRET_KEY_FALLBACKS = [key.strip() for key in read_text("SECRET_KEY_FALLBACKS").split(",") if key.strip()]
# Which keys the environment names: a restore cannot replace these.
HUNCH_KEYS_SET = [name for name in ("SECRET_KEY", "HUNCH_IDENTITY_KEY") if read_text(name)]
# What was erased, kept apart from the database: a restore reads it. Best on another disk.
HUNCH_ERASURES = Path(read_text("HUNCH_ERASURES", str(HUNCH_VAR / "erasures.jsonl"))).resolve()
HUNCH_BACKUP_PASSPHRASE = read_text("HUNCH_BACKUP_PASSPHRASE")

HUNCH_PORT = read_number("HUNCH_PORT", default=8000, lowest=1, highest=65535)
HUNCH_SCORING_THREADS = read_number("HUNCH_SCORING_THREADS", default=0, lowest=0, highest=256)
# Machines that go through all scores in place of this one's threads.
HUNCH_COMPUTE = read_compute("HUNCH_COMPUTE")
if HUNCH_COMPUTE:
    need_package("distributed", name="HUNCH_COMPUTE", extra="dask")
# On one core a second process only takes turns with the first.
HUNCH_WEB_WORKERS = read_number("HUNCH_WEB_WORKERS", default=min(2, background.cores()), lowest=1, highest=64)
# Threads of a web process answer whole requests. Python runs one at a time, so more than two only add waiting.
HUNCH_WEB_THREADS = read_number("HUNCH_WEB_THREADS", default=2, lowest=1, highest=16)
# A worker that trains leaves the machine to the pages: nice 15, and all cores but one.
HUNCH_BACKGROUND = read_flag("HUNCH_BACKGROUND", default=False)
HUNCH_HEARTBEAT = read_text("HUNCH_HEARTBEAT")  # the file that this worker or beat touches while it is well

# Whether researchers log in with a code of an app too: who wants to, or all of them.
HUNCH_TOTP = read_choice("HUNCH_TOTP", ("optional", "required"), "optional")

# The panel. Without a token we never call it; without a webhook secret we accept no event from it.

HUNCH_PROLIFIC_TOKEN = read_token("HUNCH_PROLIFIC_TOKEN")
HUNCH_PROLIFIC_URL = read_service_url("HUNCH_PROLIFIC_URL", "https://api.prolific.com")
HUNCH_PROLIFIC_WORKSPACE = read_text("HUNCH_PROLIFIC_WORKSPACE")  # Signed entry links must come from it, where set.
HUNCH_PROLIFIC_WEBHOOK_SECRET = read_token("HUNCH_PROLIFIC_WEBHOOK_SECRET")
HUNCH_GENERIC_SECRET = read_shared_secret("HUNCH_GENERIC_SECRET")  # with which generic panels sign entry addresses
# With which we sign the addresses that lead back to them. Panels make this key, so that its length is theirs.
HUNCH_GENERIC_CLOSING_SECRET = read_shared_secret("HUNCH_GENERIC_CLOSING_SECRET", shortest=16)

# The watch: beat looks every minute whether all works, tells people, and pauses postings.

HUNCH_PAUSE_AFTER_MINUTES = read_number("HUNCH_PAUSE_AFTER_MINUTES", default=5, lowest=0, highest=1440)
HUNCH_NO_ARRIVALS_MINUTES = read_number("HUNCH_NO_ARRIVALS_MINUTES", default=60, lowest=0, highest=10080)
# At most so often is the picture of a running study made, however many look at it.
HUNCH_LIVE_SECONDS = read_number("HUNCH_LIVE_SECONDS", default=5, lowest=0, highest=3600)
HUNCH_CAP_ALERT_PERCENT = read_number("HUNCH_CAP_ALERT_PERCENT", default=90, lowest=1, highest=101)
HUNCH_RETURNS_ALERT_PERCENT = read_number("HUNCH_RETURNS_ALERT_PERCENT", default=30, lowest=1, highest=101)
HUNCH_DISK_ALERT_MB = read_number("HUNCH_DISK_ALERT_MB", default=2048, lowest=0, highest=1_000_000)
HUNCH_ALERT_REPEAT_HOURS = read_number("HUNCH_ALERT_REPEAT_HOURS", default=6, lowest=1, highest=168)
HUNCH_ALERT_EMAILS = [address.strip() for address in read_text("HUNCH_ALERT_EMAILS").split(",") if address.strip()]
HUNCH_ALERT_WEBHOOK = read_secret_address("HUNCH_ALERT_WEBHOOK")
HUNCH_ALERT_WEBHOOK_SECRET = read_shared_secret("HUNCH_ALERT_WEBHOOK_SECRET")
# Whether a study's webhooks may lead into our own network, and without TLS: for tests and receivers next door.
HUNCH_WEBHOOKS_INSIDE = read_flag("HUNCH_WEBHOOKS_INSIDE", default=False)
HUNCH_PING_URL = read_secret_address("HUNCH_PING_URL")
HUNCH_WATCH_WEB = read_text("HUNCH_WATCH_WEB").rstrip(
    "/"
)  # where beat reaches the web process, such as http://web:8000
if HUNCH_WATCH_WEB and not HUNCH_WATCH_WEB.startswith(("http://", "https://")):
    raise ImproperlyConfigured("HUNCH_WATCH_WEB: write http://HOST:PORT of the web process, as beat reaches it")
HUNCH_METRICS_TOKEN = read_shared_secret("HUNCH_METRICS_TOKEN")
HUNCH_METRICS_STUDIES = read_flag("HUNCH_METRICS_STUDIES", default=False)
_email = read_email("HUNCH_EMAIL_URL")
EMAIL_BACKEND = _email["EMAIL_BACKEND"]
EMAIL_HOST = _email.get("EMAIL_HOST", "")
EMAIL_PORT = _email.get("EMAIL_PORT", 25)
EMAIL_HOST_USER = _email.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _email.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = _email.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _email.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = SERVER_EMAIL = read_text("HUNCH_EMAIL_FROM", "hunch@localhost")
if HUNCH_ALERT_EMAILS and not EMAIL_HOST:
    raise ImproperlyConfigured("HUNCH_ALERT_EMAILS: e-mail needs a server; set HUNCH_EMAIL_URL too")
if not all("@" in address and address.isprintable() for address in [*HUNCH_ALERT_EMAILS, DEFAULT_FROM_EMAIL]):
    raise ImproperlyConfigured("HUNCH_ALERT_EMAILS, HUNCH_EMAIL_FROM: write addresses such as you@example.org")

# What is installed. An instrument of ours is one line here; other packages name theirs in an entry point.

INSTALLED_APPS = [
    "survey.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "django_htmx",  # Its static file alone.
    "survey.apps.SurveyConfig",
    "survey.instruments.belief_update.apps.BeliefUpdateConfig",
    "survey.instruments.own_answers.apps.OwnAnswersConfig",
    "survey.instruments.preference.apps.PreferenceConfig",
    "survey.instruments.cloze.apps.ClozeConfig",
    "survey.instruments.next_token.apps.NextTokenConfig",
    "survey.instruments.token_comparison.apps.TokenComparisonConfig",
    "survey.instruments.self_paced_reading.apps.SelfPacedReadingConfig",
    "frontend.apps.FrontendConfig",
]
_brought, HUNCH_BROKEN_INSTRUMENTS = brought_apps(INSTALLED_APPS)
INSTALLED_APPS += _brought

MIDDLEWARE = [
    "survey.web.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "survey.web.middleware.PolicyMiddleware",
    "survey.web.middleware.NoStoreMiddleware",
    "survey.web.middleware.BodyLimitMiddleware",
    "frontend.outages.OutageMiddleware",
    "survey.web.middleware.InstrumentMissingMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "survey.web.middleware.LanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "survey.web.middleware.SecondFactorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "survey.urls"
WSGI_APPLICATION = "survey.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        # The respondent's pages, which are rendered at each step; and the inputs of their forms.
        "NAME": "pages",
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [Path(django.__file__).parent / "forms/jinja2"],
        "APP_DIRS": True,
        "OPTIONS": {"environment": "frontend.jinja2_environment.environment"},
    },
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],  # Ours before those of Django's admin.
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

FORM_RENDERER = "survey.web.form_rendering.FormRenderer"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "admin:login"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
OTP_TOTP_ISSUER = "Hunch"

# Who fails to log in too often has to wait: 10 times from one address, or 100 times from all (survey/web/lockout.py).
AXES_HANDLER = "survey.web.lockout.Lockout"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], ["username"]]
AXES_FAILURE_LIMIT = 10
HUNCH_FAILURES_OF_A_NAME = 100
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # Who goes on trying would lock the account for good.
AXES_CLIENT_IP_CALLABLE = "survey.web.lockout.counted_address"
AXES_USERNAME_CALLABLE = "survey.web.lockout.counted_name"
AXES_CLIENT_STR_CALLABLE = "survey.web.lockout.logged_as"
AXES_LOCKOUT_CALLABLE = "survey.web.lockout.locked_out"
AXES_DISABLE_ACCESS_LOG = True  # The audit has it.
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
CSRF_FAILURE_VIEW = "frontend.views.csrf_failure"

# Database

DATABASE_URL = read_text("DATABASE_URL", f"sqlite:///{HUNCH_VAR / 'hunch.sqlite3'}")
DAY = 24 * 3600
HUNCH_APPLICATION_NAME = "hunch"  # as PostgreSQL lists our connections
# What serves a page waits briefly. Jobs (commands, workers, migrations, exports) may take long.
HUNCH_PAGE_LIMITS = DatabaseLimits(
    statement=read_number("HUNCH_PAGE_STATEMENT_TIMEOUT", default=30, lowest=0, highest=DAY),
    lock=read_number("HUNCH_PAGE_LOCK_TIMEOUT", default=10, lowest=0, highest=DAY),
    idle_transaction=read_number("HUNCH_PAGE_IDLE_TIMEOUT", default=60, lowest=0, highest=DAY),
)
HUNCH_JOB_LIMITS = DatabaseLimits(
    statement=read_number("HUNCH_JOB_STATEMENT_TIMEOUT", default=3600, lowest=0, highest=DAY),
    lock=read_number("HUNCH_JOB_LOCK_TIMEOUT", default=60, lowest=0, highest=DAY),
    idle_transaction=read_number("HUNCH_JOB_IDLE_TIMEOUT", default=900, lowest=0, highest=DAY),
)
# kept: each thread keeps its connection. prepared: PostgreSQL also keeps the plans of the statements of pages. pool:
# threads share connections. Never two of them at once.
_database = read_database(DATABASE_URL)
HUNCH_DATABASE_REUSE = read_choice(
    "HUNCH_DATABASE_REUSE",
    ("kept", "prepared", "pool"),
    "prepared" if _database["ENGINE"] == "django.db.backends.postgresql" else "kept",
)
DATABASES = {"default": connect_as(_database, limits=HUNCH_JOB_LIMITS, reuse=HUNCH_DATABASE_REUSE)}
if IN_PRODUCTION and DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured("DATABASE_URL: HUNCH_ENV=production needs postgresql://USER:PASSWORD@HOST:PORT/NAME")

# Safety of pages

MEGABYTE = 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = MEGABYTE
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000  # the builder of a study with fifty stages stays below
DATA_UPLOAD_MAX_NUMBER_FILES = 5
HUNCH_MAX_BODY = MEGABYTE // 4  # survey pages, API, and anyone who is not logged in: a form has a few hundred bytes
HUNCH_MAX_ADMIN_BODY = MEGABYTE  # the largest form is the one with a study file, whose letters a form writes longer
# A file with a bank. It is kept until it is confirmed, or for an hour.
HUNCH_MAX_UPLOAD_BODY = 20 * MEGABYTE

# A working day after the log-in, whatever was done since. Only researchers log in.
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
# same-origin and not no-referrer: under that one browsers post with "Origin: null", which the CSRF check refuses.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],  # Swagger UI draws its arrows with data: images
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

HUNCH_BEHIND_PROXY = read_flag("HUNCH_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HUNCH_BEHIND_PROXY else None
SECURE_SSL_REDIRECT = IN_PRODUCTION
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # asked from inside the container, without TLS
SESSION_COOKIE_SECURE = IN_PRODUCTION
CSRF_COOKIE_SECURE = IN_PRODUCTION
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if IN_PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IN_PRODUCTION

# Files

STATIC_URL = "static/"
# On a laptop the files are served from where they lie, without a collectstatic.
STATIC_ROOT = (HUNCH_VAR if IS_INSTALLED else BASE_DIR) / "staticfiles" if IN_PRODUCTION else None
WHITENOISE_USE_FINDERS = not IN_PRODUCTION
# Predictors and plans. Workers on other machines must find them: a shared folder, or a bucket.
HUNCH_STORAGE_URL, _files = read_storage("HUNCH_STORAGE_URL", HUNCH_VAR / "files")
if HUNCH_STORAGE_URL.startswith("s3://"):
    need_package("storages", name="HUNCH_STORAGE_URL", extra="s3")
    need_package("boto3", name="HUNCH_STORAGE_URL", extra="s3")
STORAGES = {
    "default": _files,
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if IN_PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# Language and time

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
FORMAT_MODULE_PATH = ["survey.formats"]

# REST

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "survey.api.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["survey.api.parsing.PlainJSONParser"],
    "URL_FORMAT_OVERRIDE": None,  # ?format= means nothing here
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.AnonRateThrottle",
        "rest_framework.throttling.UserRateThrottle",
    ],
    # Per address and process. A lab or a campus may share one address: 30 people need about 60 requests per minute.
    "DEFAULT_THROTTLE_RATES": {"anon": "6000/min", "user": "6000/min"},
    "NUM_PROXIES": 1 if HUNCH_BEHIND_PROXY else 0,  # otherwise a client could choose its own address
    "EXCEPTION_HANDLER": "survey.exceptions.api_exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hunch",
    "DESCRIPTION": "Staged surveys of what people expect of language models.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    # Names of lists of choices: two fields are called `state`.
    "ENUM_NAME_OVERRIDES": {
        "StageStateEnum": ["draft", "planned", "open", "paused", "closing", "frozen"],
        "ReceiverKindEnum": ["webhook", "email"],
        "WorkStateEnum": ["queued", "running", "done", "failed"],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# A short memory of each process, so that no request of a respondent needs Redis. It may be empty at any time: what is
# counted exactly is a row. Large enough that made-up people cannot push the panel's keys out of it.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}

# Redis and Celery. State lives in our rows: Redis may forget everything.

HUNCH_RUN = short_run_folder(HUNCH_VAR / "run")  # sockets, heartbeats
HUNCH_EMBEDDED_REDIS = not read_text("REDIS_URL")
REDIS_URL = read_text("REDIS_URL", f"unix://{HUNCH_RUN / 'redis.sock'}")

ML_TIME_LIMIT = 12 * 3600  # seconds
CELERY_BROKER_URL = celery_broker_url(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": ML_TIME_LIMIT + 3600,  # longer than any task, or Redis hands a running one out again
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
}
CELERY_VISIBILITY_TIMEOUT = ML_TIME_LIMIT + 3600
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker waits for Redis as long as it takes
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
# The queue of a step depends on what it does: `run_due_steps` names it.
CELERY_TASK_ROUTES = {
    "survey.tasks.run_ml_step": {"queue": queues.TRAIN},
    "survey.tasks.help_with_scoring": {"queue": queues.SCORE},
    "survey.tasks.run_collection": {"queue": queues.COLLECT},
}
CELERY_TASK_ACKS_LATE = False  # a lost message costs nothing: the sweeper finds the row
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SOFT_TIME_LIMIT = 240
CELERY_TASK_ANNOTATIONS = {
    "survey.tasks.run_ml_step": {"time_limit": ML_TIME_LIMIT, "soft_time_limit": ML_TIME_LIMIT - 300},
    "survey.tasks.help_with_scoring": {"time_limit": ML_TIME_LIMIT, "soft_time_limit": ML_TIME_LIMIT - 300},
    "survey.tasks.run_collection": {"time_limit": ML_TIME_LIMIT, "soft_time_limit": ML_TIME_LIMIT - 300},
    # On the default queue, since training may hold the other one for hours. A million answers take some minutes.
    "survey.tasks.compute_estimates": {"time_limit": 3600, "soft_time_limit": 3300},
    "survey.tasks.run_job": {"time_limit": 3600, "soft_time_limit": 3300},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False  # early acks: nothing would run twice
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0  # seconds; each process of a spawned pool imports everything again
CELERY_BEAT_SCHEDULE_FILENAME = str(HUNCH_VAR / "beat-schedule")
# Each message expires before many more follow, so that they do not pile up while the workers are down.
CELERY_BEAT_SCHEDULE = {
    "run-due-steps": {"task": "survey.tasks.run_due_steps", "schedule": 2.0, "options": {"expires": 10}},
    "expire-sittings": {"task": "survey.tasks.expire_sittings", "schedule": 30.0, "options": {"expires": 60}},
    "look-at-stages": {"task": "survey.tasks.look_at_stages", "schedule": 60.0, "options": {"expires": 60}},
    # Webhooks get lost, so we also ask the panel regularly. Without a token both do nothing.
    "work-on-webhooks": {"task": "survey.tasks.work_on_webhooks", "schedule": 5.0, "options": {"expires": 10}},
    # Alerts of studies, to who wants to know.
    "send-events": {"task": "survey.tasks.send_events", "schedule": 5.0, "options": {"expires": 10}},
    "read-panels": {"task": "survey.tasks.read_panels", "schedule": 300.0, "options": {"expires": 300}},
    "look-after-data": {"task": "survey.tasks.look_after_data", "schedule": 3600.0, "options": {"expires": 3600}},
    "seal-audit": {"task": "survey.tasks.seal_audit", "schedule": 5.0, "options": {"expires": 10}},
    "check-audit": {"task": "survey.tasks.check_audit", "schedule": 3600.0, "options": {"expires": 3600}},
    "expire-jobs": {"task": "survey.tasks.expire_jobs", "schedule": 600.0, "options": {"expires": 600}},
    "sweep-leases": {"task": "survey.tasks.sweep_leases", "schedule": 15.0, "options": {"expires": 30}},
}

# Logs: one record a line on stdout, without what would name a person.

HUNCH_LOG_LEVEL = read_choice("HUNCH_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
SENTRY_DSN = read_secret_address("SENTRY_DSN")
HUNCH_LOG = read_choice("HUNCH_LOG", ("plain", "json"), "plain")
_formatters = {"plain": "survey.logs.log_format.LineFormatter", "json": "survey.logs.log_format.JsonFormatter"}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": _formatters[HUNCH_LOG]}},
    "handlers": {"console": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": HUNCH_LOG_LEVEL},
    "loggers": {
        "django": {"handlers": ["console"], "level": HUNCH_LOG_LEVEL, "propagate": False},
        "django.server": {"handlers": ["console"], "level": HUNCH_LOG_LEVEL, "propagate": False},
        # At DEBUG this logger would print every statement with its values.
        "django.db.backends": {"level": "INFO"},
        # One line for each message would hide the rest: beat sends one every two seconds. Failures are still logged.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "axes": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},  # Its line for every request would hold the address.
        "httpcore": {"level": "WARNING"},
        # At DEBUG these would print headers with credentials.
        "boto3": {"level": "WARNING"},
        "botocore": {"level": "WARNING"},
        "s3transfer": {"level": "WARNING"},
    },
}
