# Two images: `check` (the default) looks at configurations and data, `train` runs them on the CPU.
#   docker build -t cntkpy .
#   docker build -t cntkpy:train --target train .
FROM python:3.12.11-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY cntkpy cntkpy
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1
# A volume that is mounted at the folder of caches gets its owner.
RUN useradd --create-home --uid 1000 cntkpy && install -d -o cntkpy -g cntkpy -m 700 /home/cntkpy/.cache
COPY --from=wheel /wheels /wheels
WORKDIR /work

FROM base AS train
RUN pip install --no-cache-dir "$(echo /wheels/cntkpy-*.whl)[train,image]"
USER 1000
ENTRYPOINT ["cntkpy"]
CMD ["--help"]

FROM base AS check
RUN pip install --no-cache-dir "$(echo /wheels/cntkpy-*.whl)[data]"
USER 1000
ENTRYPOINT ["cntkpy"]
CMD ["--help"]
