# One file, two images: WITH_TORCH=0 for web, worker and beat; WITH_TORCH=1 for workers that compute.
FROM python:3.11.16-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b

ARG WITH_TORCH=0
ARG TORCH_VERSION=2.13.0
# requirements/torch.lock has the hashes of PyPI's torch for Linux on x86_64 and aarch64, with what it needs of CUDA.
# On machines without an NVIDIA GPU, the smaller wheel of another index, with its own hash (the page of the index names it):
#   --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu --build-arg TORCH_HASH=sha256:...
ARG TORCH_INDEX=
ARG TORCH_HASH=
# 1: with what HUNCH_COMPUTE and HUNCH_STORAGE_URL may ask for (Dask, S3).
ARG WITH_EXTRAS=0

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HUNCH_VAR=/var/lib/hunch
WORKDIR /app

RUN useradd --system --uid 10001 --no-create-home hunch \
    && install -d -o hunch -g hunch -m 0700 /var/lib/hunch

# What `hunch report --png` writes its letters with: the base image has no font.
RUN apt-get update && apt-get install --yes --no-install-recommends fonts-dejavu-core && rm -rf /var/lib/apt/lists/*

COPY requirements requirements
RUN if [ "$WITH_TORCH" = 1 ]; then lock=ml; else lock=web; fi \
    && pip install --no-cache-dir --no-deps --require-hashes -r "requirements/$lock.lock" \
    && if [ "$WITH_EXTRAS" = 1 ]; then \
         pip install --no-cache-dir --no-deps --require-hashes -r requirements/extras.lock; \
       fi \
    && if [ "$WITH_TORCH" = 1 ] && [ -n "$TORCH_INDEX" ]; then \
         echo "torch==$TORCH_VERSION --hash=${TORCH_HASH:?name the hash of the wheel of TORCH_INDEX}" > /tmp/torch.txt \
         && pip install --no-cache-dir --no-deps --require-hashes --index-url "$TORCH_INDEX" -r /tmp/torch.txt; \
       elif [ "$WITH_TORCH" = 1 ]; then \
         pip install --no-cache-dir --no-deps --require-hashes -r requirements/torch.lock; \
       fi

COPY manage.py ./
COPY bandit bandit
COPY predictors predictors
COPY survey survey
COPY frontend frontend
COPY studies studies
# The documents, which web shows at /docs/.
COPY mkdocs.yml ./
COPY docs docs
COPY benchmarks/README.md benchmarks/README.md
COPY clients/python/README.md clients/python/README.md

# No process of the image writes bytecode: without this each would compile all of Hunch when it starts.
RUN python -m compileall -q manage.py bandit predictors survey frontend

# Settings for production refuse to start without these; they hold for this one command and are not in the image.
RUN HUNCH_ENV=production HUNCH_VAR=/tmp/build HUNCH_HOSTS=build.invalid \
    SECRET_KEY=only-for-collectstatic-during-the-build-of-the-image-000000 \
    HUNCH_IDENTITY_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
    DATABASE_URL=postgresql://build.invalid/build \
    python manage.py collectstatic --noinput && rm -r /tmp/build

USER hunch
VOLUME /var/lib/hunch
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "-c", "python:survey.gunicorn_config", "survey.wsgi"]
