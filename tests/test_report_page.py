"""The page in a real Chromium, from the disk, with the network off."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser, axe_core
from report_runs import HOSTILE, answered_run, csq_run, knownlie_run
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from typer.testing import CliRunner

from belie.cli import app
from belie.report import make_report

#: Sections of every page that holds CSQ and KnownLie; those of a page that holds more, in their order.
SECTIONS = ["verdict", "csq", "explained", "knownlie", "comparison", "evidence", "method", "provenance"]
REASONED = [*SECTIONS[:3], "traces", *SECTIONS[3:]]
MORE = [*SECTIONS[:3], "interview", "knownlie", "experiments", *SECTIONS[4:]]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One, two and six models, one of which is hostile in every word; all six have both instruments somewhere."""
    root = tmp_path_factory.mktemp("page")
    a = csq_run(root / "a", "sim/deceiver(0.3)", chains=20), knownlie_run(root / "ak", "sim/deceiver(w=0.3)")
    b = csq_run(root / "b", "sim/guesser", chains=20, sample=True), knownlie_run(root / "bk", "sim/guesser", seed=2)
    rest = [csq_run(root / f"c{i}", f"sim/{name}", chains=10) for i, name in enumerate(("honest", "concealer(0.4)"))]
    rest += [knownlie_run(root / f"k{i}", f"belie/agent-{i}", seed=i, rounds=None if i else 90) for i in range(2)]
    hostile = answered_run(root / "h", HOSTILE), knownlie_run(root / "hk", "http/hostile", said=HOSTILE)
    told = csq_run(root / "asked", "sim/deceiver(0.3)", chains=8, sample=True)
    shifted = root / "treatments"
    for words in (
        ["interview", told, "--confidence", "--confront", "--behaviour", "correct=0.6,double=0.3,deny=0.1"],
        ["experiment", "treatments", "sim/deceiver(0.3)", "--n", "3,5", "--chains", "20", "-o", shifted],
    ):
        done = CliRunner().invoke(app, ["csq", *map(str, words)])
        assert done.exit_code == 0, done.output
    made = {"one": a[:1], "two": (*a, *b), "six": (*a, *b, *rest), "hostile": hostile, "more": (told, shifted)}
    paths = {}
    for name, runs in made.items():
        paths[name] = root / f"{name}.html"
        paths[name].write_text(make_report(runs).html, encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    ("name", "models", "sections"),
    [("one", 1, SECTIONS), ("two", 2, SECTIONS), ("six", 6, SECTIONS), ("hostile", 1, REASONED), ("more", 2, MORE)],
)
def test_the_page_opens_offline_with_every_section_and_asks_for_nothing(
    browser: Browser, pages, name, models, sections
):
    browser.open(pages[name])
    assert browser.run("return [...document.querySelectorAll('main > section')].map(s => s.id)") == sections
    assert browser.run("return [...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))") == sections
    assert browser.run("return document.querySelectorAll('.card').length") == models
    assert browser.run("return document.querySelector('.copy').hidden") is False  # the script ran: its hash is right
    assert browser.run("return getComputedStyle(document.querySelector('.card')).borderLeftWidth") == "5px"
    assert browser.console() == []
    assert browser.requests() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_every_figure_has_a_table_and_words(browser: Browser, pages):
    browser.open(pages["two"])
    figures = browser.run("""
        return [...document.querySelectorAll('figure')].map(f => ({
            id: f.id, rows: f.querySelectorAll('tbody tr').length, name: f.querySelector('h3, h4').textContent,
            words: [...f.querySelectorAll('svg.chart')].map(s => s.getAttribute('aria-label').length)}))""")
    assert len(figures) >= 18
    assert all(one["rows"] > 0 and one["name"] and all(words > 20 for words in one["words"]) for one in figures)
    drawn = {one["id"] for one in figures if one["words"]}
    wanted = "csq-rho csq-delta csq-delta_net csq-error csq-beta csq-plane csq-coverage knownlie-dr knownlie-excess"
    wanted += " knownlie-domains-incentive knownlie-mechanisms knownlie-success knownlie-kpr knownlie-trust"
    assert set(wanted.split()) <= drawn


def test_a_table_is_copied_as_csv(browser: Browser, pages):
    browser.open(pages["two"])
    text = browser.run("""
        navigator.clipboard.writeText = () => Promise.reject(new Error('no'));
        document.querySelector('#csq-rho details').open = true;
        document.querySelector('#csq-rho .copy').click();
        return new Promise(done => setTimeout(() => done(document.querySelector('#csq-rho .csv').value), 100))""")
    lines = text.splitlines()
    assert lines[0] == "Model,n,ρ,from,to,ρ unsmoothed,rests on"
    assert lines[1].startswith("sim/deceiver(w=0.3),3,0.")
    assert len(lines) == 1 + 2 * 4
    assert browser.run("return document.querySelector('#csq-rho .csv').hidden") is False


