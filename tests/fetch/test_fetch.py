"""`triage fetch` gets every line once, from each kind of source, and what it wrote has the cause of the job."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import command as command
from triage.fetch import elasticsearch, loki, requests, wandb
from triage.fetch.interface import Piece, parse_query
from triage.fetch.save import save
from triage.testing.log_stores import CloudWatchServer, LokiServer, SearchServer, WandbServer

Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "samples/jobs/exception_one_rank_tee/job/console.log").read_text(encoding="utf-8").splitlines()
SECOND = 1_763_700_000
SPAN = ("--since", "2025-11-21", "--until", "2025-11-22")
DESCRIBED = "Name:             train-a-x7k2p\nNamespace:        ml\n"


@pytest.fixture
def store() -> Iterator[LokiServer]:
    with LokiServer() as server:
        yield server


@pytest.fixture
def search() -> Iterator[SearchServer]:
    with SearchServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKI_BEARER_TOKEN", "loki-token")
    monkeypatch.setenv("WANDB_API_KEY", "wandb-key")
    monkeypatch.setattr(requests.time, "sleep", lambda _: None)


def address_of(store: LokiServer) -> str:
    return f'{store.url.replace("http", "loki+http")}/?query={{job="train"}}'


def written(directory: Path) -> list[str]:
    """Return all lines below a directory, without their times."""
    return [line.partition(" ")[2] for path in sorted(directory.iterdir()) for line in path.read_text().splitlines()]


def program(where: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program on the PATH."""
    where.mkdir(exist_ok=True)
    (where / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    (where / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{where}:{os.environ['PATH']}")


@pytest.mark.parametrize("failure", ["", "429", "500", "cut", "cut after", "half"])
def test_all_lines_of_loki_come_once(
    command: Command, store: LokiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """Over many pages, with equal times at their borders, and after temporary failures."""
    monkeypatch.setattr(loki, "SIZE", 7)
    for pod in ("trainer-0", "trainer-1"):
        store.push({"pod": pod}, ((SECOND * 10**9 + number // 3, f"{pod} line {number}") for number in range(40)))
    if failure:
        store.inject_failure("query_range", failure, times=3)
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert (status, re.search(r"2 files, [\d.]+ (bytes|kB)$", errors.splitlines()[0]) is not None) == (0, True)
    assert sorted(written(tmp_path / "logs")) == sorted(f"trainer-{n} line {k}" for n in (0, 1) for k in range(40))
    assert len(store.requests) > 11


def test_a_job_from_loki_has_its_cause(command: Command, store: LokiServer, tmp_path: Path) -> None:
    """The file of a stream is named after its pod, and the diagnosis is that of the log itself."""
    store.push({"pod": "trainer-0"}, ((SECOND * 10**9 + n, line) for n, line in enumerate(LINES)))
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert (status, "logs: 1 file, " in errors) == (0, True)
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.startswith("trainer-0-")
    report = json.loads(command("ingest", tmp_path / "logs", "--no-store", "--format", "json")[1])
    assert report["root_cause"]["ranks"] == [2]


def test_a_query_without_lines_leaves_no_directory(command: Command, store: LokiServer, tmp_path: Path) -> None:
    """It is an error; an empty directory would look like the logs of a job."""
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert (status, "has no such lines" in errors, (tmp_path / "logs").exists()) == (2, True, False)


def test_more_records_of_one_time_than_a_page_are_an_error(
    command: Command, store: LokiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is left out silently."""
    monkeypatch.setattr(loki, "SIZE", 7)
    store.push({"pod": "a"}, ((SECOND * 10**9, f"line {number}") for number in range(8)))
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert status == 2
    assert "more than 7 records have the same time" in errors


@pytest.mark.parametrize("failure", ["", "429", "500", "cut", "cut after", "half"])
@pytest.mark.parametrize("service", ["elasticsearch", "opensearch"])
def test_all_documents_of_elasticsearch_come_once(
    command: Command, search: SearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, service: str
) -> None:
    """Over many pages; equal texts of two documents stay two; other indices and words are left out."""
    monkeypatch.setattr(elasticsearch, "SIZE", 7)
    for number in range(40):
        pod = {"pod": {"name": f"trainer-{number % 2}"}, "labels": {"job-name": "train"}}
        search.add("logs-1", SECOND * 1000 + number // 5, message=f"line {number // 4}", kubernetes=pod)
    search.add("logs-1", SECOND * 1000, message="of another", job="other")
    search.add("metrics-1", SECOND * 1000, message="a metric")
    if failure:
        search.inject_failure("_search", failure, times=3)
    monkeypatch.setenv(f"{service.upper()}_API_KEY", "es-key")
    address = f"{search.url.replace('http', f'{service}+http')}/logs-*?q=train"
    assert command("fetch", address, "-o", tmp_path / "logs", *SPAN)[0] == 0
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["trainer-0.log", "trainer-1.log"]
    assert sorted(written(tmp_path / "logs")) == sorted(f"line {number // 4}" for number in range(40))


@pytest.mark.parametrize("refuses_partial", [True, False])
def test_an_index_without_some_shards_is_an_error(
    command: Command, search: SearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses_partial: bool
) -> None:
    """By default such a search is answered with the hits of the other shards: lines would be missing silently."""
    monkeypatch.setenv("ELASTICSEARCH_API_KEY", search.key)
    search.failed_shards, search.refuses_partial = 1, refuses_partial
    search.add("logs-1", SECOND * 1000, message="line")
    address = f"{search.url.replace('http', 'elasticsearch+http')}/logs-*"
    status, _, errors = command("fetch", address, "-o", tmp_path / "logs", *SPAN)
    assert (status, "503" in errors or "without some of its shards" in errors) == (2, True)


def test_lines_of_one_millisecond_keep_the_order_of_their_file(
    command: Command, search: SearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback is written within a millisecond, and an index returns equal times in any order."""
    monkeypatch.setenv("ELASTICSEARCH_API_KEY", search.key)
    lines = ["Traceback (most recent call last):", '  File "/job/train.py", line 8, in <module>', "ValueError: empty"]
    for offset, line in reversed(list(enumerate(lines))):
        search.add("logs-1", SECOND * 1000, message=line, **{"log.offset": offset, "host.name": "node1"})
    address = f"{search.url.replace('http', 'elasticsearch+http')}/logs-*"
    assert command("fetch", address, "-o", tmp_path / "logs", *SPAN)[0] == 0
    assert written(tmp_path / "logs") == lines


def test_kubectl_gets_every_container_and_its_run_before(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods are found by the label of their job; a container that restarted has two files."""
    pods = {
        "items": [
            {
                "metadata": {"name": "train-a-x7k2p"},
                "status": {
                    "initContainerStatuses": [{"name": "setup", "restartCount": 0}],
                    "containerStatuses": [{"name": "trainer", "restartCount": 1}],
                },
            }
        ]
    }
    log = tmp_path / "console.log"
    log.write_text("\n".join(f"2026-08-05T03:06:30.123456789Z {line}" for line in LINES) + "\n")
    body = f"""
echo "$@" >> {tmp_path}/calls
case "$3" in
  get) cat <<'END'
{json.dumps(pods)}
END
  ;;
  describe) cat <<'END'
{DESCRIBED}
END
  ;;
  logs)
    case "$*" in *--previous*) echo "2026-08-05T03:00:00Z before" ;; *trainer*) cat {log} ;; *) echo ready ;; esac ;;
esac"""
    program(tmp_path / "bin", "kubectl", body, monkeypatch)
    assert command("fetch", "kubectl://ml/job/train-a", "-o", tmp_path / "logs")[0] == 0
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        "pods.txt",
        "train-a-x7k2p-setup.log",
        "train-a-x7k2p-trainer.log",
        "train-a-x7k2p-trainer-previous.log",
    }
    assert (
        (tmp_path / "calls").read_text().startswith("--namespace ml get pods --selector job-name=train-a --output json")
    )
    report = json.loads(command("ingest", tmp_path / "logs", "--no-store", "--format", "json")[1])
    assert report["root_cause"]["ranks"] == [2]


@pytest.mark.parametrize(
    ("reason", "times", "problem"),
    [
        ("error: unexpected EOF", 3, ""),
        ("Error from server (TooManyRequests): the server has received too many requests", 3, ""),
        ("The connection to the server 10.0.0.1:6443 was lost", 4, "The connection to the server"),
        ("Error from server (BadRequest): container is waiting to start", 1, "waiting to start"),
    ],
)
def test_kubectl_is_run_again_when_the_server_is_busy_or_gone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, times: int, problem: str
) -> None:
    """A log that was cut is read again as a whole; what stays away is named, and the rest is fetched."""
    status = {"containerStatuses": [{"name": "trainer", "restartCount": 0}]}
    pods = {"items": [{"metadata": {"name": "train-a"}, "status": status}]}
    body = f"""
case "$3" in
  get) echo '{json.dumps(pods)}' ;;
  describe) echo described ;;
  logs)
    echo x >> {tmp_path}/calls
    echo "2026-08-05T03:00:00Z line 1"
    if [ "$(wc -l < {tmp_path}/calls)" -le {times} ]; then echo '{reason}' >&2; exit 1; fi
    echo "2026-08-05T03:00:01Z line 2" ;;
