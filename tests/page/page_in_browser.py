"""The page of `shadowprof report --html` in a headless browser: every part opens, clicks, keys and
search work, at both widths and in both colour schemes; nothing is said on the console and nothing is
fetched; names that look like markup stay names; lists of 10,000 entries are quick. Argument: a
program to profile. With SHADOWPROF_SCREENSHOTS=FOLDER it leaves pictures of what it saw."""

import json
import os
import subprocess
import sys
import tempfile
import time

from browser import Browser, find_browser

SHADOWPROF = os.environ["SHADOWPROF"]
SCREENSHOTS = os.environ.get("SHADOWPROF_SCREENSHOTS")
# Of a profile in mode full, which has no times.
PARTS = ["overview", "opportunities", "flame", "functions", "inclusive", "paths", "edges", "calls", "values", "latencies", "code"]
WIDE, PHONE = (1440, 900), (390, 844)


def check(condition, otherwise):
    if not condition:
        sys.exit(f"FAILED: {otherwise}")


def report(profile, page):
    subprocess.run([SHADOWPROF, "report", "--html", page, profile], check=True)


def active(browser):
    return browser.run("document.querySelector('#tabs [aria-selected=true]').id").removeprefix("tab-")


def open_part(browser, part):
    browser.click(f"#tab-{part}")
    browser.wait_for(f"document.querySelector('#tab-{part}').getAttribute('aria-selected') === 'true'")


def every_part_opens(browser, page):
    for (width, height), phone in ((WIDE, False), (PHONE, True)):
        for scheme in ("light", "dark"):
            browser.resize(width, height, phone)
            browser.prefer(scheme)
            browser.open(page)
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            check((int(ground[4:].split(",")[0]) < 128) == (scheme == "dark"), f"{scheme} has the ground {ground}")
            for part in PARTS:
                open_part(browser, part)
                check(browser.run("document.querySelector('#panel').innerText.length") > 20, f"{part} is empty")
                wide = browser.run("document.documentElement.scrollWidth")
                check(wide <= width, f"{part} is {wide} pixels wide in a window of {width}")
                if SCREENSHOTS:
                    time.sleep(0.3)
                    browser.screenshot(os.path.join(SCREENSHOTS, f"{part}-{width}-{scheme}.png"))


