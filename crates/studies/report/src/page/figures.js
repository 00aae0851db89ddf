// Tells the numbers of the point under the pointer, and isolates a scheme whose name is pressed: in all figures, or in a
// figure with series of its own.
let alone = null;
const scopeOf = (part) => part.closest("figure.own") ?? document.body;
const isOther = (part, series) => alone !== null && scopeOf(part) === alone.scope && series !== alone.series;
function isolate(series, scope) {
  alone = alone !== null && alone.series === series && alone.scope === scope ? null : { series, scope };
  for (const part of document.querySelectorAll("[data-s]")) {
    part.classList.toggle("dim", isOther(part, part.dataset.s));
  }
  for (const key of document.querySelectorAll("button[data-key]")) {
    key.setAttribute("aria-pressed", String(alone !== null && key.dataset.key === alone.series));
  }
}
for (const key of document.querySelectorAll("[data-key]")) {
  if (key.tagName !== "BUTTON") {
    key.setAttribute("tabindex", "0");
    key.setAttribute("role", "button");
  }
  key.addEventListener("click", () => isolate(key.dataset.key, scopeOf(key)));
  key.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (key.tagName !== "BUTTON" || event.key === " ") isolate(key.dataset.key, scopeOf(key));
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && alone !== null) isolate(alone.series, alone.scope);
});

const tip = document.getElementById("tip");
const NEAR = 28;
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  const data = figure.querySelector("script.hits");
  if (!svg || !data) continue;
  const hits = JSON.parse(data.textContent);
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", "7");
  svg.append(ring);
  const hide = () => {
    ring.style.display = "none";
    tip.hidden = true;
  };
  hide();
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null, least = NEAR * NEAR;
    for (const hit of hits) {
      if (hit[2] !== null && isOther(svg, String(hit[2]))) continue;
      const distance = (hit[0] - at.x) ** 2 + (hit[1] - at.y) ** 2;
      if (distance < least) [best, least] = [hit, distance];
    }
    if (best === null) return hide();
    ring.setAttribute("cx", best[0]);
    ring.setAttribute("cy", best[1]);
    ring.style.display = "";
    tip.textContent = best[3];
    tip.hidden = false;
    const { innerWidth: width } = window;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, width - box.width - 8))}px`;
    tip.style.top = `${Math.max(8, event.clientY - box.height - 14)}px`;
  });
}