esac"""
    program(tmp_path / "bin", "kubectl", body, monkeypatch)
    status_, _, errors = command("fetch", "kubectl://ml/job/train-a", "-o", tmp_path / "logs")
    log = tmp_path / "logs" / "train-a-trainer.log"
    assert status_ == 0
    assert (log.read_text().splitlines()[1:] if log.exists() else []) == (
        [] if problem else ["2026-08-05T03:00:01Z line 2"]
    )
    assert ("not fetched: train-a-trainer.log: kubectl failed: " in errors, problem in errors) == (bool(problem), True)


def test_slurm_is_asked_again_when_its_database_is_gone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of sacct comes once the daemon answers; an output on another machine is named."""
    body = f"""
echo x >> {tmp_path}/calls
if [ "$(wc -l < {tmp_path}/calls)" -le 2 ]; then
  echo 'sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection' >&2
  echo 'sacct: error: Sending PersistInit msg: Connection refused' >&2; exit 1; fi
printf 'JobID|JobName|State|ExitCode\n1234|train|FAILED|1:0\n'"""
    program(tmp_path / "bin", "sacct", body, monkeypatch)
    program(tmp_path / "bin", "scontrol", "printf 'JobId=1234\n   StdOut=/elsewhere/slurm-1234.out\n'", monkeypatch)
    status, _, errors = command("fetch", "slurm://1234", "-o", tmp_path / "logs")
    assert status == 0
    assert "1234|train|FAILED" in (tmp_path / "logs" / "sacct.txt").read_text()
    assert "not fetched: slurm-1234.out: /elsewhere/slurm-1234.out cannot be read here" in errors


