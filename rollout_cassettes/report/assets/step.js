// The page of a step: its figures, histograms, and its groups and trajectories, to be sorted and searched.

const stepStates = new Map(); // what was searched and sorted, by step; a way back finds it again

function stateOf(name) {
  if (!stepStates.has(name)) {
    stepStates.set(name, { text: "", outcome: "all", ranges: {}, groups: { key: "spread", down: true }, rows: { key: "row", down: false }, listed: null });
  }
  return stepStates.get(name);
}

function tiles(name) {
  const made = [
    ["Trajectories", (step) => number(step.rows)],
    ["Groups", (step) => number(step.groups)],
    ...METRICS.map((metric) => [SHORT[metric.key] || metric.name, (step) => metric.format(metric.y(step)), metric.about || metric.hint]),
  ];
  return el(
    "dl",
    { class: "tiles" },
    made.map(([word, told, about]) => {
      const values = report.map((_, which) => (stepOf(which, name) ? told(stepOf(which, name)) : ""));
      if (!values.some(Boolean)) return null;
      return el("div", { title: about }, el("dt", {}, word), values.map((value, which) => el("dd", { class: isPair ? KINDS[which] : null }, value || "\u2013")));
    }),
  );
}

/* Rows of both cassettes, those that belong together as one: `row.other` is the second's. */
function paired(rows) {
  const [ours, theirs] = rows;
  if (!theirs) return ours;
  const at = new Map(theirs.map((row) => [placeOf(row), row]));
  return ours.map((row) => ({ ...row, other: at.get(placeOf(row)) || null }));
}

function groupsOf(rows) {
  const found = new Map();
  for (const row of rows) {
    if (!isKnown(row.group)) continue;
    if (!found.has(row.group)) found.set(row.group, { at: row.group, group: row.group, prompt: row.prompt, rows: [] });
    found.get(row.group).rows.push(row);
  }
  for (const group of found.values()) {
    const scores = group.rows.map((row) => row.score).filter(isKnown);
    const others = group.rows.map((row) => row.other?.score).filter(isKnown);
    group.scores = scores;
    group.mean = mean(scores);
    group.spread = deviation(scores);
    group.other = mean(others);
    group.tokens = mean(group.rows.map((row) => row.tokens).filter(isKnown));
    const judged = group.rows.map((row) => row.passed).filter(isKnown);
    group.passed = judged.length ? judged.filter(Boolean).length / judged.length : null;
  }
  return [...found.values()];
}

// The rewards of a group's trajectories, as dots from the step's lowest to its highest.
function rewardDots(scores, low, high) {
  const width = 92;
  const x = (value) => 6 + ((value - low) / (high - low || 1)) * (width - 12);
  const count = new Map();
  for (const score of scores) count.set(score, (count.get(score) || 0) + 1);
  return svg(
    "svg",
    { class: "dots", width, height: 18, viewBox: `0 0 ${width} 18`, "aria-hidden": "true" },
    svg("line", { class: "axis", x1: 6, x2: width - 6, y1: 9, y2: 9 }),
    [...count].map(([score, times]) => svg("circle", { class: "dot a", cx: x(score), cy: 9, r: 2 + Math.min(4, 1.3 * Math.sqrt(times)) })),
  );
}

function column(key, name, value, format, rest) {
  return { key, name, value, cell: (row) => format(value(row)), ...rest };
}

function isTold(rows) {
  return ({ value }) => rows.some((row) => isKnown(value(row)) && value(row) !== "");
}

function groupColumns(groups) {
  const scores = groups.flatMap((group) => group.scores);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  return [
    column("group", "Group", (group) => group.group, number, { kind: "left" }),
    column("size", "Rows", (group) => group.rows.length, number, { wide: true }),
    column("spread", "Spread", (group) => group.spread, number, { about: "Standard deviation of its rewards" }),
    { key: "dots", name: "Rewards", value: (group) => group.mean, cell: (group) => rewardDots(group.scores, low, high), wide: true, kind: "left" },
    column("mean", isPair ? [chip(0), "Mean"] : "Mean", (group) => group.mean, number, { about: "Mean reward" }),
    isPair && column("other", [chip(1), "Mean"], (group) => group.other, number),
    isPair && column("change", "Change", (group) => (isKnown(group.other) && isKnown(group.mean) ? group.other - group.mean : null), signed, { wide: true }),
    column("passed", "Passed", (group) => group.passed, share, { wide: true }),
    column("tokens", "Length", (group) => group.tokens, length, { about: "Mean length of its responses, in tokens", wide: true }),
    { ...column("prompt", "Prompt", (group) => group.prompt, (value) => value), kind: "prose" },
  ].filter(Boolean).filter(isTold(groups));
}

