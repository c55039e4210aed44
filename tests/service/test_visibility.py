"""Who sees a part of the incidents gets nothing of the others from any route, by each rule of `[visibility]`."""

from __future__ import annotations

import dataclasses
import functools
import io
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.service.conftest import copy_flight_dumps, store_job
from tests.store.conftest import postgres_server as postgres_server
from tests.store.factories import clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.base.errors import OptionError
from triage.model import Diagnosis
from triage.model.evidence import Warning as ReportWarning
from triage.service import api, hooks, pages
from triage.service.access import Principal, scopes_of
from triage.service.api import openapi, operation
from triage.service.app import create_app
from triage.service.visibility import restrict
from triage.settings import Settings
from triage.settings.notifications import RoutingSettings
from triage.settings.sections import Role, Source, StoreSettings, TaskSettings, VisibilitySettings, WebSettings
from triage.store import Store, stats_cache
from triage.store.cause_work import WorkChange

Values = dict[str, list[Any]]
FillOnce = Callable[[str], tuple[str, Values]]
OWN, HIDDEN, ABSENT = "vision", "zebra", "quokka"
OOM, OTHER_SIGNATURE = "cuda.out-of-memory", "nccl.timeout"
HTML = {"Accept": "text/html"}
IN_EACH_DATABASE = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
SHA = "0" * 64
# What each route that changes something is sent, if it needs no role above those of a reader of a part.
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/uploads": {"files": {"file": ("a.log", b"ValueError: mine")}, "data": {"labels": "team=zebrb"}},
    "PATCH /api/v1/uploads/{sha256}": {
        "content": b"x",
        "headers": {"Upload-Offset": "0", "Upload-Length": "2", "Content-Type": "application/octet-stream"},
    },
    "POST /api/v1/ingest": {"json": {"source": f"{HIDDEN}-jobs"}},
    "POST /api/v1/alerts/{source}": {"json": {"alerts": []}},
    "DELETE /api/v1/tasks/{task_id}": {},
    "POST /api/v1/incidents/{incident}/feedback": {"json": {"verdict": "agree"}},
    "POST /api/v1/causes/{cause}/comments": {"json": {"text": "mine"}},
    "POST /api/v1/views": {"json": {"name": "mine", "page": "causes", "query": {}}},
    "DELETE /api/v1/views/{view}": {},
    "POST /api/v1/subscriptions": {"json": {"to": "webhook:zebra", "cause": OOM}},
    "DELETE /api/v1/subscriptions/{subscription}": {},
    "POST /incidents/{incident}/feedback": {"data": {"verdict": "agree"}},
    "POST /causes/{cause}/comments": {"data": {"text": "mine too"}},
    "POST /views": {"data": {"name": "mine", "page": "causes"}},
    "POST /views/{view}/delete": {},
    "POST /subscriptions": {"data": {"to": "webhook:zebra", "cause": OOM}},
    "POST /subscriptions/{subscription}/end": {},
    "POST /upload": {"files": {"file": ("b.log", b"ValueError: mine")}},
    "POST /upload/source": {"data": {"source": f"{HIDDEN}-jobs"}},
    "POST /tasks/{task}/cancel": {},
    "POST /auth/token": {"data": {"token": "wrong"}},
    "POST /auth/sign-out": {},
    "POST /theme": {"data": {"choice": "dark"}},
    "POST /hooks/slack": {},
}
# Routes that answer no reader of a part with 200 in this walk, and why.
NEVER_OK = {
    "GET /": "goes to the causes",
    "GET /sign-in": "goes on where somebody is signed in",
    "GET /auth/oidc": "is not set up",
    "GET /auth/oidc/callback": "is not set up",
    "GET /audit": "is for curators",
    "GET /audit.json": "is for curators",
    "GET /api/v1/audit": "is for curators",
    "GET /clusters/{cluster}/signature.yaml": "is for curators",
    "GET /clusters/{cluster}/promote": "is for curators",
    "GET /clusters/{cluster}/promote.json": "is for curators",
    "GET /api/v1/uploads/{sha256}": "knows nothing of this content",
    "HEAD /api/v1/uploads/{sha256}": "knows nothing of this content",
}
QUERIES = (
    *("/causes?order=count", "/causes?status=waiting", "/causes?kind=cluster", "/api/v1/causes?kind=cluster"),
    *("/incidents?limit=1", "/incidents?wrong=true", "/incidents?fact.team=vision", "/api/v1/incidents?since=900d"),
    *("/inbox?state=all", "/inbox.json?state=all", "/api/v1/clusters?state=all", "/api/v1/stats?domain=cuda"),
    *("/search?q=memory", "/api/v1/search?q=shard", "/search.json?q=ValueError", "/signatures?domain=nccl"),
)
ECHOES = (
    *("/hosts/{name}-node", "/hosts/{name}-node.json", "/hosts/{name}-node/devices/{name}:1.0"),
    *("/causes?host={name}-node", "/incidents?host={name}-node", "/incidents.json?fact.team={name}"),
    *("/incidents?q={name}", "/search?q={name}", "/api/v1/search?q={name}", "/api/v1/incidents?job={name}"),
    *("/causes?q={name}", "/causes?assignee={name}-lea", "/stats?host={name}-node", "/incidents?device={name}:1.0"),
    *("/api/v1/causes?host={name}-node", "/clusters/{name}", "/causes/{name}"),
)


