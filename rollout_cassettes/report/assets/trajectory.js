// The page of a trajectory: prompt, response, tokens, reward, and all else that was recorded of it.

function promptView(prompt) {
  if (typeof prompt === "string") return el("div", { class: "text" }, prompt);
  if (Array.isArray(prompt)) return prompt.map((message) => el("div", { class: "message" }, el("div", { class: "role" }, message.role), el("div", { class: "text" }, message.text)));
  if (prompt?.ids) return el("div", { class: "text ids" }, prompt.ids.join(" "));
  return el("p", { class: "quiet" }, "Not recorded.");
}

function fieldsView(fields) {
  const lines = (value, path) => {
    if (value && typeof value === "object") {
      const items = Array.isArray(value) ? value.map((item, place) => [`[${place}]`, item]) : Object.entries(value);
      const isFlat = Array.isArray(value) && value.every((item) => item === null || typeof item !== "object");
      if (items.length && !isFlat) return items.flatMap(([name, item]) => lines(item, Array.isArray(value) ? `${path}${name}` : path ? `${path}.${name}` : name));
    }
    return [[path, typeof value === "string" ? value : JSON.stringify(value)]];
  };
  const isEmpty = (value) => value === null || value === "null" || value === "{}" || value === "[]" || value === "";
  const all = lines(fields || {}, "").filter(([path]) => path);
  const told = all.filter(([, value]) => !isEmpty(value));
  const blank = all.filter(([, value]) => isEmpty(value)).map(([path]) => path);
  if (!all.length) return null;
  return el(
    "section",
    { class: "panel", "aria-label": "Other fields" },
    el("h2", {}, "Other fields"),
    el("table", { class: "fields" }, el("tbody", {}, told.map(([path, value]) => el("tr", {}, el("th", { scope: "row" }, path), el("td", {}, value))))),
    blank.length ? el("p", { class: "quiet" }, `Empty: ${blank.join(", ")}`) : null,
  );
}

function rowTiles(row) {
  const facts = [
    ["Reward", number(row.score)],
    ["Passed", isKnown(row.passed) ? (row.passed ? "yes" : "no") : ""],
    ["Tokens", number(row.tokens)],
    ["Prompt tokens", number(row.prompt_length)],
    ["Truncated", row.cut ? "yes" : ""],
    ["Log-prob", number(row.log_prob), "Mean of its tokens, nats"],
    ["Unlikely", isKnown(row.log_prob) ? number(row.unlikely) : "", "Tokens with a probability below 10%"],
    ["Policy lag", number(row.lag), "By how many updates its weights are older than those it trains"],
    ["Session", isKnown(row.session) ? `${row.session}${row.output_index ? `, output ${row.output_index}` : ""}` : ""],
  ];
  return el(
    "dl",
    { class: "tiles" },
    facts.filter(([, value]) => value).map(([word, value, about]) => el("div", { title: about }, el("dt", {}, word), el("dd", {}, value))),
  );
}

function sideOf(row, told, which) {
  return el("div", { class: "side" }, isPair || told.uid ? el("p", { class: "quiet uid" }, isPair && chip(which), told.uid) : null, rowTiles(row));
}

// Where two responses part: the first token that is another; null where none is.
function firstDifference(one, other) {
  const [a, b] = [piecesOf(one), piecesOf(other)];
  if (!a || !b) return null;
  const most = Math.min(a.length, b.length);
  for (let place = 0; place < most; place += 1) if (a[place] !== b[place]) return place;
  return a.length === b.length ? null : most;
}

function responseView(told, differs, which) {
  const pieces = piecesOf(told);
  const isApart = pieces && !told.tokens && isKnown(told.text);
  const body = pieces ? tokensView(told, differs) : el("div", { class: "text" }, told.text ?? "Not recorded.");
  const show = (place) => {
    const node = body.querySelector(`[data-at="${place}"]`);
    if (node) goToToken(node);
  };
  const name = isPair ? [chip(which), "Response"] : "Response";
  return el(
    "section",
    { class: "panel", "aria-label": isPair ? `Response ${"AB"[which]}` : "Response" },
    isApart ? [el("h2", {}, name), el("div", { class: "text" }, told.text), el("h2", {}, "Tokens")] : el("h2", {}, name),
    legend(told),
    body,
    logProbStrip(told, show),
  );
}

function goToToken(node) {
  for (const marked of document.querySelectorAll(".tokens .here")) marked.classList.remove("here");
  node.classList.add("here");
  node.scrollIntoView({ block: "center" });
  const box = node.getBoundingClientRect();
  const holder = node.closest(".tokens");
  holder.dataset.at = node.dataset.at;
  say(`token ${node.dataset.at}: ${node.textContent}`);
  node.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left, clientY: box.top }));
}