def test_a_job_without_pods_and_a_failing_program_are_errors(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The errors say what the program said, and what to do."""
    program(tmp_path / "bin", "kubectl", "echo '{\"items\": []}'", monkeypatch)
    status, _, errors = command("fetch", "kubectl://ml/job/gone", "-o", tmp_path / "logs")
    assert (status, "has no pods with job-name=gone" in errors) == (2, True)
    program(tmp_path / "bin", "kubectl", "echo 'error: You must be logged in to the server' >&2; exit 1", monkeypatch)
    status, _, errors = command("fetch", "kubectl://ml/job/gone", "-o", tmp_path / "logs")
    assert (status, "You must be logged in" in errors) == (2, True)


def test_slurm_gives_its_accounting_and_the_output(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of sacct and the output of the job are files; the output is read while Slurm knows its path."""
    log = tmp_path / "slurm-1234.out"
    log.write_text("\n".join(LINES) + "\n")
    table = "JobID|JobName|State|ExitCode\\n1234|train|FAILED|1:0\\n1234.0|python|FAILED|1:0\\n"
    program(tmp_path / "bin", "sacct", f"printf '{table}'", monkeypatch)
    program(tmp_path / "bin", "scontrol", f"printf 'JobId=1234 JobName=train\\n   StdOut={log}\\n'", monkeypatch)
    assert command("fetch", "slurm://1234", "-o", tmp_path / "logs")[0] == 0
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"sacct.txt", "scontrol.txt", "slurm-1234.out"}
    report = json.loads(command("ingest", tmp_path / "logs", "--no-store", "--format", "json")[1])
    assert report["root_cause"]["ranks"] == [2]
    program(
        tmp_path / "bin", "scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", monkeypatch
    )
    assert command("fetch", "slurm://1234", "-o", tmp_path / "later")[0] == 0
    assert {path.name for path in (tmp_path / "later").iterdir()} == {"sacct.txt"}
    program(tmp_path / "bin", "sacct", "echo 'JobID|JobName|State|ExitCode'", monkeypatch)
    status, _, errors = command("fetch", "slurm://77", "-o", tmp_path / "none")
    assert (status, "has no job 77" in errors) == (2, True)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("loki://user:secret@host/?query=x", "no user or password"),
        ("loki://host/", "has no query"),
        ("elasticsearch://host/", "has no index"),
        ("kubectl://ml/deployment/x", "names no job"),
        ("slurm://12;rm", "is not the id of a job"),
        ("cloudwatch://eu-central-1", "has no log group"),
        ("ftp://host/x", "is no source of logs"),
        ("job_logs/", "is no source of logs"),
    ],
)
def test_wrong_addresses_are_refused(command: Command, tmp_path: Path, address: str, reason: str) -> None:
    """With status 2 and a hint, before anything is called; no secret is repeated."""
    if address.startswith("cloudwatch"):
        pytest.importorskip("botocore")
    status, _, errors = command("fetch", address, "-o", tmp_path / "logs")
    assert (status, reason in errors, "  try: " in errors) == (2, True, True)
    assert "secret" not in errors


