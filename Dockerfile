# Two images: `check` (the default) looks at configurations and data, `train` runs them on the CPU.
#   docker build -t cntkpy .
#   docker build -t cntkpy:train --target train .
# Every package has a version and hashes in integrations/containers; docs/containers.md says how they are renewed.
FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS wheel
WORKDIR /source
COPY integrations/containers integrations/containers
RUN pip install --no-cache-dir --require-hashes -r integrations/containers/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY cntkpy cntkpy
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS base
ENV PYTHONUNBUFFERED=1
# A volume that is mounted at the folder of caches gets its owner.
RUN useradd --create-home --uid 1000 cntkpy && install -d -o cntkpy -g cntkpy -m 700 /home/cntkpy/.cache
COPY --from=wheel /wheels /wheels
COPY integrations/containers /locks
WORKDIR /work

FROM base AS train
RUN pip install --no-cache-dir --require-hashes -r /locks/train.txt && pip install --no-cache-dir --no-deps /wheels/cntkpy-*.whl
USER 1000
ENTRYPOINT ["cntkpy"]
CMD ["--help"]

FROM base AS check
RUN pip install --no-cache-dir --require-hashes -r /locks/check.txt && pip install --no-cache-dir --no-deps /wheels/cntkpy-*.whl
USER 1000
ENTRYPOINT ["cntkpy"]
CMD ["--help"]