// The next token, or the one before, that had a probability below a tenth.
function nextUnlikely(way) {
  const found = [...document.querySelectorAll(".tokens .s0, .tokens .s1")];
  if (!found.length) return say("No token is unlikely.");
  const here = document.querySelector(".tokens .here");
  const later = here ? found.filter((node) => Boolean(here.compareDocumentPosition(node) & (way > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING))) : found;
  goToToken((way > 0 ? later[0] : later.at(-1)) || (way > 0 ? found[0] : found.at(-1)));
}

function siblings(rows, row, name) {
  const group = isKnown(row.group) ? rows.filter((each) => each.group === row.group) : [];
  if (group.length < 2) return null;
  return el(
    "nav",
    { class: "siblings", "aria-label": "Responses to the same prompt" },
    el("span", { class: "quiet" }, `Group ${row.group}`),
    group.map((each) => el("a", { href: `#/step/${name}/row/${each.row}`, "aria-current": each.row === row.row ? "page" : null, title: `row ${each.row}` }, number(each.score) || `row ${each.row}`)),
  );
}

async function trajectoryPage(name, id) {
  const step = order.find((each) => each.name === name);
  if (!step) return missingPage(`There is no step ${name} in this report.`);
  const first = stepOf(0, name) ? 0 : 1;
  const read = await Promise.all(report.map((_, which) => (stepOf(which, name) ? rowsOf(which, stepOf(which, name)) : [])));
  const rows = read[first];
  const row = rows.find((each) => each.row === Number(id));
  if (!row) return missingPage(`There is no trajectory ${id} in step ${name}.`);
  const told = await textOf(first, stepOf(first, name), row.at);
  const partner = first === 0 && isPair ? read[1].find((each) => placeOf(each) === placeOf(row)) : null;
  const beside = partner ? await textOf(1, stepOf(1, name), partner.at) : null;
  const differs = beside ? firstDifference(told, beside) : null;
  const isSamePrompt = !beside || JSON.stringify(told.prompt) === JSON.stringify(beside.prompt);

  const listed = stateOf(name).listed?.includes(row.row) ? stateOf(name).listed : rows.map((each) => each.row);
  const place = listed.indexOf(row.row);
  const to = (at) => (isKnown(listed[at]) ? `#/step/${name}/row/${listed[at]}` : null);
  const link = (href, text, sign, key) => (href ? el("a", { class: "button", href, "aria-label": text, title: `${text} (${key})` }, sign) : el("span", { class: "button off", "aria-hidden": "true" }, sign));
  const verdict = beside && (differs === null ? (JSON.stringify(told.text) === JSON.stringify(beside.text) ? "The responses are equal." : "The responses differ.") : differs ? `The responses are equal up to token ${number(differs)}.` : "The responses differ from the first token on.");
  const both = (one, other) => (beside ? el("div", { class: "pair" }, one, other) : one);
  return {
    crumbs: [[titleOf(step), `#/step/${name}`], ...(isKnown(row.group) ? [[`Group ${row.group}`, `#/step/${name}/group/${row.group}`]] : []), [`Row ${row.row}`]],
    title: `${titleOf(step)}, row ${row.row}`,
    up: isKnown(row.group) ? `#/step/${name}/group/${row.group}` : `#/step/${name}`,
    previous: to(place - 1),
    next: to(place + 1),
    content: [
      el("div", { class: "heading" }, el("h1", {}, `Row ${row.row}`), el("span", { class: "stepper" }, link(to(place - 1), "Previous trajectory", "\u2190", "k"), link(to(place + 1), "Next trajectory", "\u2192", "j")), el("span", { class: "quiet" }, `${number(place + 1)} of ${number(listed.length)}`)),
      siblings(rows, row, name),
      both(sideOf(row, told, first), beside && sideOf(partner, beside, 1)),
      isPair && first === 0 && !beside ? el("p", { class: "quiet" }, "The other cassette has no such trajectory.") : null,
      isSamePrompt
        ? el("section", { class: "panel", "aria-label": "Prompt" }, el("h2", {}, "Prompt"), promptView(told.prompt))
        : both(el("section", { class: "panel", "aria-label": "Prompt A" }, el("h2", {}, chip(0), "Prompt"), promptView(told.prompt)), el("section", { class: "panel", "aria-label": "Prompt B" }, el("h2", {}, chip(1), "Another prompt"), promptView(beside.prompt))),
      verdict ? el("p", { class: "lead" }, verdict) : null,
      both(responseView(told, differs, first), beside && responseView(beside, differs, 1)),
      both(fieldsView(told.fields), beside && fieldsView(beside.fields)),
    ],
  };
}
