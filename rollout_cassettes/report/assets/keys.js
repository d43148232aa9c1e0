// The keyboard: one listener for the whole page.

function moveInTable(way) {
  const links = [...document.querySelectorAll(".row-link")];
  if (!links.length) return false;
  const here = links.indexOf(document.activeElement?.closest?.(".row-link"));
  const next = links[here < 0 ? (way > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, here + way))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function go(href) {
  if (href) location.hash = href;
}

function leave(page) {
  const active = document.activeElement;
  if (active?.id === "search") {
    if (!active.value) return active.blur();
    active.value = "";
    active.dispatchEvent(new Event("input"));
    return null;
  }
  hideTip();
  return go(page.up);
}

function onKey(event, page) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const isTyping = event.target.matches?.("input, select, textarea");
  if (isTyping && event.key !== "Escape") return;
  const onChart = event.target.closest?.(".plot");
  const actions = {
    j: () => go(page.next) ?? (page.next ? true : moveInTable(1)),
    k: () => go(page.previous) ?? (page.previous ? true : moveInTable(-1)),
    ArrowDown: () => !page.crumbs.at(-1)?.[0]?.startsWith("Row") && moveInTable(1),
    ArrowUp: () => !page.crumbs.at(-1)?.[0]?.startsWith("Row") && moveInTable(-1),
    "[": () => go(page.before) ?? true,
    "]": () => go(page.after) ?? true,
    n: () => nextUnlikely(1) ?? true,
    p: () => nextUnlikely(-1) ?? true,
    "/": () => byId("search") && (byId("search").focus(), byId("search").select(), true),
    Escape: () => leave(page) ?? true,
    t: () => nextTheme() ?? true,
    "?": () => byId("keys").showModal() ?? true,
  };
  if (onChart && event.key.startsWith("Arrow")) return;
  const act = Object.hasOwn(actions, event.key) && actions[event.key];
  if (act && act()) event.preventDefault();
}
