"""What the tests of `aclshim report` ask of a page in a real browser: check.py WHAT PAGE [ARGUMENT...].

Ends with 0 if all of it holds; else says what does not."""

import sys

from browser import Browser

failures = []


def want(what, is_so, got=""):
    if not is_so:
        failures.append(f"{what}: {got!r}")


def text(browser, css):
    return browser.run("const of = document.querySelector(arguments[0]); return of && of.innerText", css)


def opened(page, width=1280, height=900, dark=False):
    browser = Browser(width, height, dark)
    browser.open("file://" + page)
    browser.painted()
    return browser


def quiet(browser):
    """No complaints, no requests, and nothing that sticks out of the window."""
    want("the script ran to its end", browser.run("return document.documentElement.dataset.ready") == "yes")
    complaints = browser.complaints()
    want("nothing on the console", not complaints, complaints)
    requests = browser.requests()
    want("no request", not requests, requests)
    widths = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    want("no scrolling sideways", widths[0] <= widths[1], widths)


def colors(browser, css):
    """How many different colours a canvas shows."""
    script = """
        const canvas = document.querySelector(arguments[0]);
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
        copy.drawImage(canvas, 0, 0);
        const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = new Map();
        for (let at = 0; at < pixels.length; at += 4) {
          const color = pixels.slice(at, at + 4).join(" ");
          seen.set(color, (seen.get(color) || 0) + 1);
        }
        return [...seen].filter(([, count]) => count > 20).length;
    """
    return browser.run(script, css)


def view(browser):
    return [float(at) for at in browser.run("const {from, to} = document.querySelector('#tracks').dataset; return [from, to]")]


def marks(browser, css):
    return int(browser.run("return document.querySelector(arguments[0]).dataset.marks", css))


def slowest(browser):
    """When the slowest call began, how long it took and what it returned."""
    script = """
        const {calls, slowest: [of]} = JSON.parse(document.querySelector("#data").textContent);
        return [calls.time[of], calls.duration[of], calls.code[of]];
    """
    return browser.run(script)


def zooming(browser):
    def width():
        begin, end = view(browser)
        return end - begin

    whole = width()
    browser.click("#zoom-in")
    want("the button zooms in", abs(width() - whole / 2) < 2, (whole, width()))
    before = width()
    browser.wheel("#tracks", -300)
    want("the wheel zooms in", width() < before * 0.8, (before, width()))
    before = view(browser)
    browser.drag("#tracks", 120)
    after = view(browser)
    want("a drag to the right shows what was earlier", after[0] < before[0] and after[1] < before[1], (before, after))
    want("a drag keeps the width", abs((after[1] - after[0]) - (before[1] - before[0])) < 2, (before, after))
    before = width()
    browser.keys("#tracks", "+")
    want("the key + zooms in", width() < before, (before, width()))
    before = view(browser)
    browser.keys("#tracks", "\ue014")
    want("the right arrow shows what is later", view(browser)[0] > before[0], (before, view(browser)))
    browser.keys("#tracks", "0")
    want("the key 0 shows everything", abs(width() - whole) < 2, (whole, width()))
    browser.click("#slowest-table tbody button")
    begin, end = view(browser)
    time, took, _ = slowest(browser)
    want("a slow call is shown in the timeline", begin <= time and time + took <= end, (begin, end, time, took))
    want("... with a little around it", abs(width() - min(max(12 * took, 2000), whole)) < 2, (begin, end, took, whole))
    want("... with marks", marks(browser, "#tracks") > 0)


def hovering(browser):
    """The tip over the slowest call, which is in view, tells of it."""
    cells = browser.run("return [...document.querySelectorAll('#slowest-table tbody tr:first-child td')].map(of => of.innerText)")
    took, function, size, direction = cells[:4]
    time, lasted, code = slowest(browser)
    (begin, end), gutter = view(browser), 190
    wide = browser.run("return document.querySelector('#tracks').clientWidth")
    x = round(gutter + (time + lasted / 2 - begin) / (end - begin) * (wide - gutter) - wide / 2)
    returned = "returned 0" if code == 0 else "returned "
    for y in range(-140, 141, 8):
        browser.hover("#tracks", x, y)
        shown = text(browser, "#tip")
        if shown and took in shown:
            for word in [function, size, direction, returned, "thread ", "from "]:
                want("the tip tells of the call", word in shown, shown)
            return
    want("a tip over the slowest call", False, took)