def write_job(directory: Path, team: str) -> Path:
    """Write the files of a job that ran out of memory, with the team's name in all of them."""
    job = copy_flight_dumps(directory / f"{team}-flight")
    (job / f"{team}-rank0.log").write_text(
        f"SLURM_JOB_USER={team}-user\nstarting {team} on host {team}-node\n"
        "[rank0]: Traceback (most recent call last):\n"
        f'[rank0]:   File "/home/{team}/{team}_train.py", line 7, in main\n'
        f"[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB for {team}.\n",
        encoding="utf-8",
    )
    return job


def of_team(diagnosis: Diagnosis, team: str) -> Diagnosis:
    """Return a diagnosis whose texts, host, device, source and facts name the team."""
    root = diagnosis.root_cause
    assert root is not None
    fact = dataclasses.replace(
        root.evidence[0], source=f"{team}.log", excerpt=f"{team}\n{root.evidence[0].text}", component=team
    )
    captures = {"busid": f"{team}:1.0"}
    root = dataclasses.replace(
        root, title=f"{root.title} {team}", hosts=(f"{team}-node",), evidence=(fact,), captures=captures
    )
    facts = {"team": (team,), "user": (f"{team}-user",), "image": (f"registry/{team}:1",)}
    job = dataclasses.replace(
        diagnosis.job, name=f"{team} {diagnosis.job.name}", path=f"/jobs/{team}", facts=facts,
        hosts={f"{team}-node": (0, 1)}, versions={"torch": f"2.5+{team}"},
    )  # fmt: skip
    parts = {"findings": (root,)} if root.signature else {"unknown": (root,)}
    warnings = (ReportWarning("cut", f"{team}.log", f"{team} was cut"),)
    return dataclasses.replace(diagnosis, job=job, root_cause=root, warnings=warnings, **parts)


def store_analysed_job(store: Store, scratch: Path, team: str) -> str:
    """Diagnose the job of a team and store it with its documents; return the incident."""
    return store_job(store, scratch / f"{team}.work", write_job(scratch, team), f"{team} memory", f"team={team}")