@pytest.mark.parametrize(("kind", "hint"), [("401", "variables with the token"), ("400", "the query is wrong")])
def test_a_refusal_says_what_to_do(command: Command, store: LokiServer, tmp_path: Path, kind: str, hint: str) -> None:
    """A refused request is not repeated."""
    store.inject_failure("query_range", kind)
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert (status, hint in errors, len(store.requests)) == (2, True, 1)


def test_a_store_that_stays_down_is_an_error(command: Command, store: LokiServer, tmp_path: Path) -> None:
    """After a few tries, or at once if it asks for a long pause."""
    store.inject_failure("query_range", "500", times=99)
    status, _, errors = command("fetch", address_of(store), "-o", tmp_path / "logs", *SPAN)
    assert (status, "gave no answer: status 500" in errors, len(store.requests)) == (2, True, requests.TRIES)


def test_the_limit_cuts_between_lines(tmp_path: Path) -> None:
    """What is written ends with a whole piece; a piece that fits exactly is written."""
    pieces = [Piece("a", "12345\n"), Piece("b", "12345\n"), Piece("a", "1\n")]
    assert save(pieces, tmp_path / "all", 14).is_cut is False
    fetched = save(pieces, tmp_path / "cut", 13)
    assert (fetched.is_cut, fetched.size, fetched.names) == (True, 12, ("a", "b"))


def test_a_fetch_after_a_kill_has_each_line_once(tmp_path: Path) -> None:
    """Wherever a fetch was killed, the next one into the same directory leaves what one that was not killed leaves."""
    pieces = [Piece(name, f"{name} {number}\n") for number in range(3) for name in "ab"]

    def killed_after(count: int) -> Iterator[Piece]:
        yield from pieces[:count]
        raise SystemExit

    for count in range(len(pieces) + 1):
        with pytest.raises(SystemExit):
            save(killed_after(count), tmp_path, 99)
        save(pieces, tmp_path, 99)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
            name: f"{name} 0\n{name} 1\n{name} 2\n" for name in "ab"
        }


def test_names_stay_below_the_directory(tmp_path: Path) -> None:
    """A pod or a label that looks like a path writes nothing elsewhere."""
    fetched = save(
        [Piece("../../etc/x", "1\n"), Piece("", "2\n"), Piece("a" * 400 + ".log", "3\n")], tmp_path / "d", 99
    )
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == sorted(fetched.names)
    assert all("/" not in name and not name.startswith(".") and len(name) <= 120 for name in fetched.names)


