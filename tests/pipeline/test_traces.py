"""triage.pipeline.traces: spans of an ingest, sent to a collector."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.testing.jobs import JobBuilder

pytest.importorskip("opentelemetry.sdk.trace")

ROOT = Path(__file__).resolve().parents[2]
STAGES = {"discover", "scan", "artifacts", "extract", "compare", "diagnose", "ingest"}


class Collector(http.server.ThreadingHTTPServer):
    """A receiver of OTLP over http that keeps what is posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.posts: list[tuple[str, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Receiver(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.posts.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    job = JobBuilder(tmp_path / "job", world_size=2)
    job.rank(1).traceback("ValueError: nothing in a-secret-shard")
    return job.elastic_table({1: 1}).write()


def ingest(job: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these variables."""
    command = [sys.executable, "-m", "triage", "ingest", str(job), "--no-store", "--exact", *options]
    own = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, env=own, capture_output=True, text=True, check=True, timeout=120)


def test_an_ingest_is_one_trace(collector: Collector, job: Path) -> None:
    """One request has a span for each stage below that of the ingest, with the verdict and without log text."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    ingest(job, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="nightly")
    [(path, body)] = collector.posts
    assert path == "/v1/traces"
    request = ExportTraceServiceRequest.FromString(body)
    [resource] = request.resource_spans
    names = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert names["service.name"] == "nightly"
    spans = {span.name: span for scope in resource.scope_spans for span in scope.spans}
    assert set(spans) == {f"triage.{stage}" for stage in STAGES}
    root = spans.pop("triage.ingest")
    assert {span.parent_span_id for span in spans.values()} == {root.span_id}
    assert {pair.key: pair.value.string_value for pair in root.attributes}["triage.verdict"] == "unknown"
    assert b"secret" not in body


def test_without_a_collector_the_sdk_is_not_imported(job: Path) -> None:
    """The base install needs none of it, and pays nothing."""
    code = "import sys, triage; triage.ingest(sys.argv[1]); print([m for m in sys.modules if 'telemetry' in m])"
    assert run(code, job) == "[]\n"


def run(code: str, job: Path) -> str:
    """Run a program that is given the job, without a collector in its variables; return what it prints."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | {
        "PYTHONPATH": str(ROOT)
    }
    command = [sys.executable, "-c", code, str(job)]
    return subprocess.run(command, env=own, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_program_that_only_imports_the_sdk_sends_nothing(job: Path) -> None:
    """Packages import the SDK for others: triage sets no provider then, and waits for no collector."""
    code = (
        "import sys, triage; from opentelemetry import trace; import opentelemetry.sdk.trace\n"
        "triage.ingest(sys.argv[1]); print(type(trace.get_tracer_provider()).__name__)"
    )
    assert run(code, job) == "ProxyTracerProvider\n"


def test_the_provider_of_the_program_gets_the_spans(job: Path) -> None:
    """A program that exports traces itself has those of its ingests among them."""
    code = (
        "import sys, triage; from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "kept = InMemorySpanExporter(); provider = TracerProvider(); trace.set_tracer_provider(provider)\n"
        "provider.add_span_processor(SimpleSpanProcessor(kept)); triage.ingest(sys.argv[1])\n"
        "print(sorted({span.name.removeprefix('triage.') for span in kept.get_finished_spans()}))"
    )
    assert run(code, job) == f"{sorted(STAGES)}\n"


def test_without_the_extra_the_diagnosis_comes(job: Path, tmp_path: Path) -> None:
    """A variable for other programs of the machine disturbs nothing."""
    (tmp_path / "opentelemetry.py").write_text("raise ImportError")
    without = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = ingest(job, "--format", "json", **without)
    assert '"verdict": "unknown"' in done.stdout
    assert done.stderr == ""


def test_a_collector_that_is_away_changes_no_answer(job: Path) -> None:
    """The report comes; the exporter says on standard error what it could not do."""
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = ingest(job, "--format", "json", **away)
    assert '"verdict": "unknown"' in done.stdout