function rowColumns(rows) {
  return [
    column("row", "Row", (row) => row.row, number, { kind: "left" }),
    column("group", "Group", (row) => row.group, number, { wide: true }),
    column("score", isPair ? [chip(0), "Reward"] : "Reward", (row) => row.score, number),
    isPair && column("other", [chip(1), "Reward"], (row) => row.other?.score, number),
    column("passed", "Passed", (row) => (isKnown(row.passed) ? Number(row.passed) : null), (value) => (isKnown(value) ? (value ? "yes" : "no") : ""), { wide: true }),
    column("tokens", "Tokens", (row) => row.tokens, number, {}),
    column("cut", "Cut", (row) => (isKnown(row.cut) ? Number(row.cut) : null), (value) => (value ? "cut" : ""), { wide: true, about: "Ended by its length" }),
    column("log_prob", "Log-prob", (row) => row.log_prob, number, { wide: true, about: "Mean of its tokens, nats" }),
    column("lag", "Lag", (row) => row.lag, number, { wide: true }),
    { ...column("prompt", "Prompt", (row) => row.prompt, (value) => value, { wide: true }), kind: "prose" },
    { ...column("response", "Response", (row) => row.response, (value) => value), kind: "prose" },
  ].filter(Boolean).filter(isTold(rows));
}

const RANGES = { score: ["reward", number], tokens: ["tokens", number], log_prob: ["log-prob", number] };

function isWithin(row, ranges) {
  return Object.entries(ranges).every(([key, [low, high, one]]) => isKnown(row[key]) && (one ? row[key] === low : row[key] >= low && row[key] < high));
}

function hasOutcome(row, outcome) {
  return { all: true, passed: row.passed === true, failed: row.passed === false, cut: row.cut === true }[outcome];
}

// Which rows have a text in their prompt or their response; all blocks of the step are decoded for it.
async function searched(step, rows, text) {
  const wanted = text.toLowerCase();
  const found = new Set();
  for (const row of rows) {
    const told = await textOf(0, step, row.at);
    const prompt = typeof told.prompt === "string" ? told.prompt : Array.isArray(told.prompt) ? told.prompt.map((each) => each.text).join("\n") : (told.prompt?.ids || []).join(" ");
    const response = told.text ?? told.pieces ?? (told.ids || []).join(" ");
    if (`${prompt}\n${response}\n${told.uid || ""}`.toLowerCase().includes(wanted)) found.add(row.at);
  }
  return found;
}

function histogramsOf(rows, state, refine) {
  const of = (key) => report.map((_, which) => ({ kind: KINDS[which], name: "AB"[which], values: (rows[which] || []).map((row) => row[key]).filter(isKnown) }));
  const picks = (key) => (low, high, one) => refine(() => (state.ranges[key] = [low, high, one]));
  const groups = rows.map((each) => groupsOf(each));
  const spreads = report.map((_, which) => ({ kind: KINDS[which], name: "AB"[which], values: (groups[which] || []).map((group) => group.spread).filter(isKnown) }));
  const made = [
    { title: "Reward", series: of("score"), format: number, pick: picks("score") },
    { title: "Spread of groups", hint: "deviation", series: spreads, format: number, counted: ["group", "groups"] },
    { title: "Response length", hint: "tokens", series: of("tokens"), format: number, whole: true, pick: picks("tokens") },
    { title: "Log-prob", hint: "mean, nats", series: of("log_prob"), format: number, pick: picks("log_prob") },
    { title: "Policy lag", hint: "updates behind", series: of("lag"), format: number, whole: true },
  ];
  return made.filter(({ series }) => new Set(series.flatMap((each) => each.values)).size > 1).map(histogram);
}

