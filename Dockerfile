# Build:  docker build -t triage .
# Run:    docker run --rm -v "$PWD/job_logs:/job:ro" triage ingest /job
#         (--user "$(id -u)" where only you may read the logs; --network none works too: nothing is fetched)
# tests/test_docker.py runs the RUN lines of the build stage in a virtual environment of its own.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY triage triage
COPY signatures signatures
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /dist .
RUN python -m venv /opt/triage
ARG EXTRAS=web
RUN /opt/triage/bin/python -m pip install --no-cache-dir "$(ls /dist/*.whl)[${EXTRAS:-web}]"

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 triage
COPY --from=build /opt/triage /opt/triage
ENV PATH=/opt/triage/bin:$PATH PYTHONUNBUFFERED=1
USER triage
WORKDIR /job
# Says whether the installation can start; `triage serve` is asked for its health as docs/operating.md says.
HEALTHCHECK --interval=30s --timeout=10s CMD ["triage", "--version"]
ENTRYPOINT ["triage"]
CMD ["--help"]