def opening(browser, rule, values, fix):
    """A click on a finding opens it, and a link to it does too."""
    css = f"#{rule}"
    before = text(browser, css)
    want("closed at first", values not in before and fix not in before, before)
    browser.click(css + " > summary")
    after = text(browser, css)
    want("open after a click", browser.run("return document.querySelector(arguments[0]).open", css))
    want("the values", values in after, after)
    want("what to do", fix in after, after)
    want("what is wrong is marked", values in (text(browser, css + " mark") or ""), text(browser, css + " mark"))
    browser.click(css + " > summary")
    want("closed by another", not browser.run("return document.querySelector(arguments[0]).open", css))
    browser.run("location.hash = arguments[0]", rule)
    browser.painted()
    want("opened by a link", browser.run("return document.querySelector(arguments[0]).open", css))


def whole(page, *expected):
    """A run with threads, streams, findings and failures."""
    rule, values, fix, threads, calls = expected
    with opened(page) as browser:
        want("nothing was lost", "Nothing was lost" in text(browser, "#losses"), text(browser, "#losses"))
        want("calls", calls in text(browser, "#tiles"), text(browser, "#tiles"))
        for canvas in ["#bandwidth", "#tracks"]:
            want(f"marks in {canvas}", marks(browser, canvas) >= 10, marks(browser, canvas))
            want(f"colours in {canvas}", colors(browser, canvas) >= 5, colors(browser, canvas))
        for box in ["#sizes", "#durations"]:
            script = "return [...document.querySelectorAll(arguments[0] + ' rect')].filter(bar => bar.getBBox().height > 1).length"
            want(f"bars in {box}", browser.run(script, box) >= 5, browser.run(script, box))
        names = browser.run("return [...document.querySelectorAll('#track-table tbody tr td:first-child')].map(of => of.textContent)")
        want("threads", sum(name.startswith("thread ") for name in names) == int(threads), names)
        want("streams", sum(name.startswith("stream ") for name in names) == int(threads), names)
        for css in ["#failure-list", "#function-table", "#site-table", "#processes"]:
            want(f"rows in {css}", browser.run("return document.querySelectorAll(arguments[0] + ' tbody tr').length", css) > 0)
        before = browser.run("return document.querySelector('#sizes svg').outerHTML")
        browser.run("const of = document.querySelector('#function-choice'); of.value = '0'; of.dispatchEvent(new Event('change'))")
        want("another function, other bars", browser.run("return document.querySelector('#sizes svg').outerHTML") != before)
        zooming(browser)
        hovering(browser)
        opening(browser, rule, values, fix)
        quiet(browser)
    for width, height, dark in [(360, 740, True), (3840, 2160, False)]:
        with opened(page + "#" + rule, width, height, dark) as browser:
            want("opened by the address", browser.run("return document.getElementById(arguments[0]).open", rule))
            want("marks", marks(browser, "#tracks") >= 10)
            browser.run("document.querySelectorAll('details').forEach(of => of.open = true)")
            quiet(browser)


def told(page, *words):
    """The words stand in the first section."""
    with opened(page) as browser:
        shown = text(browser, "main > section:first-child")
        for word in words:
            want("said at the top", word in shown, shown)
        want("not fine", "Nothing was lost" not in shown, shown)
        quiet(browser)


def hostile(page, *names):
    """Names that are markup are shown as they are, and do nothing."""
    with opened(page) as browser:
        shown = text(browser, "body")
        for name in names:
            want("shown as text", name in shown, name)
        found = browser.run("return [document.images.length, document.scripts.length, document.querySelectorAll('iframe, object, base, form').length]")
        want("nothing but our own elements", found == [0, 2, 0], found)
        want("nothing ran", browser.run("return window.ran === undefined"))
        quiet(browser)


def small(page, *words):
    """There is little to show, and it is shown well."""
    with opened(page) as browser:
        shown = text(browser, "body")
        for word in words:
            want("shown", word in shown, shown)
        want("no broken number", not any(bad in shown for bad in ["NaN", "undefined", "null", "Infinity"]), shown)
        quiet(browser)


def large(page, calls):
    """A long trace: bins and some calls; deep in it there is still something to see."""
    with opened(page) as browser:
        want("calls", calls in text(browser, "#tiles"), text(browser, "#tiles"))
        want("marks", marks(browser, "#tracks") > 100, marks(browser, "#tracks"))
        # Elsewhere nobody may have called for a while.
        browser.click("#slowest-table tbody button")
        for _ in range(4):
            want("marks in depth", marks(browser, "#tracks") > 0)
            browser.click("#zoom-in")
        want("not all one by one", "in steps of" in text(browser, "#timeline-about"))
        quiet(browser)


def shot(page, out, width="1280", height="900", dark=""):
    """A picture, for people."""
    with opened(page, int(width), int(height), bool(dark)) as browser:
        tall = browser.run("return document.documentElement.scrollHeight")
        browser.screenshot(out, x=0, y=0, width=int(width), height=tall)


if __name__ == "__main__":
    _, what, page, *arguments = sys.argv
    {"whole": whole, "told": told, "hostile": hostile, "small": small, "large": large, "shot": shot}[what](page, *arguments)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)
