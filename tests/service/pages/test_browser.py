"""The pages in a real browser: from an upload to a signature, roles, keyboard, no JavaScript, accessibility."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.effort import choose_some
from tests.service.pages.conftest import PageServer
from triage.catalog.check import check_files
from triage.model.diagnosis import Diagnosis, Finding, Job, Moment, RankState
from triage.service.pages import rendering
from triage.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import JSHandle, Page

OpenPage = Callable[..., "Page"]
# One domain of the signatures: the whole list is the same page, ten times as long.
MAIN_PAGES = [
    address if address != "/signatures" else "/signatures?domain=crash" for address, _, _ in rendering.NAVIGATION
]


# Reports every text of a live region.
OBSERVE_STATUS = """new MutationObserver(() => document.querySelectorAll("[role=status]")
    .forEach((region) => region.textContent && window.reportStatus(region.textContent)))
    .observe(document, {subtree: true, childList: true, characterData: true})"""


def dropped_file(page: Page, path: Path) -> JSHandle:
    """Return the DataTransfer of a dropped file."""
    script = """([name, content]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0))], name));
        return transfer;
    }"""
    return page.evaluate_handle(script, [path.name, base64.b64encode(path.read_bytes()).decode()])


def find_incident(page_server: PageServer, **fields: Any) -> str:
    """Return the id of an incident with these fields."""
    with Store.open(page_server.path) as store:
        return next(
            item.id
            for item in store.search.list_incidents()
            if all(getattr(item, name) == value for name, value in fields.items())
        )


def waiting_clusters(page_server: PageServer) -> list[str]:
    """Return the ids of the clusters in the inbox."""
    with Store.open(page_server.path) as store:
        return [item.id for item in store.clusters.list_clusters()]


def test_upload_to_feedback(open_page: OpenPage, archive: Path) -> None:
    """An uploaded archive shows its progress, its verdict and its evidence, and accepts feedback."""
    page = open_page("submitter")
    statuses: list[str] = []
    page.expose_function("reportStatus", lambda text: statuses.append(text))
    page.add_init_script(OBSERVE_STATUS)
    page.goto("/upload")
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped_file(page, archive)})
    page.fill("input[name=name]", "llama-7b run 12")
    with page.expect_navigation(url=re.compile("/(tasks|incidents)/")):
        page.click("text=Diagnose")
    page.wait_for_url("**/incidents/i-*")
    assert any(text.endswith("MB sent") for text in statuses)
    assert {"waiting for a worker", "working", "reading", "comparing the ranks"} & {
        text.partition(",")[0] for text in statuses
    }
    assert "ValueError" in page.inner_text("h1")
    assert "llama-7b run 12" in page.inner_text("#job")
    assert "confidence" in page.inner_text(".card .facts")
    lines = page.locator("#evidence details", has_text="Lines around").first
    if lines.get_attribute("open") is None:
        lines.locator("summary").click()
    assert lines.locator("tr.own").first.is_visible()
    shown = lines.locator("tr").count()
    lines.locator("text=lines before and after").click()
    page.wait_for_url("**around=30*")
    assert lines.locator("tr").count() > shown
    number = lines.locator("tr.own th a").first
    number.click()
    assert page.url.endswith(f"-L{number.inner_text()}")
    page.fill("input[name=because]", "the shard was cut by the copy")
    page.click("button:has-text('Wrong')")
    page.wait_for_url("**said=wrong*")
    assert rendering.NOTICES["wrong"] in page.inner_text(".notice")
    assert "the shard was cut by the copy" in page.inner_text("#people")


def test_merge_and_undo(open_page: OpenPage, page_server: PageServer) -> None:
    """Two clusters are merged in the inbox, and the merge is undone in the audit log."""
    page = open_page("curator")
    page.goto("/inbox")
    for name in waiting_clusters(page_server)[:2]:
        page.check(f"input[value={name}]")
    page.fill("input[name=because]", "the same reader")
    page.click("text=Merge selected")
    page.wait_for_url("**said=merged")
    merged = page.url.rpartition("/")[2].split("?")[0]
    assert "the same reader" in page.inner_text("section:has(#log)")
    assert merged in waiting_clusters(page_server)
    page.goto("/audit")
    page.click(f"tr:has-text('merge {merged}') >> button")
    page.wait_for_url("**said=undone")
    assert len(waiting_clusters(page_server)) >= 2


def test_the_form_for_selected_causes_stays_in_sight(open_page: OpenPage) -> None:
    """It is below a list that does not fit, and at the lower edge of the window while a cause is selected."""
    page = open_page("curator")
    page.set_viewport_size({"width": 1366, "height": 420})
    page.goto("/causes")
    save = page.locator(".work button")
    boxes = [save.bounding_box()]
    page.locator("td.select input").first.check()
    boxes.append(save.bounding_box())
    assert [box is not None and box["y"] + box["height"] <= 420 for box in boxes] == [False, True]


def test_a_refused_form_leads_back_to_it(open_page: OpenPage) -> None:
    """The link of the error leads to the same list; whether the cause is still selected is left to the browser."""
    page = open_page("curator")
    page.goto("/causes?order=last")
    page.locator("td.select input").first.check()
    page.click(".work button")
    page.click("text=Back to the form")
    page.wait_for_url("**/causes?order=last")


def test_split_ignore_and_reopen(open_page: OpenPage, page_server: PageServer) -> None:
    """On its page a cluster is merged with a pasted address, split, removed from the inbox and reopened."""
    page = open_page("curator")
    one, other = waiting_clusters(page_server)[:2]
    page.goto(f"/clusters/{one}")
    page.fill("input[name=other]", f"{page_server.address}/clusters/{other}?said=merged")
    page.click("form:has(legend) button:text-is('Merge')")
    page.wait_for_url("**said=merged")
    page.locator("#prints ~ form input[name=key]").first.check()
    page.fill("#prints ~ form input[name=because]", "two readers")
    page.click("text=Split off selected")
    page.wait_for_url("**said=split")
    new = page.url.rpartition("/")[2].split("?")[0]
    assert rendering.NOTICES["split"] in page.inner_text(".notice")
    assert "two readers" in page.inner_text("section:has(#log)")
    page.fill("form[action$=ignore] input[name=because]", "a test of the cluster itself")
    page.click("text=Remove from inbox")
    page.wait_for_url("**said=ignored")
    page.goto("/inbox")
    assert not page.locator(f"a[href='/clusters/{new}']").count()
    page.click("nav[aria-label=States] >> text=ignored")
    page.click(f"a[href='/clusters/{new}']")
    page.click("text=Move back to inbox")
    page.wait_for_url("**said=reopened")
    assert new in waiting_clusters(page_server)


def test_promoted_cluster_is_a_valid_signature(open_page: OpenPage, page_server: PageServer, tmp_path: Path) -> None:
    """The downloaded YAML passes the catalog's check, as the page says."""
    page = open_page("curator")
    page.goto(f"/clusters/{waiting_clusters(page_server)[0]}")
    page.fill("form:has(legend:text('Promote')) input[name=signature]", "data.found-by-the-browser")
    page.click("text=Draft signature")
    assert "passes" in page.inner_text("section:has(#result)")
    with page.expect_download() as download:
        page.click("text=Download YAML")
    target = tmp_path / "data" / "found-by-the-browser.yaml"
    target.parent.mkdir()
    download.value.save_as(target)
    assert not [problem for problem in check_files([target]) if problem.severity == "error"]
    page.click("text=Mark cluster as promoted")
    page.wait_for_url("**said=promoted")
    assert "data.found-by-the-browser" in page.inner_text(".card")