def test_a_hostile_model_shows_as_text(browser: Browser, pages):
    browser.open(pages["hostile"])
    browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
    seen = browser.run("return document.querySelector('main').innerText")
    for text in ("<script>document.title='taken'</script>", "</script></style></textarea></details>", "{{ 7 * 7 }}"):
        assert text in seen
    assert "javascript:document.title" in seen
    assert "[U+202E]" in seen
    assert "of 1,000,0" in seen
    assert browser.run("return document.title").startswith("Belie report")
    counts = browser.run(
        "return ['script', 'img', 'iframe', 'a:not([href^=\"#\"])'].map(s => document.querySelectorAll(s).length)"
    )
    assert counts == [1, 0, 0, 0]
    assert browser.console() == []
    assert browser.requests() == []


def test_the_keyboard_reaches_everything_in_order(browser: Browser, pages):
    browser.open(pages["one"])
    wanted = browser.run("""
        const all = [...document.querySelectorAll('a[href], button, summary, [tabindex="0"]')]
            .filter(e => e.checkVisibility());
        all.forEach((e, i) => e.dataset.stop = i);
        return all.length""")
    seen = []
    for _ in range(wanted):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        seen.append(browser.run("return document.activeElement.dataset.stop"))
    assert seen == [str(i) for i in range(wanted)]
    assert wanted > 20
    browser.open(pages["one"])
    ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    box = browser.run("const r = document.activeElement.getBoundingClientRect(); return [r.left, r.width]")
    assert box[0] >= 0
    assert box[1] > 50
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    assert browser.run("return document.activeElement.id") == "main"
    browser.run("document.querySelector('#csq-rho summary').focus()")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    assert browser.run("return document.querySelector('#csq-rho details').open") is True


@pytest.fixture(scope="module")
def axe(request) -> Path:
    return axe_core(request.config.cache.mkdir("axe"))


@pytest.mark.parametrize(
    ("name", "width", "dark"), [("two", 1440, False), ("hostile", 390, True), ("more", 390, False)]
)
def test_axe_finds_no_serious_fault(browser: Browser, pages, axe, name, width, dark):
    browser.open(pages[name], width=width, dark=dark)
    # all tables and dialogues of the first figures and episodes; all of them would only say the same many times over
    browser.run("[...document.querySelectorAll('details')].filter((d, i) => i % 3 == 0).forEach(d => d.open = true)")
    assert browser.faults(axe) == []


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_runs_out_of_the_page_or_of_a_chart(browser: Browser, pages, width, dark, tmp_path):
    for name in ("two", "six", "hostile"):
        browser.open(pages[name], width=width, dark=dark)
        browser.run("document.querySelectorAll('details.dialogue').forEach(d => d.open = true)")
        assert browser.run("return document.documentElement.scrollWidth") <= width
        outside = browser.run("""
            const out = [];
            for (const svg of document.querySelectorAll('svg.chart, svg.path')) {
                const view = svg.viewBox.baseVal;
                for (const text of svg.querySelectorAll('text')) {
                    const b = text.getBBox();
                    if (b.x < -2 || b.y < -2 || b.x + b.width > view.width + 2 || b.y + b.height > view.height + 2)
                        out.push(`${svg.closest('figure')?.id}: ${text.textContent}`);
                }
            }
            return out""")
        assert outside == []
    browser.open(pages["two"], width=width, dark=dark)
    browser.screenshot(tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 50_000


def test_the_page_is_whole_without_its_script(browser: Browser, pages):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["two"])
        root = browser.cdp("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = browser.cdp("DOM.querySelectorAll", nodeId=root, selector="main > section, svg.chart, tbody tr")
        assert len(found["nodeIds"]) > 200
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints(browser: Browser, pages):
    browser.open(pages["two"])
    browser.run("""
        addEventListener('beforeprint', () => {
            window.opened = document.querySelectorAll('details[open]').length;
        })""")
    printed = browser.cdp("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]
    assert len(printed) > 100_000
    assert browser.run("return window.opened") > 20  # tables and dialogues are open on paper
    assert browser.run("return document.querySelectorAll('details.table[open]').length") == 0  # and closed again


def test_two_models_with_both_instruments_stay_small(tmp_path):
    runs = []
    everything = ("airline", "billing", "debt", "deposit", "insurance", "recall", "refund", "subscription")
    for i, name in enumerate(("deceiver(0.3)", "guesser")):
        runs.append(
            csq_run(tmp_path / f"c{i}", f"sim/{name}", sizes=(3, 5, 10, 20, 30, 40, 80), chains=20, sample=True)
        )
        runs.append(knownlie_run(tmp_path / f"k{i}", f"sim/{name}", domains=everything, said=["x" * 6000], seed=i))
    assert len(make_report(runs).html.encode()) < 6_000_000
