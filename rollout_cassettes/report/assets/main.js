// What is shown for which address, and the theme.

let page = { crumbs: [] };
let turn = 0;
let opened = ""; // the row that was opened last: it has the focus again on the way back

function parts() {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
}

function made() {
  const [kind, name, view, id] = parts();
  if (kind === "step" && view === "row") return trajectoryPage(name, id);
  if (kind === "step") return stepPage(name, view, id);
  if (kind === "phase") return overviewPage(name);
  return overviewPage(phases[0]);
}

function crumbs(list) {
  const all = [["Overview", "#/"], ...list];
  return el("ol", {}, all.map(([text, href], place) => el("li", {}, place === all.length - 1 || !href ? el("span", { "aria-current": place === all.length - 1 ? "page" : null }, text) : el("a", { href }, text))));
}

async function render() {
  const now = (turn += 1);
  hideTip();
  charts.clear();
  let next;
  const slow = setTimeout(() => byId("main").classList.add("waiting"), 120);
  try {
    next = await made();
  } catch (error) {
    console.error(error);
    next = missingPage(`This part of the report can't be read: ${error.message}`);
  }
  clearTimeout(slow);
  if (now !== turn) return;
  const wasAt = opened;
  opened = location.hash || "#/";
  page = next;
  document.title = `${page.title} \u00b7 rollout report`;
  byId("crumbs").replaceChildren(page.crumbs.length ? crumbs(page.crumbs) : "");
  const main = byId("main");
  main.classList.remove("waiting");
  main.replaceChildren(...page.content.flat(Infinity).filter((node) => node));
  const back = [...main.querySelectorAll(".row-link")].find((link) => wasAt.startsWith(link.getAttribute("href")) && wasAt !== opened);
  if (back) {
    back.focus({ preventScroll: true });
    back.scrollIntoView({ block: "center" });
  } else {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  say(page.title);
  main.dataset.ready = opened;
  performance.mark("shown");
}

// ---- the theme: the system's, unless another is chosen

const themes = ["", "dark", "light"];

function remembered() {
  try {
    return localStorage.getItem("rollout-report-theme") || "";
  } catch {
    return ""; // no storage for files, in some browsers
  }
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = { dark: "Dark", light: "Light" }[theme] || "Auto";
  byId("theme").setAttribute("aria-label", `Theme: ${theme || "as the system's"}`);
}

function nextTheme() {
  const theme = themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % themes.length];
  setTheme(theme);
  try {
    localStorage.setItem("rollout-report-theme", theme);
  } catch {
    // it holds until the page is left
  }
}

setTheme(remembered());
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
addEventListener("keydown", (event) => onKey(event, page));
addEventListener("hashchange", render);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
render();