def test_search_finds_signatures_and_incidents(open_page: OpenPage) -> None:
    """A search finds both, and marks the words."""
    page = open_page("viewer")
    page.goto("/search")
    page.fill("input[type=search]", "killed signal")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=killed*")
    assert page.locator("a[href='/signatures/data.worker-killed']").count()
    assert page.locator("section:has(#met) mark").count()


@pytest.mark.parametrize("role", ["viewer", "submitter", "curator", "admin"])
def test_each_role_sees_its_forms(open_page: OpenPage, page_server: PageServer, role: str) -> None:
    """Signing in leads back to the requested page, which has only the forms of the role."""
    page = open_page(None)
    page.goto("/upload")
    assert "/sign-in" in page.url
    page.fill("input[name=token]", page_server.tokens[role])
    page.click("button:has-text('Sign in')")
    page.wait_for_url("**/upload")
    assert role in page.inner_text(".user")
    assert page.locator("input[type=file]").count() == (role != "viewer")
    page.goto("/inbox")
    assert page.locator("text=Merge selected").count() == (role in ("curator", "admin"))
    answer = page.goto("/audit")
    assert answer is not None
    assert answer.status == (200 if role in ("curator", "admin") else 403)
    assert page.locator("nav a[href='/audit']").count() == (role in ("curator", "admin"))
    page.click("text=Sign out")
    page.goto("/incidents")
    assert "/sign-in" in page.url


