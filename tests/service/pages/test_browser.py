"""The pages in a real browser: the way from an upload to a signature, each role, the keyboard alone, no JavaScript, and
accessibility.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.pages.conftest import Served
from triage.catalog.check import check
from triage.service.pages import show
from triage.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import JSHandle, Page

Visit = Callable[..., "Page"]
# The list of signatures by one domain: as it is, it is ten times as long and no other.
MAIN = [address if address != "/signatures" else "/signatures?domain=crash" for address, _, _ in show.NAV]


# Whatever a live region says, on each page that is opened.
TELL = """new MutationObserver(() => document.querySelectorAll("[role=status]").forEach((one) => one.textContent && window.told(one.textContent)))
    .observe(document, {subtree: true, childList: true, characterData: true})"""


def dropped(page: Page, path: Path) -> JSHandle:
    """What a browser has in hand when this file is dropped."""
    script = """([name, content]) => {
        const held = new DataTransfer();
        held.items.add(new File([Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0))], name));
        return held;
    }"""
    return page.evaluate_handle(script, [path.name, base64.b64encode(path.read_bytes()).decode()])


def known(served: Served, **wanted: Any) -> str:
    """An incident of the store."""
    with Store.open(served.path) as store:
        return next(
            item.id
            for item in store.search.listed()
            if all(getattr(item, name) == value for name, value in wanted.items())
        )


def clusters(served: Served) -> list[str]:
    """The waiting ones."""
    with Store.open(served.path) as store:
        return [item.id for item in store.clusters.listed()]


def test_from_an_upload_to_its_verdict(visit: Visit, archive: Path) -> None:
    """A tar is dropped, progress is said, the verdict comes, evidence opens, and it can be said to be wrong."""
    page = visit("submitter")
    told: list[str] = []
    page.expose_function("told", lambda says: told.append(says))
    page.add_init_script(TELL)
    page.goto("/upload")
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped(page, archive)})
    page.fill("input[name=name]", "llama-7b run 12")
    with page.expect_navigation(url=re.compile("/(tasks|incidents)/")):
        page.click("text=Diagnose")
    page.wait_for_url("**/incidents/i-*")
    assert any(says.endswith("MB sent") for says in told)
    assert {"waiting for a worker", "working", "reading", "comparing the ranks"} & {
        says.partition(",")[0] for says in told
    }
    assert "ValueError" in page.inner_text("h1")
    assert "llama-7b run 12" in page.inner_text("#job")
    assert "confidence" in page.inner_text(".card .facts")
    lines = page.locator("#evidence details", has_text="Lines around").first
    if lines.get_attribute("open") is None:
        lines.locator("summary").click()
    assert lines.locator("tr.own").first.is_visible()
    few = lines.locator("tr").count()
    lines.locator("text=lines before and after").click()
    page.wait_for_url("**around=30*")
    assert lines.locator("tr").count() > few
    number = lines.locator("tr.own th a").first
    number.click()
    assert page.url.endswith(f"-L{number.inner_text()}")
    page.fill("input[name=because]", "the shard was cut by the copy")
    page.click("button:has-text('Wrong')")
    page.wait_for_url("**said=wrong*")
    assert show.SAID["wrong"] in page.inner_text(".said")
    assert "the shard was cut by the copy" in page.inner_text("#people")


def test_two_clusters_become_one_and_come_apart_again(visit: Visit, served: Served) -> None:
    """Ticked, merged, seen in the audit log, taken back."""
    page = visit("curator")
    page.goto("/inbox")
    for name in clusters(served)[:2]:
        page.check(f"input[value={name}]")
    page.fill("input[name=because]", "the same reader")
    page.click("text=Merge those ticked")
    page.wait_for_url("**said=merged")
    kept = page.url.rpartition("/")[2].split("?")[0]
    assert "the same reader" in page.inner_text("section:has(#log)")
    assert kept in clusters(served)
    page.goto("/audit")
    page.click(f"tr:has-text('merge {kept}') >> button")
    page.wait_for_url("**said=undone")
    assert len(clusters(served)) >= 2


def test_a_cluster_is_taken_apart_and_put_aside(visit: Visit, served: Served) -> None:
    """From its own page: made one with another whose address is pasted, split again, out of the inbox and back."""
    page = visit("curator")
    one, other = clusters(served)[:2]
    page.goto(f"/clusters/{one}")
    page.fill("input[name=other]", f"{served.address}/clusters/{other}?said=merged")
    page.click("text=They are one")
    page.wait_for_url("**said=merged")
    page.locator("#prints ~ form input[name=key]").first.check()
    page.fill("#prints ~ form input[name=because]", "two readers")
    page.click("text=Split off those ticked")
    page.wait_for_url("**said=split")
    new = page.url.rpartition("/")[2].split("?")[0]
    assert show.SAID["split"] in page.inner_text(".said")
    assert "two readers" in page.inner_text("section:has(#log)")
    page.fill("form[action$=ignore] input[name=because]", "a test of the cluster itself")
    page.click("text=Out of the inbox")
    page.wait_for_url("**said=ignored")
    page.goto("/inbox")
    assert not page.locator(f"a[href='/clusters/{new}']").count()
    page.click("nav[aria-label=States] >> text=ignored")
    page.click(f"a[href='/clusters/{new}']")
    page.click("text=Back into the inbox")
    page.wait_for_url("**said=reopened")
    assert new in clusters(served)


def test_a_promoted_cluster_is_a_sound_signature(visit: Visit, served: Served, tmp_path: Path) -> None:
    """The YAML that is downloaded passes the catalog's check, and the page has said so."""
    page = visit("curator")
    page.goto(f"/clusters/{clusters(served)[0]}")
    page.fill("form:has(legend:text('Promote')) input[name=signature]", "data.found-by-the-browser")
    page.click("text=Draft the signature")
    assert "passes" in page.inner_text("section:has(#result)")
    with page.expect_download() as download:
        page.click("text=Download YAML")
    target = tmp_path / "data" / "found-by-the-browser.yaml"
    target.parent.mkdir()
    download.value.save_as(target)
    assert not [problem for problem in check([target]) if problem.severity == "error"]
    page.click("text=Mark the cluster as promoted")
    page.wait_for_url("**said=promoted")
    assert "data.found-by-the-browser" in page.inner_text(".card")