def fill(store: Store, scratch: Path) -> Values:
    """Store incidents of two teams and what people wrote; return the values of each parameter of the routes."""
    ids: dict[str, list[str]] = {}
    for team, text in ((HIDDEN, "ValueError: shard 8 is bad"), (OWN, "ValueError: shard 7 is bad")):
        ids[team] = [
            store_analysed_job(store, scratch, team),
            store.incidents.add(of_team(known_diagnosis(f"{team}-oom"), team)).id,
            store.incidents.add(of_team(unknown_diagnosis(f"{team}-shard", text), team)).id,
        ]
        only = unknown_diagnosis(f"{team}-only", f"KeyError: {team}tokenizer lost {team}words")
        ids[team] += [
            store.incidents.add(of_team(only, team)).id,
            store.incidents.add(of_team(known_diagnosis(f"{team}-2", OTHER_SIGNATURE), team)).id,
        ]
        healthy = clean_diagnosis(f"{team}-healthy")
        job = dataclasses.replace(
            healthy.job, name=f"{team} healthy", facts={"team": (team,)}, versions={"torch": team}
        )
        ids[team].append(store.incidents.add(dataclasses.replace(healthy, job=job)).id)
    clusters = [store.incidents.get(ids[team][place]).incident.cluster for team in (OWN, HIDDEN) for place in (2, 3)]
    assert clusters[0] == clusters[2], "the teams have one cluster in common"
    assert clusters[0] is not None
    hidden = {"name": f"{HIDDEN} loader", "actor": f"{HIDDEN}-lea"}
    for place, cluster in enumerate(dict.fromkeys(clusters)):
        if place != 1:
            store.cluster_actions.name(cluster, HIDDEN + place * " loader", actor=f"{HIDDEN}-lea", note=HIDDEN)
        if place != 1:
            store.cause_work.change([cluster], WorkChange(assignee=f"{HIDDEN}-lea", ticket=HIDDEN), actor=HIDDEN)
    store.cause_work.change([OOM], WorkChange("fixed", f"{HIDDEN} 4", assignee=f"{HIDDEN}-lea"), actor=HIDDEN)
    store.cause_work.comment(OOM, f"{HIDDEN} knows", actor=f"{HIDDEN}-lea")
    store.feedback.add(ids[HIDDEN][1], "wrong", actor=f"{HIDDEN}-lea", because=f"{HIDDEN} says no", signature=OOM)
    store.feedback.add(ids[OWN][1], "wrong", actor="mira", because="it was the batch", signature=OOM)
    shared = store.saved_views.save(f"{HIDDEN} view", "causes", {"q": HIDDEN}, actor=f"{HIDDEN}-lea", is_shared=True)
    mine = store.saved_views.save("my view", "causes", {"q": "memory"}, actor="vera")
    subscription = store.subscriptions.add(f"webhook:{HIDDEN}", actor=hidden["actor"], cause=OOM)
    tasks = [
        store.tasks.add("ingest", {"name": "mine"}, actor="vera"),
        store.tasks.add("ingest", {"name": f"{HIDDEN} task"}, actor=f"{HIDDEN}-lea"),
    ]
    for task in tasks:  # else its events never end
        store.tasks.cancel(task.id, actor=task.actor)
    return {
        "incident": [*ids[OWN], *ids[HIDDEN]],
        "cluster": list(dict.fromkeys(clusters)),
        "cause": [OOM, OTHER_SIGNATURE, *dict.fromkeys(clusters)],
        "host": [f"{OWN}-node"],
        "device": [f"{OWN}:1.0"],
        "signature": [OOM, OTHER_SIGNATURE],
        "task": [task.id for task in tasks],
        "task_id": [task.id for task in tasks],
        "view": [mine.id, shared.id],
        "subscription": [subscription.id],
        "entry": [1, 2, 3],
        "number": [0],
        "sha256": [SHA],
        "source": [f"{HIDDEN}-jobs"],
    }


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> str:
    """The kind of database: SQLite, but for tests with IN_EACH_DATABASE."""
    return getattr(request, "param", "sqlite")


