"""Traces of an ingest by OpenTelemetry, where the standard variables name a collector: one span for each stage.

A span has names and counts, never log text. The SDK reads its own variables (OTEL_SERVICE_NAME, OTEL_EXPORTER_OTLP_…).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ParamSpec, TypeVar

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

import triage
from triage.model import Diagnosis

P = ParamSpec("P")
T = TypeVar("T")
_MOST_SPANS = 1000


class ExportAtEnd(SpanProcessor):
    """Exports the spans of a trace when its first span ends: without a thread, so that processes may be forked."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span; export all after the outermost one."""
        self._ended.append(span)
        if span.parent is None or span.parent.is_remote or len(self._ended) >= _MOST_SPANS:
            spans, self._ended = self._ended, []
            self._exporter.export(spans)


@cache
def _tracer() -> trace.Tracer:
    """Return the tracer: of the provider that the program has set, else one that exports by OTLP over http."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource

        resource = Resource.create({SERVICE_NAME: "triage"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(ExportAtEnd(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("triage", triage.__version__)


def in_span(name: str, work: Callable[P, T]) -> Callable[P, T]:
    """Return a function that does the work in a span."""

    def run(*arguments: P.args, **options: P.kwargs) -> T:
        with _tracer().start_as_current_span(f"triage.{name}") as span:
            result = work(*arguments, **options)
            for key, value in _attributes(result):
                span.set_attribute(f"triage.{key}", value)
            return result

    return run


def _attributes(result: Any) -> Sequence[tuple[str, Any]]:
    """Return what a span says of the result of a stage."""
    result = result[0] if isinstance(result, tuple) else result
    if not isinstance(result, Diagnosis):
        return ()
    root = result.root_cause
    return (
        ("verdict", result.verdict),
        ("root_cause", (root.signature or "unknown") if root else ""),
        ("files", result.stats.files),
        ("bytes", result.stats.bytes),
        ("incident", result.job.id),
    )
