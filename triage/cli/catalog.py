"""`triage catalog list`, `show`, `check` and `schema`: read and check signatures."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from triage.cli import lookup, options, streams

Domain = Annotated[
    str | None, typer.Option("--domain", metavar="NAME", help="Only of this domain, like nccl.", show_default=False)
]

CheckFormatOption = Annotated[Literal["text", "json", "github"], typer.Option("--format", "-f", help="Output format.")]
Table = Annotated[bool, typer.Option("--table", help="The schema of a table of codes.")]


def list_(
    domain: Domain = None,
    catalog: options.Catalogs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """List the signatures with id, role and title, and the files of your own ones.

    \b
    Examples:
      triage catalog list --domain cuda
      triage catalog list --catalog my-signatures/ --format json
    """
    from triage.catalog import signature_files
    from triage.render import signature

    streams.check_output(None)
    selected = [item for item in lookup.load_signatures(catalog) if domain is None or item.domain == domain]
    shipped = f"{signature_files.find_shipped_directory() or ''}/"
    streams.write_format(
        format,
        None,
        json=lambda: signature.listing_as_json(selected),
        text=lambda: signature.listing(selected, shipped=shipped, **streams.text_style(width, color, None)),
    )


def show(
    id: options.SignatureId,  # noqa: A002
    catalog: options.Catalogs = None,
    format: options.PlainFormat = "text",  # noqa: A002
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Show one signature: its meaning, what to do, and its pattern.

    \b
    Example:
      triage catalog show cuda.out-of-memory
    """
    from triage.render import signature

    streams.check_output(None)
    selected = lookup.find_signature(id, lookup.load_signatures(catalog))
    streams.write_format(
        format,
        None,
        json=lambda: signature.as_json(selected),
        text=lambda: signature.as_text(selected, **streams.text_style(width, color, None)),
    )


def check(paths: options.SignaturePaths = None, format: CheckFormatOption = "text") -> None:  # noqa: A002
    """Check signature files: syntax, rules, their samples, and no match on healthy jobs.

    Exit status: 0 no errors (warnings are allowed), 1 errors.

    \b
    Examples:
      triage catalog check my-signatures/cuda/new-mode.yaml
      triage catalog check my-signatures/ --format github
    """
    from triage.cli.proof import check_everything
    from triage.render import catalog_problems

    streams.check_output(None)
    problems = check_everything(paths or ())
    streams.write_output(catalog_problems.WRITERS[format](problems), utf8=format == "json")
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(1)


def schema(table: Table = False, output: options.Output = None) -> None:
    """Write the JSON Schema of a signature file, for your editor.

    \b
    Example:
      triage catalog schema -o signatures/schema.json
    """
    import json

    from triage.catalog import code_tables, schema

    streams.check_output(output)
    document = code_tables.json_schema() if table else schema.json_schema()
    streams.write_output(json.dumps(document, indent=2, ensure_ascii=False) + "\n", output, utf8=True)


COMMANDS = (
    ("list", list_),
    ("show", show),
    ("check", check),
    ("schema", schema),
)
