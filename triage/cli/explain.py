"""`triage explain`: why a signature did or did not decide about a job."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options, streams

SignatureOption = Annotated[
    str,
    typer.Option(
        "--signature",
        "-s",
        metavar="ID",
        help="The signature to explain.",
        autocompletion=options.complete_signature_ids,
        show_default=False,
    ),
]


def explain(
    paths: options.Paths,
    signature: SignatureOption,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "256K",
    exact: options.Exact = False,
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Explain why one signature did or did not decide about a job.

    Shows which clauses match on how many lines, the evidence, and the lines that almost match.

    \b
    Examples:
      triage explain job_logs/ --signature cuda.out-of-memory
      triage explain job_logs/ -s my.rule --catalog my-signatures/
    """
    from triage.cli.ingest_job import build_options
    from triage.render import explanation

    streams.check_output(output)
    pipeline_options = build_options(catalog, workers, chunk_size, exact)
    from triage import pipeline

    result = pipeline.explain(paths, signature, pipeline_options)
    streams.write_format(
        format,
        output,
        json=lambda: explanation.as_json(result),
        text=lambda: explanation.as_text(result, **streams.text_style(width, color, output)),
    )