def clicks_work(browser, page):
    browser.resize(*WIDE)
    browser.open(page)

    browser.click(".findings-short button")
    browser.wait_for("document.activeElement.classList.contains('finding')")
    browser.click(".finding:first-child .link")
    browser.wait_for("document.querySelector('.assembly .marked')")

    open_part(browser, "functions")
    name = browser.run("document.querySelector('[data-row=\"0\"] strong').textContent")
    browser.click("[data-row='0']")
    browser.wait_for(f"document.querySelector('.code-head h2')?.textContent.includes({json.dumps(name)})")
    check(browser.run("document.querySelectorAll('.assembly .line').length") > 10, "there is no code")
    check("for (int i" in browser.run("document.querySelector('.lines.source').innerText"), "there is no source")
    browser.click(".source .line[style*='--heat: 0.']")
    check(browser.run("document.querySelectorAll('.marked').length") > 0, "a source line marks nothing")

    open_part(browser, "paths")
    browser.click("[data-row='2']")
    browser.wait_for("document.querySelector('[data-row=\"2\"]').getAttribute('aria-selected') === 'true'")
    blocks = browser.run("document.querySelectorAll('.block').length")
    check(blocks == browser.run("Data.lists.paths.entry(2).blocks.length"), f"the path is drawn with {blocks} blocks")

    open_part(browser, "calls")
    called = browser.run("Data.lists.calls.entry(0).from.key")
    browser.click("[data-row='0']")
    browser.wait_for("document.querySelector('.assembly .marked')")
    check(browser.run("location.hash").startswith(f"#code/{called}/"), "a call does not open the code that calls")

    open_part(browser, "values")
    browser.click("[data-row='1']")
    browser.wait_for("document.querySelectorAll('.histogram tr').length >= 1")

    open_part(browser, "latencies")
    for row in range(2):
        browser.click(f"[data-row='{row}']")
        browser.wait_for(f"document.querySelector('.side h2').textContent === Data.fullLabel(Data.lists.latencies.entry({row}).at)")
        bars = browser.run("document.querySelectorAll('.times-bar').length")
        check(bars == browser.run(f"Data.lists.latencies.entry({row}).histogram.length") > 0, f"the histogram has {bars} bars")
    chased = browser.run("Data.lists.latencies.entry(1).at.text")
    browser.click(".side .link")
    browser.wait_for("document.querySelector('.assembly .marked .load-note .bar')")
    marked = browser.run("document.querySelector('.assembly .marked code').textContent")
    check(marked == chased, f"the code of {chased} is said to be {marked}")

    open_part(browser, "flame")
    browser.wait_for("document.querySelector('.flame-info').innerText.includes('in all')")
    x, y = browser.run("(() => { const b = document.querySelector('canvas').getBoundingClientRect(); return [b.left + 20, b.top + 12]; })()")
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    browser.wait_for("!document.querySelector('.crumbs').hidden")
    chosen = browser.run("[...document.querySelectorAll('.crumbs button')].at(-1).textContent")
    check(chosen == "main", f"the flame graph begins with {chosen}")
    # What main calls stands below; a click on that looks into it, and names main as its caller.
    callees = "document.querySelectorAll('.flame-around > div')[1].querySelectorAll('button')"
    browser.wait_for(f"{callees}.length > 0")
    callee = browser.run(f"{callees}[0].textContent")
    browser.run(f"{callees}[0].click()")
    browser.wait_for(f"[...document.querySelectorAll('.crumbs button')].at(-1).textContent === {json.dumps(callee)}")
    callers = browser.run("[...document.querySelectorAll('.flame-around > div')[0].querySelectorAll('button')].map((b) => b.textContent)")
    check("main" in callers, f"{callee} is called by {callers}")
    browser.click(".crumbs button")
    browser.wait_for("document.querySelector('.crumbs').hidden")
    check(browser.run("document.querySelector('.flame-around').hidden"), "callers of nothing are shown")
    colours = browser.run("""(() => {
        const c = document.querySelector('canvas'), seen = new Set();
        const data = c.getContext('2d').getImageData(0, 5, c.width, 1).data;
        for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());
        return seen.size; })()""")
    check(colours > 2, "the flame graph is not drawn")

    browser.run("history.back()")
    browser.wait_for("document.querySelector('#tab-code').getAttribute('aria-selected') === 'true'")

    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.click("#theme")
    check(browser.run("getComputedStyle(document.body).backgroundColor") != before, "the theme does not change")
    browser.click("#theme")


def a_phone_covers_the_list(browser, page):
    browser.resize(*PHONE, phone=True)
    browser.open(page)
    open_part(browser, "paths")
    browser.click("[data-row='0']")
    browser.wait_for("document.querySelector('.side.open')?.getBoundingClientRect().width === innerWidth")
    browser.click(".side .close")
    browser.wait_for("!document.querySelector('.side.open')")


