"""`triage explain`: why a signature did or did not decide about a job."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options


def explain(
    paths: options.Paths,
    signature: Annotated[
        str,
        typer.Option(
            "--signature",
            "-s",
            metavar="ID",
            help="The signature to ask about.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ],
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    chunk_size: options.ChunkSize = "256K",
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Say why one signature did or did not decide about a job.

    Shows which clause held on how many lines, what the signature rests on, and the lines that came near.

    \b
    Examples:
      triage explain job_logs/ --signature cuda.out-of-memory
      triage explain job_logs/ -s my.rule --catalog my-signatures/
    """
    from triage.cli import streams
    from triage.cli.ingest import pipeline_options
    from triage.render import explanation

    streams.check(output)
    chosen = pipeline_options(catalog, workers, chunk_size)
    from triage import pipeline

    answer = pipeline.explain(paths, signature, chosen)
    if format is options.PlainFormat.json:
        streams.deliver(explanation.as_json(answer), output, utf8=True)
        return
    columns, painted = streams.width(width, output), streams.color(color.value, output)
    streams.deliver(explanation.as_text(answer, width=columns, color=painted), output)
