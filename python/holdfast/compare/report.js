"use strict";
for (const choice of document.querySelectorAll(".choice")) {
  choice.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of choice.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    if (choice.dataset.for === "links") {
      for (const kind of ["link", "failing"]) {
        for (const part of document.querySelectorAll("#network ." + kind + "[data-" + button.value + "]")) {
          part.setAttribute("class", kind + " q" + part.getAttribute("data-" + button.value));
        }
      }
    } else {
      for (const part of document.querySelectorAll(".over-time")) part.hidden = part.id !== button.value;
    }
  });
}
// The date is the file's, so that the same runs give the same bytes.
const written = new Date(document.lastModified);
if (location.protocol === "file:" && Number.isFinite(written.getTime())) {
  document.getElementById("written").textContent = ", " + written.toISOString().slice(0, 10);
}
// Where there is no pointer, a tap shows what is said of the nearest part of a picture.
const told = document.getElementById("told");
function distance(part, x, y) {
  if (part.tagName === "line") {
    const matrix = part.getScreenCTM();
    const [a, b] = ["1", "2"].map((end) => new DOMPoint(part["x" + end].baseVal.value, part["y" + end].baseVal.value)
      .matrixTransform(matrix));
    const length = (b.x - a.x) ** 2 + (b.y - a.y) ** 2;
    const along = length ? Math.max(0, Math.min(1, ((x - a.x) * (b.x - a.x) + (y - a.y) * (b.y - a.y)) / length)) : 0;
    return Math.hypot(x - a.x - along * (b.x - a.x), y - a.y - along * (b.y - a.y));
  }
  const box = part.getBoundingClientRect();
  return Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
}
document.addEventListener("click", (event) => {
  const picture = event.target.closest("svg");
  let nearest = null, least = 24;
  for (const part of picture ? picture.querySelectorAll(":has(> title)") : []) {
    const far = distance(part, event.clientX, event.clientY);
    // What is drawn later is on top.
    if (far <= least) [nearest, least] = [part, far];
  }
  told.hidden = nearest === null;
  if (nearest) told.textContent = nearest.querySelector("title").textContent;
});