def keys_and_search_work(browser, page):
    browser.resize(*WIDE)
    browser.open(page)
    for i, part in enumerate(PARTS):
        browser.press("1234567890-"[i])
        check(active(browser) == part, f"key {i + 1} opens {active(browser)}, not {part}")
    browser.press("4")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    check(browser.run("document.querySelector('[aria-selected=true][data-row]').dataset.row") == "1", "the arrow keys do not move")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#tab-code').getAttribute('aria-selected') === 'true'")

    browser.press("?")
    check(browser.run("document.querySelector('#help').open"), "there is no help")
    browser.click("#help button")
    check(not browser.run("document.querySelector('#help').open"), "the help does not close")

    browser.press("4")
    # How many rows are drawn changes when the table gets its size.
    badge = "document.querySelector('#tab-functions .badge').textContent"
    every = browser.run(badge)
    browser.press("/")
    browser.type("rotate_add")
    browser.wait_for("document.body.classList.contains('searching')")
    names = browser.run("[...document.querySelectorAll('[data-row] strong')].map((s) => s.textContent)")
    check(names == ["rotate_add"], f"the search finds {names}")
    badges = browser.run("Object.fromEntries([...document.querySelectorAll('#tabs button')].map((t) => [t.id, t.querySelector('.badge').textContent]))")
    check(badges["tab-functions"] == "1" and int(badges["tab-opportunities"]) >= 1 and int(badges["tab-calls"]) >= 1,
          f"the search says {badges}")
    for part in PARTS[1:]:
        open_part(browser, part)
    browser.click("#search")
    browser.press("Escape")
    open_part(browser, "functions")
    browser.wait_for(f"{badge} === {json.dumps(every)} && document.querySelectorAll('[data-row]').length > 1")


def names_are_no_markup(browser, folder, profile):
    evil = "</script><script>document.title='owned'</script><!--<script>&lt;img src=x onerror=\"document.title='owned'\">"
    with open(profile, encoding="utf-8") as file:
        changed = json.load(file)
    for location in changed["locations"]:
        location["function"] = evil
        location["file"] = evil
        location["text"] = evil
    changed["targets"][0]["command"] = [evil, evil]
    changed["run"]["warnings"] = [evil]
    path, page = os.path.join(folder, "evil.json"), os.path.join(folder, "evil.html")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(changed, file)
    report(path, page)
    browser.open(page)
    for part in PARTS:
        if browser.run(f"Boolean(document.querySelector('#tab-{part}'))"):
            open_part(browser, part)
    check(browser.run("document.title") != "owned", "a name became a script")
    check(browser.run("document.querySelectorAll('img').length") == 0, "a name became an element")
    check(evil in browser.run("document.querySelector('#panel').textContent + Data.raw.strings.join('')"), "names are changed")


def long_profile(profile, entries):
    """As many entries in each list as asked for, all different."""
    with open(profile, encoding="utf-8") as file:
        p = json.load(file)
    first = p["locations"][0]
    p["locations"] = [dict(first, offset=hex(64 * i), function=f"function_{i}", function_offset=hex(64 * i), line=i,
                           text="jne 0x40") for i in range(entries)]
    counts = [entries + 1 - i for i in range(entries)]
    total = sum(counts)

    def statistics(n):
        return {"count": n, "stats": {"samples": min(n, 1), "squares": hex(n * n), "products": hex(n * total)}}

    def totals():
        return {"total": total, "unknown": 0, "exhaustive": True, "samples": 1, "total_squares": hex(total * total)}

    near = lambda i: (i * 7 + 1) % entries
    p["paths"] = dict(totals(), entries=[
        {"blocks": [i, near(i)], "ends": [i, near(i)], "lengths": [3, 4], **statistics(n)} for i, n in enumerate(counts)])
    p["edges"] = dict(totals(), entries=[
        {"from": i, "to": near(i), "kind": "taken", **statistics(n)} for i, n in enumerate(counts)])
    p["calls"] = dict(totals(), entries=[{"from": i, "to": near(i), **statistics(n)} for i, n in enumerate(counts)])
    p["methods"] = dict(totals(), instructions=totals(), entries=[
        {"function": i, "calls": n, "tail_calls": 0, "back_edges": 0, **statistics(n), "instructions": statistics(n)}
        for i, n in enumerate(counts)])
    p["contexts"] = dict(totals(), entries=[
        {"root": "thread", "frames": [i], "calls": n, **statistics(n), "inclusive": statistics(n)} for i, n in enumerate(counts)])
    p["callers"] = dict(totals(), entries=[
        {"function": i, "calls": n, "inclusive": statistics(n)} for i, n in enumerate(counts)])
    nothing = {"total": 0, "unknown": 0, "exhaustive": False, "samples": 0, "total_squares": "0x0"}
    p["time"] = dict(totals(), exhaustive=False, waiting=nothing, entries=[
        {"thread": f"thread {i}", "state": "user", "call": "", "frames": [i], **statistics(n), "waiting": statistics(0)}
        for i, n in enumerate(counts)])
    columns = 90
    p["timeline"] = {"total": columns, "unknown": 0, "exhaustive": False, "samples": columns, "total_squares": hex(columns),
                     "column_width": 100, "entries": [
                         {"column": i, "thread": "app", "state": "user", "call": "", "function": 1 if i < 30 else 2,
                          "count": 1, "stats": {"samples": 1, "squares": "0x1", "products": "0x1"}} for i in range(columns)]}
    p["latencies"] = dict(p["latencies"], **totals(), loads=total, entries=[
        dict(p["latencies"]["entries"][0], location=i, origin=near(i), **statistics(n)) for i, n in enumerate(counts)])
    del p["values"]
    return p


