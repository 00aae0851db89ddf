#!/usr/bin/env python3
"""Opens report pages in Chromium and checks what only a browser can show.

    apt-get install chromium chromium-driver
    python3 -m venv venv && venv/bin/pip install selenium
    PYTHON=venv/bin/python cargo test -p anabranch-report browser:: -- --ignored

or, for pages of your own: venv/bin/python crates/studies/report/tests/browser/check.py PAGE... [--pictures DIR]

Light, dark and printed: no error in the console, the page's own fonts loaded, nothing cut off at 1,280 pixels or on A4, every
text of a figure inside it and none on another one; pointing at a figure shows numbers, pressing a name isolates its scheme.
Nothing is downloaded: the driver is Debian's.
"""

import argparse
import base64
import pathlib
import shutil
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]

# What sticks out of the page, or of the box that should hold it.
CUT_OFF = """
const wide = document.documentElement.scrollWidth;
const found = wide > innerWidth ? [`the page is ${wide} px wide, the window ${innerWidth}`] : [];
for (const box of document.querySelectorAll(".card, .tile, table, td, th, h1, h2, dd, figure")) {
  if (!box.checkVisibility()) continue;
  const { left, right, width } = box.getBoundingClientRect();
  if (width > 0 && (left < -0.5 || right > innerWidth + 0.5)) found.push(`${box.tagName}.${box.className} ends at ${right}`);
  if (box.scrollWidth > box.clientWidth + 1 && !["TD", "TH"].includes(box.tagName) && box.clientWidth > 0) {
    found.push(`${box.tagName}.${box.className} hides ${box.scrollWidth - box.clientWidth} px`);
  }
}
for (const svg of document.querySelectorAll("figure svg")) {
  const sheet = svg.viewBox.baseVal;
  const boxes = [];
  for (const text of svg.querySelectorAll("text")) {
    const b = text.getBBox();
    const turned = text.hasAttribute("transform");
    if (!turned && (b.x < 0 || b.y < 0 || b.x + b.width > sheet.width || b.y + b.height > sheet.height)) {
      found.push(`${svg.parentElement.id}: "${text.textContent}" leaves the sheet`);
    }
    if (turned) continue;
    for (const [other, o] of boxes) {
      const across = Math.min(b.x + b.width, o.x + o.width) - Math.max(b.x, o.x);
      const along = Math.min(b.y + b.height, o.y + o.height) - Math.max(b.y, o.y);
      if (across > 1.5 && along > 5) found.push(`${svg.parentElement.id}: "${text.textContent}" lies on "${other}"`);
    }
    boxes.push([text.textContent, b]);
  }
}
return found;
"""

FONTS = """
const done = arguments[arguments.length - 1];
document.fonts.ready.then(() => done([...document.fonts].map((f) => `${f.family} ${f.weight} ${f.status}`)));
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    profile = tempfile.TemporaryDirectory()
    for flag in FLAGS + [f"--user-data-dir={profile.name}", "--window-size=1280,900"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver") or "/usr/bin/chromedriver"), options=options)
    return driver, profile


def emulate(driver, media, scheme, width, height):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    )


def hover(driver):
    """Points at the first mark of each figure; returns those that show no numbers."""
    missing = []
    figures = driver.execute_script("return document.querySelectorAll('figure').length")
    for number in range(figures):
        told = driver.execute_script(
            """
            const figure = document.querySelectorAll("figure")[arguments[0]];
            const hits = JSON.parse(figure.querySelector("script.hits").textContent);
            if (!hits.length) return ["", "", figure.id];
            const svg = figure.querySelector("svg");
            svg.scrollIntoView();
            const at = new DOMPoint(hits[0][0], hits[0][1]).matrixTransform(svg.getScreenCTM());
            svg.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y, bubbles: true }));
            const tip = document.getElementById("tip");
            const said = tip.hidden ? "" : tip.textContent;
            svg.dispatchEvent(new PointerEvent("pointerleave"));
            return [said, hits[0][3], figure.id, tip.hidden];
            """,
            number,
        )
        if not told[0] or told[3] is False:
            missing.append(f"{told[2]}: pointing at a mark tells {told[0]!r} instead of {told[1]!r}")
    return missing


def isolate(driver):
    """Presses the first name; all else must fade, and come back."""
    return driver.execute_script(
        """
        const keys = document.querySelectorAll("svg [data-key='1']");
        if (!keys.length) return [];
        const press = (key) => key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        const wrong = [];
        press(keys[0]);
        for (const part of document.querySelectorAll("[data-s]")) {
          if (part.classList.contains("dim") !== (part.dataset.s !== "1")) wrong.push(`isolated: ${part.outerHTML.slice(0, 90)}`);
        }
        press(keys[0]);
        if (document.querySelector(".dim")) wrong.push("pressed again, something stays faded");
        return wrong.slice(0, 3);
        """
    )


def check(driver, page, pictures):
    wrong = []
    name = page.parent.name
    for scheme in ["light", "dark"]:
        emulate(driver, "screen", scheme, 1280, 900)
        driver.get(page.resolve().as_uri())
        fonts = driver.execute_async_script(FONTS)
        wrong += [f"{scheme}: font not loaded: {font}" for font in fonts if not font.endswith("loaded")]
        if len(fonts) != 2:
            wrong.append(f"{scheme}: the page names {len(fonts)} fonts, not 2")
        wrong += [f"{scheme}: {found}" for found in driver.execute_script(CUT_OFF)]
        if scheme == "light":
            wrong += hover(driver) + isolate(driver)
        for details in driver.find_elements("css selector", "details:not([open]) > summary"):
            driver.execute_script("arguments[0].click()", details)
        wrong += [f"{scheme}, all open: {found}" for found in driver.execute_script(CUT_OFF)]
        wrong += [f"{scheme}: console: {entry['message']}" for entry in driver.get_log("browser")]
        if pictures:
            height = driver.execute_script("return document.documentElement.scrollHeight")
            driver.get(page.resolve().as_uri())
            emulate(driver, "screen", scheme, 1280, min(height, 12000))
            driver.save_screenshot(str(pictures / f"{name}-{scheme}.png"))
    # A4 landscape less its margins: 273 mm at 96 pixels per inch.
    emulate(driver, "print", "dark", 1032, 900)
    wrong += [f"print: {found}" for found in driver.execute_script(CUT_OFF)]
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    if ground != "rgb(255, 255, 255)":
        wrong.append(f"print: a dark theme is printed on {ground}")
    pdf = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    if pictures:
        (pictures / f"{name}.pdf").write_bytes(base64.b64decode(pdf["data"]))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, help="keep screenshots and PDFs there")
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    driver, profile = browser()
    failed = False
    try:
        for page in arguments.pages:
            wrong = check(driver, page, arguments.pictures)
            failed |= bool(wrong)
            print(f"{page}: {'ok' if not wrong else ''}")
            for line in wrong[:40]:
                print(f"  {line}")
    finally:
        driver.quit()
        profile.cleanup()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
