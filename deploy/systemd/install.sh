#!/bin/sh
# Sets Hunch up on one Linux server without containers. Run it as root, in a checkout:
#   sh deploy/systemd/install.sh
# PostgreSQL and Redis must run on this server or another one. Run it again to update: it keeps settings and keys.
# HUNCH_EXTRAS=1 also installs what HUNCH_COMPUTE and HUNCH_STORAGE_URL may ask for (Dask, S3).
# DESTDIR=/some/folder only writes the files under that folder, without a user, packages or services.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
root=${DESTDIR:-}
python=${PYTHON:-python3}

if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then
  echo "install.sh: run it as root, or set DESTDIR" >&2
  exit 1
fi
"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || {
  echo "install.sh: $python is no Python of 3.11 or newer with venv; name another one with PYTHON=" >&2
  exit 1
}

random() {
  "$python" -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(int("'"$1"'"))).decode())'
}

# Everything that takes long or may fail comes before what runs is stopped.
if [ -z "$root" ]; then
  id hunch >/dev/null 2>&1 || useradd --system --home-dir /var/lib/hunch --no-create-home --shell /usr/sbin/nologin hunch
  install -d /opt/hunch
  [ -x /opt/hunch/.venv/bin/python ] || "$python" -m venv /opt/hunch/.venv
  for lock in ml torch ${HUNCH_EXTRAS:+extras}; do
    /opt/hunch/.venv/bin/python -m pip install --no-deps --require-hashes -r "$source/requirements/$lock.lock"
  done
  [ ! -e /etc/systemd/system/hunch.target ] || systemctl stop hunch-web.socket hunch.target
fi

install -d "$root/opt/hunch" "$root/etc/systemd/system/hunch-.service.d"
install -d -m 0750 "$root/etc/hunch"
for part in bandit frontend predictors survey studies manage.py; do
  rm -rf "$root/opt/hunch/$part"
  cp -R "$source/$part" "$root/opt/hunch/$part"
done
cp "$here"/hunch*.service "$here"/hunch*.socket "$here"/hunch.target "$root/etc/systemd/system/"
cp "$here"/hunch-.service.d/common.conf "$root/etc/systemd/system/hunch-.service.d/"

settings=$root/etc/hunch/hunch.env
if [ ! -e "$settings" ]; then
  (umask 077 && cat > "$settings") <<END
# Settings of Hunch: docs/operation.md names them all. Those of one service alone are in its file beside this one. Keep a copy of this file: without HUNCH_IDENTITY_KEY the panel's
# ids in the database cannot be read.
SECRET_KEY=$(random 48)
HUNCH_IDENTITY_KEY=$(random 32)
# The names that people reach this server by, with commas between.
HUNCH_HOSTS=
DATABASE_URL=postgresql://hunch:PASSWORD@127.0.0.1:5432/hunch
REDIS_URL=redis://127.0.0.1:6379/0
HUNCH_BEHIND_PROXY=true
END
fi

# Secrets that not every service needs, each in the file of a service that does. Empty lines are as if they were not there.
own_settings() {
  own=$root/etc/hunch/hunch-$1.env
  shift
  [ -e "$own" ] || (umask 077 && printf '# For this service alone: docs/operation.md names the settings.\n' > "$own" && printf '%s=\n' "$@" >> "$own")
}
panel="HUNCH_PROLIFIC_TOKEN"
bucket="AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"
alerts="HUNCH_EMAIL_URL HUNCH_ALERT_EMAILS HUNCH_ALERT_WEBHOOK HUNCH_ALERT_WEBHOOK_SECRET"
models="HUNCH_LLM_URL HUNCH_LLM_KEY HUNCH_LLM_MODEL HUNCH_EMBEDDINGS_URL HUNCH_EMBEDDINGS_KEY HUNCH_EMBEDDINGS_CACHE VOYAGE_API_KEY"
own_settings web $panel $bucket HUNCH_EMAIL_URL HUNCH_PROLIFIC_WEBHOOK_SECRET HUNCH_GENERIC_SECRET \
  HUNCH_GENERIC_CLOSING_SECRET HUNCH_METRICS_TOKEN
own_settings worker $panel $bucket $alerts
own_settings beat $panel $bucket $alerts HUNCH_PING_URL
own_settings worker-ml $bucket $models
own_settings worker-collect $bucket $models

if [ -n "$root" ]; then
  echo "Wrote the files under $root."
  exit 0
fi

cd /opt/hunch
# No service may write here: without this each of its processes would compile all of Hunch when it starts.
.venv/bin/python -m compileall -q manage.py bandit frontend predictors survey
# The settings refuse to start without these; they hold for this one command.
HUNCH_ENV=production HUNCH_VAR=$(mktemp -d) HUNCH_HOSTS=build.invalid SECRET_KEY=$(random 48) \
  HUNCH_IDENTITY_KEY=$(random 32) DATABASE_URL=postgresql://build.invalid/build \
  .venv/bin/python manage.py collectstatic --noinput >/dev/null
systemctl daemon-reload
if grep -q '^HUNCH_HOSTS=$' "$settings"; then
  echo "Fill in $settings, then run this script again."
  exit 0
fi
# The tables first, then everything that runs the new code.
systemctl restart hunch-migrate.service
systemctl enable --now hunch-web.socket hunch.target
echo "Hunch runs behind 127.0.0.1:8000. Put a proxy with TLS in front of it: docs/operation.md says how."
