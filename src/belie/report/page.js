"use strict";
// Copies the table beside a button as CSV. The page is whole without this script.
(function () {
  const status = document.getElementById("status");
  const quoted = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  // A value that a spreadsheet would take for a formula is led by an apostrophe; numbers stay numbers.
  const safe = (text) => (/^[=+\-@\t]/.test(text) && !/^-?[\d.]+(e[+-]?\d+)?$/.test(text) && text !== "-inf" ? "'" + text : text);
  const csv = (table) => {
    const lines = [Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent)];
    for (const row of table.tBodies[0].rows) lines.push(Array.from(row.cells, (cell) => cell.dataset.raw));
    return lines.map((line) => line.map((text) => quoted(safe(text))).join(",")).join("\n") + "\n";
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const under = button.closest("p");
      const area = under.nextElementSibling;
      const text = csv(under.previousElementSibling.querySelector("table"));
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = "Copied.";
        button.classList.add("done");
        setTimeout(() => button.classList.remove("done"), 1500);
      } catch {
        area.value = text;
        area.hidden = false;
        area.focus();
        area.select();
        status.textContent = "Select and copy the text below the table.";
      }
    });
  }
  const closed = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = Array.from(closed()).filter((one) => !one.closest(".run"));
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();