def test_wrong_token_shows_an_error(open_page: OpenPage) -> None:
    """A wrong token shows an error page."""
    page = open_page(None)
    page.goto("/sign-in")
    page.fill("input[name=token]", "trg_wrong")
    page.click("button:has-text('Sign in')")
    assert "wrong" in page.inner_text("h1")


def test_keyboard_alone(open_page: OpenPage, page_server: PageServer) -> None:
    """Signing in, moving in the list, opening an incident and agreeing work with the keyboard, with visible focus."""
    page = open_page(None)
    page.goto("/incidents")
    page.keyboard.type(page_server.tokens["submitter"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/incidents")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/incidents/i-*")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "because":
            break
    page.keyboard.type("seen on node17 too")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**said=agreed*")
    assert "seen on node17 too" in page.inner_text("#people")
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/stats")


def test_causes_are_worked_on(open_page: OpenPage, page_server: PageServer) -> None:
    """Selected causes are assigned together; a cause is fixed, comes back by an older date, and is commented."""
    page = open_page("curator")
    page.goto("/")
    page.wait_for_url("**/causes")
    boxes = page.locator("input[name=cause]")
    for number in range(2):
        boxes.nth(number).check()
    page.locator(".work input[name=assignee]").fill("mira")
    page.click(".work button")
    page.wait_for_url("**said=worked")
    page.goto("/causes?assignee=mira")
    assert boxes.count() == 2
    page.goto("/causes/data.worker-killed")
    page.select_option(".work select[name=status]", "fixed")
    page.fill(".work input[name=date]", "2020-01-01")
    page.click(".work button")
    page.wait_for_url("**said=worked")
    assert "regressed" in page.inner_text(".card")
    page.fill("input[name=text]", "<b>node17</b> is drained")
    page.click("text=Add comment")
    page.wait_for_url("**said=commented*")
    assert "<b>node17</b> is drained" in page.inner_text("section:has(#comments)")
    assert "2020-01-01" in page.inner_text("section:has(#log)")


def test_causes_with_the_keyboard_on_a_phone(open_page: OpenPage) -> None:
    """A viewer opens a cause with the keyboard, also at 390 pixels; the whole title is inside the screen."""
    page = open_page("viewer")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/causes")
    assert page.locator(".work").count() == 0
    for box in (item.bounding_box() for item in page.locator("table.causes .main").all()):
        assert box is not None
        assert box["x"] + box["width"] <= 390
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/causes/*")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/causes")


@pytest.mark.parametrize("address", ["/causes", "/causes/data.worker-killed", "/incidents"])
def test_lists_fit_a_small_desktop(open_page: OpenPage, address: str) -> None:
    """At 1366 pixels no list scrolls sideways, not even inside its frame."""
    page = open_page("curator")
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(address)
    frames = page.eval_on_selector_all(".scroll", "frames => frames.map((item) => item.scrollWidth - item.clientWidth)")
    assert max(frames, default=0) <= 0


FITTING = ("/causes", "/incidents", "/inbox", "/hosts/node1", "/views", "/audit", "/status", "/signatures?domain=gpu")


@pytest.mark.parametrize("page_name", [*FITTING, "compare", "details"])
def test_lists_fit_a_phone(open_page: OpenPage, page_server: PageServer, page_name: str) -> None:
    """At 390 pixels no list scrolls sideways inside its frame, so that every column can be seen."""
    with Store.open(page_server.path) as store:
        healthy = store.incidents.add(Diagnosis("1", "1", Job("j-healthy", "healthy", "healthy"), "clean", None)).id
    compare = f"/incidents/{page_server.rich[0]}/compare?healthy={healthy}"
    page = open_page("curator", width=390)
    pages = detail_pages(page_server) if page_name == "details" else [compare if page_name == "compare" else page_name]
    for address in pages:
        page.goto(address)
        page.eval_on_selector_all("details", "all => all.forEach((details) => { details.open = true; })")
        wide = "frames => frames.map((item) => item.scrollWidth - item.clientWidth)"
        frames = page.eval_on_selector_all(".scroll:not(.picture), .lanes", wide)
        assert max(frames, default=0) <= 0, address


def test_a_timeline_names_its_ranks_on_a_phone(open_page: OpenPage, page_server: PageServer) -> None:
    """Name, mark and cause of each lane are on the screen, at 390 pixels and at 1366."""
    page = open_page("viewer")
    for width in (390, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"/incidents/{find_incident(page_server, signature='data.worker-killed')}")
        texts = [text for text in page.locator("#time svg text").all() if text.is_visible()]
        names = [text.text_content() or "" for text in texts]
        assert "data.worker-killed" in names
        assert any(name.startswith("rank 1") for name in names)
        for box in filter(None, (text.bounding_box() for text in texts)):
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width


def test_collectives_name_their_ranks_on_a_phone(open_page: OpenPage, page_server: PageServer) -> None:
    """Each row has its name beside it without scrolling, that of the fault is red, at 390 pixels and at 1366."""
    page = open_page("viewer", dark=True)
    for width in (390, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"/incidents/{page_server.rich[0]}")
        (drawing,) = (item for item in page.locator("#collectives svg[role=img]").all() if item.is_visible())
        box = drawing.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        (name,) = drawing.locator("text.root").all()
        red = name.evaluate("text => getComputedStyle(text).fill")
        assert (name.text_content() or "").startswith("rank")
        assert drawing.locator("rect.root").evaluate("frame => getComputedStyle(frame).stroke") == red


def test_what_is_new_since_the_last_visit(open_page: OpenPage, page_server: PageServer) -> None:
    """The next visit of a person has a link to the causes that came since the one before, also on a phone."""
    page = open_page("viewer", width=390)
    page.goto("/causes")
    with Store.open(page_server.path) as store:
        store.connections.execute("UPDATE visit SET previous_at = seen_at")  # that one was the visit before
        root = Finding("a.new", "A new cause", "a", "cause", "fatal", 0.9, ranks=(1,), first_time=2000.0)
        store.incidents.add(Diagnosis("1", "1", Job("j-new", "new", "new"), "known", root, (root,)))
    page.goto("/causes")
    page.click("text=New since your last visit")
    page.wait_for_url("**/causes?new=visit*")
    assert page.locator("tr[data-row] .main").all_inner_texts() == ["A new cause"]


def test_without_javascript(open_page: OpenPage, page_server: PageServer, archive: Path) -> None:
    """Filters, theme and upload are forms; the page of a task reloads until it opens the diagnosis."""
    page = open_page("submitter", scripts=False)
    page.goto("/incidents")
    page.fill("input[name=q]", "killed")
    page.click("button:text-is('Filter')")
    assert page.locator("a.main").count() >= 1
    page.click("button[aria-label^='Switch to']")
    assert page.locator("html[data-theme=dark]").count()
    assert "q=killed" in page.url
    page.goto("/upload")
    page.set_input_files("input[type=file]", archive)
    page.click("text=Diagnose")
    page.wait_for_url("**/incidents/i-*", timeout=60_000)
    assert "ValueError" in page.inner_text("h1")
    assert page.locator("button.copy:visible").count() == 0


def test_copy_buttons(open_page: OpenPage, page_server: PageServer) -> None:
    """A copy button copies only its step."""
    page = open_page("viewer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/incidents/{find_incident(page_server, signature='data.worker-killed')}")
    page.click(".todo button.copy >> nth=0")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text(".todo li >> nth=0 >> span")


def detail_pages(page_server: PageServer) -> list[str]:
    """Return detail pages that together have every section."""
    with Store.open(page_server.path) as store:
        cluster = store.clusters.list_clusters(states=("open", "named", "promoted"))[0].id
    incidents = [f"/incidents/{name}" for name in (*page_server.rich, find_incident(page_server, signature=None))]
    others = [
        f"{incidents[0]}/compare",
        "/causes/data.worker-killed",
        "/hosts/node1",
        "/hosts/node1/devices/0",
        "/views",
        f"/causes/{cluster}",
        "/signatures/data.worker-killed",
        "/search?q=sigkill",
        f"/tasks/{page_server.running}",
        "/sign-in",
        "/nothing",
    ]
    return [*incidents, f"/clusters/{cluster}", f"/clusters/{cluster}/promote?signature=data.axe", *others]


LOOKS = tuple(itertools.product(("light", "dark"), (1240, 390)))
FIND_BARRIERS = """() => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    return axe.run(document, {resultTypes: ["violations"]}).then((result) => result.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))]));
}"""


@pytest.mark.parametrize("pages", ["lists", "details"])
def test_no_page_has_a_serious_barrier(open_page: OpenPage, page_server: PageServer, pages: str) -> None:
    """In one look (thorough tests: in all) axe-core finds no serious violation, and no page scrolls sideways."""
    axe = pytest.importorskip(
        "axe_core_python.sync_playwright", reason="axe-core-python is not installed: pip install 'triage-kb[dev]'"
    ).Axe()
    page, guest = open_page("curator"), open_page(None)
    barriers = []
    for address in MAIN_PAGES if pages == "lists" else detail_pages(page_server):
        tab = guest if address == "/sign-in" else page
        tab.goto(address)
        tab.evaluate(axe.axe_script)
        for colours, width in choose_some(LOOKS, 1, address):
            tab.emulate_media(color_scheme=colours)
            tab.set_viewport_size({"width": width, "height": 900})
            barriers += [(address, colours, width, *barrier) for barrier in tab.evaluate(FIND_BARRIERS)]
            wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            barriers += [(address, colours, width, "scrolls sideways", wide)] if wide > 0 else []
    assert not barriers


def test_a_view_is_saved_and_subscribed_with_the_keyboard_on_a_phone(open_page: OpenPage) -> None:
    """At 390 pixels filters are saved under a name and opened; a cause is subscribed, and the subscription ended."""
    page = open_page("submitter")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/causes?q=killed")
    page.locator(".views summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Killed <b>workers</b>")
    page.keyboard.press("Enter")
    page.wait_for_url("**/views?said=saved*")
    page.click("text=Killed <b>workers</b>")
    page.wait_for_url("**/causes?q=killed")
    page.goto("/causes/data.worker-killed")
    page.click("button:text-is('Subscribe')")
    page.wait_for_url("**/causes/data.worker-killed?said=subscribed")
    assert "webhook:team" in page.inner_text("section:has(#posts)")
    page.click("section:has(#posts) button:text-is('End')")
    page.wait_for_url("**/causes/data.worker-killed?said=unsubscribed")
    page.goto("/views")
    page.click("text=Delete")
    page.wait_for_url("**/views?said=deleted")


def page_of(page_server: PageServer, diagnosis: Diagnosis) -> str:
    """Store a diagnosis, and return the address of its page."""
    with Store.open(page_server.path) as store:
        return f"/incidents/{store.incidents.add(diagnosis).id}"


@pytest.mark.parametrize("width", [390, 1366])
def test_drawings_show_the_root_first(open_page: OpenPage, page_server: PageServer, width: int) -> None:
    """The map of a thousand ranks and the timeline are scrolled to the root cause, which is red."""
    ranks = tuple(RankState(rank, None, "stalled") for rank in range(1024))
    root = Finding("a.b", "a", "a", "cause", "fatal", 0.9, ranks=(1000,), first_time=2000.0)
    moments = (Moment(1000.0, 0, "lost", "c.d"), Moment(2000.0, 1000, "x", "a.b"))
    made = Diagnosis("1", "1", Job("j-map", "map", "map"), "known", root, (root,), timeline=moments, ranks=ranks)
    page = open_page("viewer", width=width)
    page.goto(page_of(page_server, made))
    for selector in ("#ranks .blamed", "#time .picture circle.cause >> visible=true"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= width - box["width"]
    red = page.eval_on_selector("#time .picture circle.cause", "mark => getComputedStyle(mark).fill")
    assert page.eval_on_selector("#ranks .blamed", "frame => getComputedStyle(frame).stroke") == red


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("links", [2, 7])
def test_the_causal_chain_fits_or_folds(open_page: OpenPage, page_server: PageServer, width: int, links: int) -> None:
    """One drawing of the chain is shown, and it fits a phone and a desktop, however long it is."""
    names = [f"a.b{number}" for number in range(links)]
    findings = tuple(
        Finding(name, name, "a", "cause", "fatal", 0.9, explained_by=tuple(names[max(0, number - 1) : number]))
        for number, name in enumerate(names)
    )
    made = Diagnosis("1", "1", Job(f"j-chain{links}", "chain", "chain"), "known", findings[0], findings)
    page = open_page("viewer", width=width)
    page.goto(page_of(page_server, made))
    shown = [drawing for drawing in page.locator("#chain svg").all() if drawing.is_visible()]
    assert len(shown) == 1
    box = shown[0].bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width
    assert shown[0].locator("rect").count() == links


def test_dumps_are_read_not_shown(open_page: OpenPage, page_server: PageServer) -> None:
    """The page of a hung job shows what its dumps say, no bytes of them, and no settings where none were compared."""
    page = open_page("viewer")
    page.goto(f"/incidents/{page_server.rich[0]}")
    evidence = page.inner_text("#evidence")
    assert "all_reduce" in evidence
    assert "\ufffd" not in page.inner_text("main")
    assert "Lines around" not in evidence
    assert "inferred from" in page.inner_text(".card")
    assert page.locator("#environment").count() == 0