async function stepPage(name, view, id) {
  const at = order.findIndex((step) => step.name === name);
  const step = order[at];
  if (!step) return missingPage(`There is no step ${name} in this report.`);
  const read = await Promise.all(report.map((_, which) => (stepOf(which, name) ? rowsOf(which, stepOf(which, name)) : [])));
  const state = stateOf(name);
  const main = stepOf(0, name) ? paired(read) : read[1];
  const groups = groupsOf(main);
  const chosen = view === "group" ? Number(id) : null;
  const isGroups = !view && groups.length > 0;
  const listed = isKnown(chosen) ? main.filter((row) => row.group === chosen) : main;

  const holder = el("div");
  const chips = el("span", { class: "chips" });
  const count = el("span", { class: "quiet", role: "status" });
  let table = null;
  let matches = null; // the places of the rows that have the text; null: not searched
  const passing = () => listed.filter((row) => hasOutcome(row, state.outcome) && isWithin(row, state.ranges) && (!matches || matches.has(row.at)));
  const shown = () => {
    const rows = passing();
    if (!isGroups) return rows;
    const kept = new Set(rows.map((row) => row.group));
    return groups.filter((group) => kept.has(group.group));
  };
  const refresh = () => {
    const now = shown();
    table.change(now);
    const all = isGroups ? groups.length : listed.length;
    count.textContent = now.length === all ? `${number(all)} ${isGroups ? "groups" : "trajectories"}` : `${number(now.length)} of ${number(all)} ${isGroups ? "groups" : "trajectories"}`;
    chips.replaceChildren(
      ...Object.entries(state.ranges).map(([key, [low, high, one]]) =>
        el("button", { type: "button", class: "filter", title: "Take this filter off", onclick: () => refine(() => delete state.ranges[key]) }, `${RANGES[key][0]} ${RANGES[key][1](low)}${one ? "" : ` to ${RANGES[key][1](high)}`} \u00d7`),
      ),
    );
  };
  const refine = (change) => {
    change();
    refresh();
  };
  let latest = 0;
  const search = async () => {
    const turn = (latest += 1);
    const text = state.text.trim();
    if (!text) matches = null;
    else {
      count.textContent = "Searching\u2026";
      const found = await searched(stepOf(0, name) || step, listed, text);
      if (turn !== latest) return;
      matches = found;
    }
    refresh();
  };

  table = sortableTable({
    label: isGroups ? "Groups" : "Trajectories",
    columns: isGroups ? groupColumns(groups) : rowColumns(listed),
    rows: isGroups ? groups : listed,
    sort: isGroups ? state.groups : state.rows,
    href: (row) => (isGroups ? `#/step/${name}/group/${row.group}` : `#/step/${name}/row/${row.row}`),
    onSort: (sort, sorted) => {
      state[isGroups ? "groups" : "rows"] = sort;
      if (!isGroups) state.listed = sorted.map((row) => row.row);
    },
    empty: main.length ? "No trajectory matches." : "This step shows no trajectories.",
  });
  holder.append(table.node);

  const box = el("input", { type: "search", id: "search", placeholder: "Search prompts and responses", "aria-label": "Search prompts and responses", value: state.text, autocomplete: "off", spellcheck: "false" });
  let timer = 0;
  box.addEventListener("input", () => {
    state.text = box.value;
    clearTimeout(timer);
    timer = setTimeout(search, 180);
  });
  const outcomes = [
    ["all", "All outcomes", true],
    ["passed", "Passed", main.some((row) => isKnown(row.passed))],
    ["failed", "Failed", main.some((row) => isKnown(row.passed))],
    ["cut", "Truncated", main.some((row) => row.cut)],
  ].filter(([, , known]) => known);
  const outcome = el("select", { id: "outcome", "aria-label": "Outcome", onchange: () => refine(() => (state.outcome = outcome.value)) }, outcomes.map(([value, text]) => el("option", { value, selected: value === state.outcome }, text)));
  const tabs = el(
    "nav",
    { class: "tabs", "aria-label": "What is listed" },
    groups.length ? el("a", { href: `#/step/${name}`, "aria-current": isGroups ? "page" : null }, `Groups`) : null,
    el("a", { href: groups.length ? `#/step/${name}/rows` : `#/step/${name}`, "aria-current": !isGroups && !isKnown(chosen) ? "page" : null }, `Trajectories`),
    isKnown(chosen) ? el("a", { href: `#/step/${name}/group/${chosen}`, "aria-current": "page" }, `Group ${chosen}`) : null,
  );
  if (state.text) search();
  else refresh();

  const prompt = isKnown(chosen) && listed.length ? el("p", { class: "lead" }, listed[0].prompt) : null;
  const same = order.filter((each) => each.phase === step.phase);
  const place = same.indexOf(step);
  return {
    crumbs: [[titleOf(step), `#/step/${name}`], ...(isKnown(chosen) ? [[`Group ${chosen}`]] : [])],
    title: isKnown(chosen) ? `${titleOf(step)}, group ${chosen}` : titleOf(step),
    up: isKnown(chosen) ? `#/step/${name}` : "#/",
    before: same[place - 1] && `#/step/${same[place - 1].name}`,
    after: same[place + 1] && `#/step/${same[place + 1].name}`,
    content: [
      el("div", { class: "heading" }, el("h1", {}, isKnown(chosen) ? `Group ${chosen}` : titleOf(step)), isKnown(chosen) ? null : stepper(same[place - 1], same[place + 1])),
      isKnown(chosen) ? prompt : [tiles(name), el("section", { "aria-label": "Distributions" }, chartGrid(histogramsOf(read, state, refine)))],
      el("section", { "aria-label": isGroups ? "Groups" : "Trajectories" }, el("div", { class: "toolbar" }, tabs, el("div", { class: "filters" }, box, outcomes.length > 1 ? outcome : null, chips, count)), holder),
    ],
  };
}

function stepper(before, after) {
  const link = (step, text, sign, keys) => (step ? el("a", { class: "button", href: `#/step/${step.name}`, title: `${titleOf(step)} (${keys})`, "aria-label": text }, sign) : el("span", { class: "button off", "aria-hidden": "true" }, sign));
  return el("span", { class: "stepper" }, link(before, "Previous step", "\u2190", "["), link(after, "Next step", "\u2192", "]"));
}

function missingPage(text) {
  return { crumbs: [], title: "Not here", up: "#/", content: [el("h1", {}, "Not here"), el("p", {}, text, " ", el("a", { href: "#/" }, "Back to the overview"))] };
}