def test_streams_of_cloudwatch_are_files(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of a group come from moto's server, each stream a file."""
    moto = pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with moto.mock_aws():
        logs = boto3.client("logs", region_name="us-east-1")
        logs.create_log_group(logGroupName="/ml/train")
        for name in ("rank-0", "rank-1"):
            logs.create_log_stream(logGroupName="/ml/train", logStreamName=name)
            events = [
                {"timestamp": round(time.time() * 1000) - 60_000 + n, "message": f"{name} {n}"} for n in range(30)
            ]
            logs.put_log_events(logGroupName="/ml/train", logStreamName=name, logEvents=events)
        assert command("fetch", "cloudwatch://us-east-1/ml/train", "-o", tmp_path / "logs")[0] == 0
    assert sorted(written(tmp_path / "logs")) == sorted(f"rank-{n} {k}" for n in (0, 1) for k in range(30))


@pytest.mark.parametrize("failure", ["", "429", "500", "cut", "cut after", "half"])
def test_all_events_of_cloudwatch_come_once(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """Over pages, empty ones among them, and after temporary failures; other streams and times are left out."""
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "key")
    with CloudWatchServer() as cloudwatch:
        cloudwatch.page_events = 25
        for stream in ("rank-0", "rank-1", "other"):
            cloudwatch.put("/ml/train", stream, ((SECOND * 1000 + n // 3, f"{stream} {n}") for n in range(30)))
        cloudwatch.put("/ml/train", "rank-0", [((SECOND - 86_400 * 9) * 1000, "long before")])
        if failure:
            cloudwatch.inject_failure("FilterLogEvents", failure, times=3)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", cloudwatch.url)
        address = "cloudwatch://us-east-1/ml/train?prefix=rank-"
        status, _, errors = command("fetch", address, "-o", tmp_path / "logs", *SPAN)
        assert (status, re.search(r"2 files, [\d.]+ (bytes|kB)$", errors.splitlines()[0]) is not None) == (0, True), (
            errors
        )
        assert len(cloudwatch.requests) == 5 + (3 if failure else 0)
        assert command("fetch", "cloudwatch://us-east-1/gone", "-o", tmp_path / "none", *SPAN)[0] == 2
    assert sorted(written(tmp_path / "logs")) == sorted(f"rank-{n} {k}" for n in (0, 1) for k in range(30))


@pytest.fixture
def tracker() -> Iterator[WandbServer]:
    with WandbServer() as server:
        yield server


@pytest.mark.parametrize("failure", ["", "429", "500", "cut", "cut after", "half"])
@pytest.mark.parametrize("where", ["graphql", "bucket"])
def test_the_texts_of_a_group_of_runs_come_once(
    command: Command, tracker: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, where: str
) -> None:
    """Over pages of runs and files, in parts, after failures; weights and other groups stay where they are."""
    monkeypatch.setattr(wandb, "PER_PAGE", 2)
    monkeypatch.setattr(wandb, "CHUNK", 1000)
    waits: list[float] = []
    monkeypatch.setattr(requests.time, "sleep", waits.append)
    text = "".join(f"Ünline {number}\n" for number in range(300)).encode()
    for run in ("a1", "b2", "c3"):
        files = {"output.log": text, "model.pt": b"\0" * 50, "logs/rank0": text, "requirements.txt": b"torch==2.13.0\n"}
        tracker.add_run("team/llm", run, files, "job 42")
    tracker.add_run("team/llm", "d4", {"output.log": b"another job\n"}, "job 43")
    if failure:
        tracker.inject_failure(where, failure, times=3)
    address = f"{tracker.url.replace('http', 'wandb+http')}/team/llm?group=job%2042"
    assert command("fetch", address, "-o", tmp_path / "logs")[0] == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "logs").iterdir()}
    expected = {"output.log": text, "logs-rank0": text, "requirements.txt": b"torch==2.13.0\n"}
    assert written == {f"{run}-{name}": data for run in ("a1", "b2", "c3") for name, data in expected.items()}
    if failure == "429":
        assert waits == [tracker.retry_after] * 3


def test_a_job_from_wandb_has_its_cause(command: Command, tracker: WandbServer, tmp_path: Path) -> None:
    """The console of a run is diagnosed as the log itself."""
    tracker.add_run("team/llm", "a1", {"output.log": "\n".join(LINES).encode()})
    address = f"{tracker.url.replace('http', 'wandb+http')}/team/llm/runs/a1"
    assert command("fetch", address, "-o", tmp_path / "logs")[0] == 0
    assert "ValueError" in command("ingest", "--no-store", tmp_path / "logs")[1]


@pytest.mark.parametrize(
    ("path", "key", "reason"), [("x9", "wandb-key", "no such run"), ("a1", "other", "401"), ("", "", "names no run")]
)
def test_a_run_that_is_not_there_is_an_error(
    command: Command,
    tracker: WandbServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    key: str,
    reason: str,
) -> None:
    """A wrong run, key or address says so, and how to write it."""
    monkeypatch.setenv("WANDB_API_KEY", key)
    tracker.add_run("team/llm", "a1", {"output.log": b"x\n"})
    status, _, errors = command(
        "fetch", f"{tracker.url.replace('http', 'wandb+http')}/team/llm/{path}", "-o", tmp_path / "logs"
    )
    assert status == 2
    assert reason in errors
    assert "WANDB_API_KEY" in errors or "wandb://" in errors or "variables" in errors


def test_a_link_of_the_browser_is_an_address() -> None:
    """The link of a run is read as its address; its host is that of the API."""
    query = parse_query("https://wandb.ai/team/llm/runs/a1", 0, 1)
    assert (query.scheme, query.host, query.path) == ("wandb", "wandb.ai", "team/llm/runs/a1")
