// Sorts a table by the column whose heading is pressed; cells without a value go last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[column];
      const value = cell.dataset.value ?? cell.textContent.trim();
      return value === "" ? null : Number.isNaN(Number(value)) ? value : Number(value);
    };
    const body = table.tBodies[0];
    [...body.rows]
      .map((row) => [key(row), row])
      .sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
        return down ? -order : order;
      })
      .forEach(([, row]) => body.append(row));
  }));
}
