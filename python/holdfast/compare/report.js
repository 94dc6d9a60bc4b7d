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