def long_lists_are_quick(browser, folder, profile):
    entries = 10_000
    path, page = os.path.join(folder, "long.json"), os.path.join(folder, "long.html")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(long_profile(profile, entries), file)
    report(path, page)
    begin = time.monotonic()
    browser.open(page)
    opened = time.monotonic() - begin
    check(opened < 30, f"it took {opened:.1f} s to open {entries} entries")
    for part in ("functions", "paths", "edges", "calls", "latencies", "inclusive", "time"):
        took = browser.run(f"""(async () => {{
            const begin = performance.now();
            document.querySelector('#tab-{part}').click();
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.now() - begin; }})()""")
        check(took < 5000, f"it took {took:.0f} ms to show {part}")
        rows = browser.run("document.querySelectorAll('[data-row]').length")
        check(0 < rows < 200, f"{part} has {rows} rows in the document")
        for table in range(2 if part == "time" else 1):
            box = f"document.querySelectorAll('.list')[{table}]"
            browser.run(f"{box}.scrollTop = 1e9")
            browser.wait_for(f"{box}.querySelector('[data-row=\"{entries - 1}\"]')")
    browser.run("document.querySelector('#tab-timeline').click()")
    check(browser.run("document.querySelectorAll('.lane-bar').length") == 90, "the timeline has not a bar for each column")
    for column, function in ((10, "function_1"), (40, "function_2")):
        browser.run(f"document.querySelectorAll('.lane-bar')[{column}].click()")
        shown = browser.run("document.querySelector('.timeline-panel').textContent")
        check(f"{column / 10:.2f} s to" in shown and function in shown, f"column {column} of the timeline: {shown}")
    took = browser.run(f"""(async () => {{
        const begin = performance.now();
        const search = document.querySelector('#search');
        search.value = 'function_{entries - 7}';
        search.dispatchEvent(new Event('input'));
        while (!document.body.classList.contains('searching')) await new Promise((done) => setTimeout(done, 5));
        return performance.now() - begin; }})()""")
    check(took < 5000, f"a search took {took:.0f} ms")
    found = browser.run("document.querySelector('#tab-functions .badge').textContent")
    check(found == "1", f"the search found {found} functions")


def main(program):
    chromium = find_browser()
    if not chromium:
        print("skipped: there is no Chromium to open the page in")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="shadowprof-test-") as folder:
        profile, page = os.path.join(folder, "profile.json"), os.path.join(folder, "page.html")
        subprocess.run([SHADOWPROF, "run", "-q", "--mode", "full", "-o", profile, "--", program],
                       check=True, stdout=subprocess.DEVNULL)
        report(profile, page)
        with Browser(chromium) as browser:
            every_part_opens(browser, page)
            clicks_work(browser, page)
            a_phone_covers_the_list(browser, page)
            keys_and_search_work(browser, page)
            fetched = browser.run("performance.getEntriesByType('resource').map((r) => r.name)")
            check(fetched == [], f"the page fetched {fetched}")
            names_are_no_markup(browser, folder, profile)
            long_lists_are_quick(browser, folder, profile)
            check(browser.errors == [], "the console says: " + "\n".join(browser.errors))


main(sys.argv[1])
