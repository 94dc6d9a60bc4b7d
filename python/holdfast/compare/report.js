"use strict";
for (const choice of document.querySelectorAll(".choice")) {
  choice.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of choice.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    if (choice.dataset.for === "links") {
      for (const link of document.querySelectorAll("#network .link")) {
        link.setAttribute("class", "link q" + link.getAttribute("data-" + button.value));
      }
    } else {
      for (const part of document.querySelectorAll(".over-time")) part.hidden = part.id !== button.value;
    }
  });
}
