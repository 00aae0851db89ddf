#!/usr/bin/env python3
"""Opens a fabric view in Chromium, plays it, and compares the numbers of links that are pressed with the rows.

    PYTHON=venv/bin/python cargo test -p anabranch-report browser:: -- --ignored

or, for a page of your own: venv/bin/python crates/studies/report/tests/browser/view.py PAGE RUN [RUN] [--pictures DIR]

RUN are the directories that the page is of, with CSV rows. check.py lists what is needed.
"""

import argparse
import base64
import csv
import pathlib
import random
import re
import sys
import time

from selenium.webdriver import ActionChains, Keys

from check import FONTS, browser, emulate

# What sticks out of the window, or of the box that should hold it.
CUT_OFF = """
const found = [];
for (const box of document.querySelectorAll("header, header *, .tools, .tools > *, #timeline, .play *, aside section, aside table, aside h2, #legend *")) {
  if (!box.checkVisibility() || box.closest("select")) continue;
  const { right, width } = box.getBoundingClientRect();
  if (width > 0 && right > innerWidth + 0.5) found.push(`${box.tagName}#${box.id} ends at ${right}`);
}
if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
const side = document.getElementById("side");
if (side.scrollWidth > side.clientWidth + 1) found.push(`the side hides ${side.scrollWidth - side.clientWidth} px`);
return found;
"""
# A fingerprint of what a panel shows.
PICTURE = """
const panel = fabricView.panels[arguments[0]];
const copy = new OffscreenCanvas(panel.base.width, panel.base.height).getContext("2d", { willReadFrequently: true });
copy.drawImage(panel.base, 0, 0);
const { data } = copy.getImageData(0, 0, panel.base.width, panel.base.height);
let sum = 0;
for (let i = 0; i < data.length; i += 4) sum = (sum * 31 + data[i] * 65536 + data[i + 1] * 256 + data[i + 2]) % 4294967291;
return sum;
"""
CARD = """
return [document.querySelector("#chosen h2").textContent,
  [...document.querySelectorAll("#chosen td[data-key]")].map((cell) => [cell.dataset.key, Number(cell.dataset.run), cell.dataset.value])];
"""
SEEK = """
const slider = document.querySelector("#timeline input");
slider.value = arguments[0] * 1e6;
slider.dispatchEvent(new Event("input"));
"""


class Rows:
    """The rows of a run."""

    def __init__(self, directory):
        with open(directory / "links.csv", newline="") as file:
            self.links = {f"{row['from']}\u2192{row['to']}": row for row in csv.DictReader(file)}
        self.trace = []
        if (directory / "trace.csv").exists():
            with open(directory / "trace.csv", newline="") as file:
                self.trace = [(int(row["time_ps"]), row["event"], row["packet"]) for row in csv.DictReader(file)]
        self.series = {}
        if (directory / "series.csv").exists():
            with open(directory / "series.csv", newline="") as file:
                for row in csv.DictReader(file):
                    self.series.setdefault(f"{row['from']}\u2192{row['to']}", {})[int(row["time_ps"])] = row

    def traced(self, now):
        """What the page must count of data packets up to `now`."""
        count = lambda events: sum(at <= now and event in events and packet in ("data", "header") for at, event, packet in self.trace)
        names = {"sent": ["send"], "received": ["receive"], "marked": ["mark"], "trimmed": ["trim"], "dropped_or_lost": ["drop", "loss"]}
        return {f"trace_{name}": count(events) for name, events in names.items()}

    def expected(self, link, key, now, states=("queue_bytes", "queue_packets", "paused")):
        """The number that the card of `link` must show under `key`; None where there is none."""
        samples = self.series.get(link, {})
        before = max((at for at in samples if at < now), default=None)
        if key in ("load", "rate") or (key in samples.get(now, {}) and key not in self.links[link]):
            if now not in samples:
                return None
            column = "sent_bytes" if key in ("load", "rate") else key
            value = {"true": 1, "false": 0}.get(samples[now][column])
            value = int(samples[now][column]) if value is None else value
            if column in states:
                return value
            value -= int(samples[before][column]) if before is not None else value
            seconds = (now - before) / 1e12 if before is not None else 1
            if key == "rate":
                return value * 8 / seconds
            return value * 8 / seconds / int(self.links[link]["rate_bps"]) if key == "load" else value
        return self.links[link].get(key)


def settle(driver, seconds=0.35):
    time.sleep(seconds)
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")


