// Tables that sort by any of their columns. Of many rows a page is made at once, the others as they are asked for.

const ROWS_AT_ONCE = 100;

/* columns: [{key, name, about, value: (row) => sorted by, cell: (row) => shown, kind: "left" | "prose" | "", wide}]
   The first column's cell is the row's link. */
function sortableTable({ label, columns, rows, sort, href, onSort, marked, empty }) {
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more", onclick: () => grow() });
  const heads = new Map();
  let sorted = [];
  let shown = 0;

  const compare = (one, other) => {
    const column = columns.find((each) => each.key === sort.key) || columns[0];
    const [a, b] = [column.value(one), column.value(other)];
    if (isKnown(a) !== isKnown(b)) return isKnown(a) ? -1 : 1; // what isn't known comes last
    const order = typeof a === "string" ? a.localeCompare(b) : a - b;
    return (sort.down ? -order : order) || (one.at ?? 0) - (other.at ?? 0);
  };
  const line = (row) => {
    const cells = columns.map((column, place) => {
      const shownCell = column.cell(row);
      const kind = [column.kind, column.wide && "wide"].filter(Boolean).join(" ");
      return place
        ? el("td", { class: kind, title: column.kind === "prose" ? column.value(row) : null }, shownCell)
        : el("th", { scope: "row", class: kind }, el("a", { class: "row-link", href: href(row) }, shownCell));
    });
    const node = el("tr", { class: marked && marked(row) ? "marked" : null }, cells);
    node.addEventListener("click", (event) => {
      if (!event.target.closest("a") && !String(getSelection())) location.hash = href(row);
    });
    return node;
  };
  const grow = () => {
    body.append(...sorted.slice(shown, shown + ROWS_AT_ONCE).map(line));
    shown = Math.min(sorted.length, shown + ROWS_AT_ONCE);
    more.hidden = shown >= sorted.length;
    more.textContent = `Show more (${number(shown)} of ${number(sorted.length)})`;
  };
  const draw = () => {
    sorted = [...rows].sort(compare);
    shown = 0;
    body.replaceChildren();
    if (!sorted.length) body.append(el("tr", {}, el("td", { class: "empty", colspan: columns.length }, empty || "Nothing matches.")));
    for (const [key, head] of heads) {
      head.setAttribute("aria-sort", key !== sort.key ? "none" : sort.down ? "descending" : "ascending");
    }
    grow();
    if (onSort) onSort(sort, sorted);
  };
  for (const column of columns) {
    const sortBy = () => {
      sort = sort.key === column.key ? { key: column.key, down: !sort.down } : { key: column.key, down: column.kind !== "left" && column.kind !== "prose" };
      draw();
    };
    heads.set(column.key, el("th", { scope: "col", class: [column.kind, column.wide && "wide"].filter(Boolean).join(" "), title: column.about }, el("button", { type: "button", onclick: sortBy }, column.name)));
  }
  const table = el("table", { class: "sheet", "aria-label": label }, el("thead", {}, el("tr", {}, [...heads.values()])), body);
  draw();
  return {
    node: el("div", { class: "sheet-holder" }, table, more),
    change: (changed) => {
      rows = changed;
      draw();
    },
  };
}