def test_search_finds_signatures_and_incidents(visit: Visit) -> None:
    """Words lead to both, and the words found are marked."""
    page = visit("viewer")
    page.goto("/search")
    page.fill("input[type=search]", "killed signal")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=killed*")
    assert page.locator("a[href='/signatures/data.worker-killed']").count()
    assert page.locator("section:has(#met) mark").count()


@pytest.mark.parametrize("role", ["viewer", "submitter", "curator", "admin"])
def test_each_role_signs_in_and_sees_what_it_may(visit: Visit, served: Served, role: str) -> None:
    """The door leads back to where one wanted to go; forms that a role may not use are not there."""
    page = visit(None)
    page.goto("/upload")
    assert "/sign-in" in page.url
    page.fill("input[name=token]", served.tokens[role])
    page.click("button:has-text('Sign in')")
    page.wait_for_url("**/upload")
    assert role in page.inner_text(".who")
    assert page.locator("input[type=file]").count() == (role != "viewer")
    page.goto("/inbox")
    assert page.locator("text=Merge those ticked").count() == (role in ("curator", "admin"))
    answer = page.goto("/audit")
    assert answer is not None
    assert answer.status == (200 if role in ("curator", "admin") else 403)
    page.click("text=Sign out")
    page.goto("/incidents")
    assert "/sign-in" in page.url


def test_a_wrong_token_does_not_open(visit: Visit) -> None:
    """It is said in words, on a page."""
    page = visit(None)
    page.goto("/sign-in")
    page.fill("input[name=token]", "trg_wrong")
    page.click("button:has-text('Sign in')")
    assert "wrong" in page.inner_text("h1")


def test_the_keyboard_is_enough(visit: Visit, served: Served) -> None:
    """Signing in, walking the list, opening an incident and agreeing, without a pointer; what has the focus can be
    seen.
    """
    page = visit(None)
    page.goto("/incidents")
    page.keyboard.type(served.tokens["submitter"])
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


def test_without_javascript_all_of_it_works(visit: Visit, served: Served, archive: Path) -> None:
    """Filter, feedback, theme and upload are forms; the task's page renews itself until it leads to the diagnosis."""
    page = visit("submitter", scripts=False)
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


def test_copy_buttons_copy(visit: Visit, served: Served) -> None:
    """What is copied is the step, not the page's words around it."""
    page = visit("viewer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/incidents/{known(served, signature='data.worker-killed')}")
    page.click(".todo button.copy >> nth=0")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text(".todo li >> nth=0 >> span")


def things(served: Served) -> list[str]:
    """Pages of one thing each; between them they have every section that there is."""
    with Store.open(served.path) as store:
        cluster = store.clusters.listed(states=("open", "named", "promoted"))[0].id
    incidents = [f"/incidents/{name}" for name in (*served.rich, known(served, signature=None))]
    more = ["/signatures/data.worker-killed", "/search?q=sigkill", f"/tasks/{served.running}", "/sign-in", "/nothing"]
    return [*incidents, f"/clusters/{cluster}", f"/clusters/{cluster}/promote?signature=data.axe", *more]


BARRIERS = """() => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    return axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))]));
}"""


@pytest.mark.parametrize("pages", ["lists", "things"])
def test_no_page_has_a_serious_barrier(visit: Visit, served: Served, pages: str) -> None:
    """axe-core finds no serious or critical violation, in light and in dark, on a desk and on a phone; no page scrolls
    sideways.
    """
    axe = pytest.importorskip(
        "axe_core_python.sync_playwright", reason="axe-core-python is not installed: pip install 'triage-kb[dev]'"
    ).Axe()
    page, guest = visit("curator"), visit(None)
    found = []
    for address in MAIN if pages == "lists" else things(served):
        shown = guest if address == "/sign-in" else page
        shown.goto(address)
        shown.evaluate(axe.axe_script)
        for colours, width in itertools.product(("light", "dark"), (1240, 390)):
            shown.emulate_media(color_scheme=colours)
            shown.set_viewport_size({"width": width, "height": 900})
            found += [(address, colours, width, *barrier) for barrier in shown.evaluate(BARRIERS)]
            wide = shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            found += [(address, colours, width, "scrolls sideways", wide)] if wide > 0 else []
    assert not found