def wait_for(driver, script, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if driver.execute_script(f"return {script}"):
            return True
        time.sleep(0.1)
    return False


def compare_card(driver, runs, wrong):
    """Compares every number of the card with the rows; how many."""
    link, cells = driver.execute_script(CARD)
    now = driver.execute_script("const run = fabricView.first; return run ? run.series.start_ps + run.sampleAt(fabricView.time) * run.series.interval_ps : 0")
    if "#" in link:
        return 0
    compared = 0
    at_now = driver.execute_script("return [...document.querySelectorAll('#now td[data-key]')].length")
    for place, (key, run, value) in enumerate(cells):
        # Counts may be shown twice: since the sample before, and of the whole run.
        rows = runs[run]
        if place >= at_now and key in rows.series.get(link, {}).get(now, {}):
            expected = rows.links[link].get(key)
        elif place < at_now and key in rows.links[link]:
            samples = rows.series[link]
            before = max((at for at in samples if at < now), default=None)
            expected = int(samples[now][key]) - (int(samples[before][key]) if before is not None else int(samples[now][key]))
        else:
            expected = rows.expected(link, key, now)
        if expected in (None, "") and value == "":
            continue
        if key == "fault":
            same = value == (expected or "")
        else:
            same = expected is not None and abs(float(value) - float(expected)) <= 1e-9 * max(1.0, abs(float(expected)))
        compared += 1
        if not same:
            wrong.append(f"{link} at {now} ps, {key} of run {run}: the card says {value!r}, the rows {expected!r}")
    return compared


def check(driver, page, runs, pictures):
    wrong = []
    emulate(driver, "screen", "light", 1280, 800)
    driver.get(page.resolve().as_uri())
    if not wait_for(driver, "document.documentElement.classList.contains('ready')"):
        return [f"not ready after a minute: {driver.get_log('browser')}"]
    settle(driver)
    wrong += [f"font not loaded: {font}" for font in driver.execute_async_script(FONTS) if not font.endswith("loaded")]
    wrong += driver.execute_script(CUT_OFF)
    panels = driver.execute_script("return fabricView.panels.length")
    if panels != len(runs):
        return wrong + [f"{panels} panels for {len(runs)} runs"]
    timed = driver.execute_script("return Boolean(fabricView.first)")
    if not driver.execute_script("return fabricView.time <= Math.min(...fabricView.runs.map((run) => run.facts.simulated_ps))"):
        wrong.append("the page opens after the end of a run")
    ids = driver.execute_script("return fabricView.measures.map((measure) => measure.id)")
    if ("total.even_split" in ids) != (panels > 1) or (panels > 1 and "total.queue_p99_bytes" in ids):
        wrong.append(f"the measures of {panels} runs are {ids}")

    if timed:
        # The slider moves the colours of every panel.
        shown = []
        for share in [0.15, 0.5]:
            driver.execute_script(SEEK, share)
            settle(driver)
            shown.append([driver.execute_script(PICTURE, panel) for panel in range(panels)])
        wrong += [f"panel {panel} looks the same at two times" for panel in range(panels) if shown[0][panel] == shown[1][panel]]
        # It plays, and the space bar stops it.
        driver.execute_script(SEEK, 0.2)
        before = driver.execute_script("return fabricView.time")
        driver.find_element("id", "play").click()
        time.sleep(1.5)
        driver.execute_script("document.activeElement.blur()")
        ActionChains(driver).send_keys(" ").perform()
        settle(driver)
        stopped = driver.execute_script("return fabricView.time")
        settle(driver)
        if not stopped > before:
            wrong.append("it does not play")
        if driver.execute_script("return fabricView.time") != stopped:
            wrong.append("the space bar does not stop it")
        # A step is a sample, in all panels.
        driver.execute_script(SEEK, 0.4)
        samples = "return fabricView.runs.map((run) => run.sampleAt(fabricView.time))"
        first = driver.execute_script(samples)
        ActionChains(driver).send_keys(Keys.ARROW_RIGHT).perform()
        second = driver.execute_script(samples)
        if [a + 1 for a in first] != second or len(set(second)) != 1:
            wrong.append(f"a step leads from samples {first} to {second}")

    # Packets of traced flows move, and their counts are those of the rows.
    if any(rows.trace for rows in runs):
        last = max(at for rows in runs for at, _, _ in rows.trace)
        seen = set()
        for share in [0.1, 0.35, 0.6, 1.0]:
            driver.execute_script("fabricView.seek(arguments[0], false)", share * last)
            settle(driver)
            seen.add(driver.execute_script("return fabricView.panels[0].over.toDataURL()"))
            now = driver.execute_script("return fabricView.time")
            told = driver.execute_script("return [...document.querySelectorAll('#counts td')].map((c) => [c.dataset.key, Number(c.dataset.run), c.dataset.value])")
            for run, rows in enumerate(runs):
                for key, value in rows.traced(now).items():
                    if (shown := [cell[2] for cell in told if cell[:2] == [key, run]]) != [str(value)]:
                        wrong.append(f"{key} of run {run} at {now} ps: the page says {shown}, the rows {value}")
        if len(seen) < 3:
            wrong.append(f"packets do not move: {len(seen)} pictures at 4 times")

    # Pressed links show the numbers of the rows.
    chance = random.Random(1)
    links = driver.execute_script("return fabricView.runs[0].links")
    canvas = driver.find_elements("css selector", "canvas.over")[0]
    compared, pressed = 0, set()
    for _ in range(12):
        if timed:
            driver.execute_script(SEEK, chance.uniform(0.05, 0.95))
        x, y, width, height = driver.execute_script(
            "const p = fabricView.panels[0]; return [...p.along(arguments[0], 0.4), p.width, p.height]", chance.randrange(links)
        )
        settle(driver)
        ActionChains(driver).move_to_element_with_offset(canvas, x - width / 2, y - height / 2).click().perform()
        settle(driver)
        name = driver.execute_script("return fabricView.chosen")
        if name and "\u2192" in name:
            pressed.add(name)
            compared += compare_card(driver, runs, wrong)
    if len(pressed) < 4 or compared < 40 * min(1, len(pressed)):
        wrong.append(f"of 12 presses {len(pressed)} met a link, {compared} numbers were compared")

    # Search finds a link by name, and shows it.
    name = driver.execute_script("return fabricView.runs[0].linkNames[arguments[0]]", links // 2)
    search = driver.find_element("id", "search")
    search.send_keys(name.replace("\u2192", "->"), Keys.ENTER)
    settle(driver, 0.8)
    if driver.execute_script("return fabricView.chosen") != name:
        wrong.append(f"searching {name} finds {driver.execute_script('return fabricView.chosen')}")
    compare_card(driver, runs, wrong)
    inside = driver.execute_script("const p = fabricView.panels[0], [x, y] = p.placeOf(arguments[0]); return x > 0 && y > 0 && x < p.width && y < p.height", name)
    if not inside:
        wrong.append(f"{name} was found but is not in sight")
    moved = driver.execute_script("return new Set(fabricView.panels.map((p) => String(p.over.__zoom))).size")
    if moved != 1:
        wrong.append("the panels look at different places")
    ActionChains(driver).send_keys(Keys.ESCAPE).send_keys("0").perform()
    settle(driver, 0.8)

    # Every measure, light and dark.
    for theme in ["dark", "light"]:
        for measure in driver.execute_script("return fabricView.measures.map((measure) => measure.id)"):
            driver.execute_script("fabricView.setMeasure(arguments[0]); fabricView.setTheme(arguments[1])", measure, theme)
            settle(driver, 0.05)
            wrong += [f"{theme}, {measure}: {found}" for found in driver.execute_script(CUT_OFF)]
    # Printed from a dark screen: light, the network as a picture, on a sheet and what is chosen perhaps on a second; then the screen is as before.
    driver.execute_script("fabricView.setTheme('dark')")
    stills = driver.execute_script("dispatchEvent(new Event('beforeprint')); return [document.documentElement.dataset.theme, ...[...document.querySelectorAll('.still')].map((still) => still.src.length)]")
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"])
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    if stills[0] != "light" or len(stills) != panels + 1 or min(stills[1:]) < 5000 or not 1 <= sheets <= 2:
        wrong.append(f"printed on {sheets} sheets, in the theme {stills[0]}, with pictures of {stills[1:]} characters")
    if driver.execute_script("return [document.documentElement.dataset.theme, document.querySelectorAll('.still').length]") != ["dark", 0]:
        wrong.append("the screen is not as before it was printed")
    wrong += [f"console: {entry['message']}" for entry in driver.get_log("browser")]
    frames = driver.execute_async_script("const done = arguments[0]; fabricView.measureFrames(60).then(done)")
    size = driver.execute_script("return `${fabricView.runs[0].facts.hosts} hosts, ${fabricView.panels.length} x ${fabricView.runs[0].links} links`")
    print(f"{page}: {size}, {frames:.0f} frames per second, {compared} numbers of {len(pressed)} links compared")
    if pictures:
        for theme, width, height in [("light", 1280, 800), ("dark", 1920, 1080)]:
            emulate(driver, "screen", theme, width, height)
            driver.execute_script("fabricView.setTheme(arguments[0]); fabricView.setMeasure(fabricView.measures[0].id)", theme)
            settle(driver, 0.8)
            driver.save_screenshot(str(pictures / f"{page.stem}-{theme}.png"))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, help="keep screenshots there")
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    driver, profile = browser()
    driver.set_script_timeout(120)
    try:
        wrong = check(driver, arguments.page, [Rows(run) for run in arguments.runs], arguments.pictures)
    finally:
        driver.quit()
        profile.cleanup()
    for line in wrong[:40]:
        print(f"  {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