@pytest.fixture(scope="module")
def fill_once(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> FillOnce:
    """A function that fills a store in a kind of database, at its first call; returns its address and its values."""

    @functools.cache
    def fill_database(database: str) -> tuple[str, Values]:
        place = tmp_path_factory.mktemp("filled")
        in_server = database == "postgres"
        server = request.getfixturevalue("postgres_server") if in_server else None
        address = server.create_database() if server else str(place / "triage.db")
        with Store.open(address) as store:
            values = fill(store, place)
            if server is None:
                store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return address, values

    return fill_database


@pytest.fixture(scope="module")
def copy_store(fill_once: FillOnce, database: str, request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """A function that returns the address of a new copy of the filled store, in a directory if it is a file."""

    def copy(directory: Path) -> str:
        filled, _ = fill_once(database)
        if database == "postgres":
            return str(request.getfixturevalue("postgres_server").copy_database(filled))
        return str(shutil.copy(filled, directory / "triage.db"))

    return copy


@pytest.fixture
def values(fill_once: FillOnce, database: str) -> Values:
    """The values of each parameter of a route, those of the reader's team first."""
    return {name: list(of_name) for name, of_name in fill_once(database)[1].items()}


def make_settings(store: str, directory: Path) -> Settings:
    """Return settings by which the token `vera` sees one team, and by which people must sign in."""
    jobs = directory / "sources"
    (jobs / f"{HIDDEN}-one").mkdir(parents=True)
    return Settings(
        store=StoreSettings(path=store),
        web=WebSettings(sign_in="required", requests_a_minute=10**6, changes_a_minute=10**6),
        visibility=VisibilitySettings(tokens={"vera": ("team=vision",), "max": ("*",)}, groups={"g": ("team=vision",)}),
        routing=RoutingSettings(subscriptions=(f"webhook:{HIDDEN}",)),
        tasks=TaskSettings(uploads=directory / "uploads"),
        sources={f"{HIDDEN}-jobs": Source(path=jobs)},
    )


@pytest.fixture
def settings(copy_store: Callable[[Path], str], tmp_path: Path) -> Settings:
    """The settings of one test, with a filled store of its own."""
    return make_settings(copy_store(tmp_path), tmp_path)


@pytest.fixture
def team_store(settings: Settings) -> Iterator[Store]:
    """The store of the settings."""
    with Store.open(settings.store.path) as opened:
        yield opened


@pytest.fixture
def service(settings: Settings, team_store: Store) -> FastAPI:
    return create_app(settings, team_store)


@pytest.fixture(scope="module")
def readers(
    copy_store: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TestClient, TestClient]]:
    """Clients of `vera` and `max`, for tests that only read."""
    place = tmp_path_factory.mktemp("readers")
    settings = make_settings(copy_store(place), place)
    with Store.open(settings.store.path) as store:
        app = create_app(settings, store)
        with client_of(app, store, "vera") as vera, client_of(app, store, "max") as everybody:
            yield vera, everybody


def client_of(service: FastAPI, store: Store, name: str) -> TestClient:
    """Return a client with a new token of a curator."""
    secret = store.tokens.create(name, ["read", "ingest", "curate"], actor="test")[0]
    headers = {"Authorization": f"Bearer {secret}"}
    return TestClient(service, base_url="http://127.0.0.1", headers=headers, follow_redirects=False)


def list_routes(service: FastAPI) -> list[tuple[str, str]]:
    """Return (method, path) of every route; fails for a router that it does not know."""
    routers = [*((openapi.PREFIX, router) for router in api.ROUTERS)]
    routers += [("", router) for router in (*pages.ROUTERS, hooks.router, operation.conventional_router)]
    assert len(service.routes) == len(routers) + 2, "a router, the document of the API or the static files are new"
    routes = [(prefix + route.path, route) for prefix, router in routers for route in router.routes]
    assert all(isinstance(route, Route) or hasattr(route, "methods") for _, route in routes)
    listed = [(method, path) for path, route in routes for method in sorted(route.methods or ())]  # type: ignore[attr-defined]
    return [*listed, ("GET", "/api/v1/openapi.json")]


def texts_of(answer: httpx.Response) -> str:
    """Return everything in an answer as text, an archive unpacked."""
    body = answer.text
    if answer.headers.get("content-type") == "application/zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            body = "\n".join([*archive.namelist(), *(archive.read(name).decode() for name in archive.namelist())])
    return f"{answer.headers}\n{body}".lower()


def addresses(path: str, values: Values) -> Iterator[tuple[str, bool]]:
    """Yield the addresses of a path, with whether all its parameters are the reader's own."""
    names = [name.partition(":")[0] for name in re.findall(r"{([^}]+)}", path)]
    assert set(names) <= values.keys(), f"{path} has a parameter that the walk does not know"
    plain = re.sub(r"{([^}:]+):[^}]+}", r"{\1}", path)
    for chosen in product(*(values[name] for name in names)):
        address = plain
        for name, value in zip(names, chosen, strict=True):
            address = address.replace(f"{{{name}}}", str(value))
        yield address, all(value == values[name][0] for name, value in zip(names, chosen, strict=True))


@IN_EACH_DATABASE
def test_no_route_shows_anything_of_another_team(service: FastAPI, team_store: Store, values: Values) -> None:
    """Each route, walked with ids of both teams, has no word of the hidden one, and answers for the own team."""
    with client_of(service, team_store, "vera") as client, client_of(service, team_store, "max") as everybody:
        leaks, ok, refused, shown = [], set(), {}, set()
        for method, path in list_routes(service):
            route = f"{method} {path}"
            if method not in ("GET", "HEAD"):
                continue
            for address, is_own in addresses(path, values):
                for headers in (HTML, {"Accept": "application/json"}):
                    answer = client.request(method, address, headers=headers, params={"q": "memory"})
                    leaks += [(route, address)] if HIDDEN in texts_of(answer) else []
                    ok |= {route} if answer.status_code == 200 else set()
                    if route not in shown:
                        everything = everybody.request(method, address, headers=headers, params={"q": "memory"})
                        shown |= {route} if HIDDEN in texts_of(everything) else set()
                    if is_own and answer.status_code >= 400:
                        refused[route] = answer.status_code
        leaks += [("GET", address) for address in QUERIES if HIDDEN in texts_of(client.get(address, headers=HTML))]
        reads = {f"{method} {path}" for method, path in list_routes(service) if method in ("GET", "HEAD")}
    assert leaks == []
    assert reads - ok == set(NEVER_OK), refused
    assert len(shown) > 50, "nearly all routes show what the reader must not see to those who see everything"


@IN_EACH_DATABASE
def test_no_change_shows_or_touches_anything_of_another_team(
    service: FastAPI, team_store: Store, values: Values
) -> None:
    """Each route that changes something is refused for hidden ids, and shows nothing of them."""
    before = team_store.connections.read_one("SELECT count(*) AS n FROM feedback")
    with client_of(service, team_store, "vera") as client:
        for method, path in list_routes(service):
            route = f"{method} {path}"
            if method in ("GET", "HEAD"):
                continue
            for address, is_own in addresses(path, values):
                answer = client.request(method, address, **BODIES.get(route, {}))
                assert HIDDEN not in texts_of(answer), route
                assert answer.status_code < 500, route
                if route not in BODIES:
                    assert answer.status_code == 403, f"{route} is new: give it a body, or a role"
                elif not is_own and any(str(one) in address for one in hidden_ids(values)):
                    assert answer.status_code == 404, (route, answer.text)
    after = team_store.connections.read_one("SELECT count(*) AS n FROM feedback")
    assert before is not None
    assert after is not None
    assert after["n"] == before["n"] + 12, "two answers for each own incident"


def hidden_ids(values: Values) -> list[Any]:
    """Return the ids that the reader may not see."""
    return [*values["incident"][6:], values["cluster"][2], values["task"][1], values["view"][1]]


@IN_EACH_DATABASE
@pytest.mark.parametrize("address", ECHOES)
def test_a_hidden_name_is_answered_as_one_that_does_not_exist(
    readers: tuple[TestClient, TestClient], address: str
) -> None:
    """A question for a hidden host, user or word gets the answer of a question for one that was never stored."""
    vera, everybody = readers
    hidden, absent = (vera.get(address.format(name=name), headers=HTML) for name in (HIDDEN, ABSENT))
    assert (hidden.status_code, hidden.text.replace(HIDDEN, ABSENT)) == (absent.status_code, absent.text)
    assert everybody.get(address.format(name=HIDDEN), headers=HTML).text != hidden.text


@IN_EACH_DATABASE
def test_a_hidden_incident_is_answered_as_one_that_does_not_exist(
    service: FastAPI, team_store: Store, values: Values
) -> None:
    """All routes of a hidden incident answer 404 with the text for an unknown id."""
    hidden = values["incident"][6]
    with client_of(service, team_store, "vera") as client:
        paths = [path for method, path in list_routes(service) if method == "GET" and "{incident}" in path]
        assert len(paths) > 10
        for path in paths:
            texts = [
                client.get(path.format(incident=one, number=0)).text.replace(one, "ID")
                for one in (hidden, "i-0123456789ab")
            ]
            assert texts[0] == texts[1], path
            assert client.get(path.format(incident=hidden, number=0)).status_code == 404, path


def test_cached_answers_belong_to_what_somebody_sees(service: FastAPI, team_store: Store) -> None:
    """An answer for all incidents is never given to a reader of a part, and the other way round."""
    with client_of(service, team_store, "vera") as vera, client_of(service, team_store, "max") as everybody:
        for _ in range(2):
            assert everybody.get("/api/v1/incidents").json()["total"] == 12
            assert vera.get("/api/v1/incidents").json()["total"] == 6
            assert "12 incidents" in everybody.get("/causes", headers=HTML).text
            assert "6 incidents" in vera.get("/causes", headers=HTML).text


def test_pages_of_old_sums_say_so(service: FastAPI, team_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """While sums for a reader of a part may lack failures, their list, their causes and the API say since when."""
    monkeypatch.setattr(stats_cache, "CHEAP", 0.0)
    monkeypatch.setattr(stats_cache, "TIMES", 1e9)
    note = "may be missing in the counts"
    with client_of(service, team_store, "vera") as vera, client_of(service, team_store, "max") as everybody:
        for path in ("/causes", f"/causes/{OOM}"):
            assert note not in vera.get(path, headers=HTML).text
        assert vera.get("/api/v1/causes").json()["late_since"] is None
        team_store.incidents.add(of_team(known_diagnosis("late"), OWN))
        for path in ("/causes", f"/causes/{OOM}"):
            assert note in vera.get(path, headers=HTML).text
            assert note not in everybody.get(path, headers=HTML).text
        assert vera.get("/api/v1/causes").json()["late_since"].startswith("20")
        assert everybody.get("/api/v1/causes").json()["late_since"] is None


def test_own_views_are_not_cached_for_others(service: FastAPI, team_store: Store) -> None:
    """Two people with the same role and the same rules each get their own views."""
    with client_of(service, team_store, "anna") as anna, client_of(service, team_store, "vera") as vera:
        assert vera.get("/api/v1/views").json()["views"] != anna.get("/api/v1/views").json()["views"]


def test_an_upload_of_a_reader_of_a_part_gets_their_label(service: FastAPI, team_store: Store) -> None:
    """A job without a visible label gets the first one of its sender; one with it stays as it is."""
    with client_of(service, team_store, "vera") as client:
        for labels, expected in ((None, ["team=vision"]), ("user=vera,team=vision", ["user=vera", "team=vision"])):
            data = {"name": "mine", **({"labels": labels} if labels else {})}
            answer = client.post("/api/v1/uploads", files={"file": ("a.log", b"ValueError: x")}, data=data)
            assert answer.status_code == 202, answer.text
            task = team_store.tasks.get(answer.json()["id"])
            assert task.payload["labels"] == expected
    with client_of(service, team_store, "max") as client:
        answer = client.post("/api/v1/uploads", files={"file": ("a.log", b"ValueError: y")})
        assert "labels" not in team_store.tasks.get(answer.json()["id"]).payload


@pytest.mark.parametrize(
    ("name", "role", "groups", "is_token", "expected"),
    [
        ("mira", "viewer", (), False, (("team", "vision"),)),
        ("mira", "viewer", (), True, ()),
        ("ben", "curator", ("llm", "unknown"), False, (("team", "llm"), ("user", "a=b"))),
        ("mira", "viewer", ("llm",), False, (("team", "llm"), ("team", "vision"), ("user", "a=b"))),
        ("ci", "submitter", (), True, (("project", "ci"),)),
        ("root", "admin", (), False, None),
        ("mira", "admin", (), False, None),
        ("lead", "viewer", ("all",), False, None),
    ],
)
def test_who_sees_what(
    name: str, role: Role, groups: tuple[str, ...], is_token: bool, expected: tuple[tuple[str, str], ...] | None
) -> None:
    """All rules for a name, its groups and its role count; tokens have names of their own; others see nothing."""
    rules = VisibilitySettings(
        users={"mira": ("team=vision",)},
        groups={"llm": ("team=llm", "user=a=b"), "all": ("*",)},
        tokens={"ci": ("project=ci",)},
    )
    user = Principal(name, role, scopes_of(role), "proxy", groups=groups)
    limited = restrict(rules, user, is_token=is_token)
    assert limited.sees == expected
    assert limited.role == ("submitter" if expected is not None and role in ("curator", "admin") else role)
    assert limited.has_role("curator") == (expected is None and role in ("curator", "admin"))
    assert restrict(VisibilitySettings(), user, is_token=is_token) is user


def test_others_see_what_the_settings_say() -> None:
    """People without a rule see what `others` has."""
    user = Principal("eve", "viewer", scopes_of("viewer"), "proxy")
    assert restrict(VisibilitySettings(others=("team=open",)), user, is_token=False).sees == (("team", "open"),)
    assert restrict(VisibilitySettings(users={"mira": ("*",)}, others=("*",)), user, is_token=False).sees is None


def test_a_session_ends_when_the_rules_change(settings: Settings, team_store: Store) -> None:
    """A session of a token sees what the token sees, and is of no use after a change of the rules."""
    secret = team_store.tokens.create("vera", ["read"], actor="test")[0]
    with TestClient(create_app(settings, team_store), base_url="http://127.0.0.1") as client:
        client.post("/auth/token", data={"token": secret}, follow_redirects=False)
        assert client.get("/api/v1/me").json()["sees"] == ["team=vision"]
        cookies = dict(client.cookies)
    changed = settings.model_copy(update={"visibility": VisibilitySettings(tokens={"vera": ("team=llm",)})})
    with TestClient(create_app(changed, team_store), base_url="http://127.0.0.1", cookies=cookies) as client:
        assert client.get("/api/v1/me").status_code == 401


def test_a_group_of_a_proxy_limits_its_members(settings: Settings, team_store: Store) -> None:
    """The groups that a trusted proxy sends count for what a person sees."""
    web = WebSettings(trusted_proxies=("127.0.0.1",), proxy_user="x-user", proxy_role="x-groups")
    app = create_app(settings.model_copy(update={"web": web}), team_store)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        answer = client.get("/api/v1/me", headers={"x-user": "ida", "x-groups": "other; g"}).json()
        assert (answer["sees"], answer["role"]) == (["team=vision"], "viewer")
        assert client.get("/api/v1/me", headers={"x-user": "ida", "x-groups": "other"}).json()["sees"] == []


def test_rules_need_a_sign_in(settings: Settings, team_store: Store) -> None:
    """Rules where nobody signs in are an error at the start, which says what to set."""
    loose = settings.model_copy(update={"web": WebSettings()})
    with pytest.raises(OptionError, match="nobody must sign in"):
        create_app(loose, team_store)


@pytest.mark.parametrize("text", ["team", "=x", "team=", "1team=x"])
def test_a_fact_of_a_rule_has_a_name_and_a_value(text: str) -> None:
    """A rule that is neither NAME=VALUE nor * is refused."""
    with pytest.raises(ValueError, match="pattern"):
        VisibilitySettings(users={"mira": (text,)})
