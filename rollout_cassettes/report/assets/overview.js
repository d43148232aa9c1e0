// The first page: how figures go over steps, and a table of all steps.

let overviewSort = { key: "step", down: false };

function bandsOf(metric, step) {
  const spread = metric.spread && step[metric.spread];
  if (!spread) return [];
  const bands = [
    [spread.p10, spread.p90],
    [spread.p25, spread.p75],
  ];
  return isPair ? bands.slice(1) : bands; // four bands on each other would be a fog
}

// A band that is the whole range at most steps says nothing: rewards of 0 and 1.
function isTelling(metric, steps) {
  const spreads = steps.map((step) => metric.spread && step[metric.spread]).filter(Boolean);
  const whole = spreads.filter((spread) => spread.p10 === spread.low && spread.p90 === spread.high && (spread.p50 === spread.low || spread.p50 === spread.high));
  return whole.length * 2 < spreads.length;
}

function trendOf(metric, phase) {
  const all = report.flatMap((cassette) => cassette.steps.filter((step) => step.phase === phase));
  const telling = isTelling(metric, all);
  const series = report.map((cassette, which) => ({
    kind: KINDS[which],
    name: "AB"[which],
    points: cassette.steps
      .filter((step) => step.phase === phase && isKnown(metric.y(step)))
      .map((step) => ({ x: step.x, y: metric.y(step), bands: telling ? bandsOf(metric, step) : [], step }))
      .sort((one, other) => one.x - other.x),
  }));
  const known = series.filter((each) => each.points.length);
  if (!known.length) return null;
  return lineChart({ ...metric, title: metric.name, series: known, open: (step) => (location.hash = `#/step/${step.name}`) });
}

function factsOf(cassette, which) {
  const { about, steps, wrong } = cassette;
  const latest = steps.map((step) => step.recorded_at).sort().at(-1);
  const took = steps.reduce((sum, step) => sum + (step.seconds || 0), 0);
  const rows = steps.reduce((sum, step) => sum + step.rows, 0);
  const facts = [
    (about.adapters || []).join(", "),
    plural(new Set(steps.map((step) => step.step)).size, "step"),
    rows === 1 ? "1 trajectory" : `${number(rows)} trajectories`,
    bytes(steps.reduce((sum, step) => sum + step.nbytes, 0)),
    took && `${seconds(took)} of generation`,
  ];
  const made = latest && `recorded ${latest.slice(0, 16).replace("T", " ")} UTC on ${about.host}`;
  const versions = Object.entries(about.versions || {}).map(([name, version]) => `${name} ${version}`);
  const given = Object.entries(about.metadata || {}).map(([name, value]) => `${name} = ${value}`);
  return el(
    "section",
    { class: "about", "aria-label": isPair ? `Cassette ${"AB"[which]}` : "Cassette" },
    el("h1", {}, isPair && chip(which), cassette.name),
    el("p", {}, facts.filter(Boolean).join(" · ")),
    el("p", { class: "quiet" }, [made, ...versions].filter(Boolean).join(" · ")),
    given.length ? el("p", { class: "quiet" }, given.join(" · ")) : null,
    wrong.map((line) => el("p", { class: "wrong" }, `Not shown: ${line}`)),
  );
}

function stepsTable(phase) {
  const names = order.filter((step) => step.phase === phase).map((step) => ({ name: step.name, step: step.step, at: order.indexOf(step), of: report.map((_, which) => stepOf(which, step.name)) }));
  const figures = [
    { key: "rows", name: "Rows", y: (step) => step.rows, format: number, wide: true },
    { key: "groups", name: "Groups", y: (step) => step.groups, format: number, wide: true },
    ...METRICS.map((metric) => ({ ...metric, name: SHORT[metric.key] || metric.name, wide: !["reward", "pass", "length"].includes(metric.key) })),
    { key: "nbytes", name: "Size", y: (step) => step.nbytes, format: bytes, wide: true },
  ];
  const both = new Set(isPair ? ["reward", "pass", "length", "truncated", "log_prob", "entropy"] : []);
  const columns = [{ key: "step", name: "Step", value: (row) => row.at, cell: (row) => row.name.replaceAll(".", " · "), kind: "left" }];
  for (const each of figures) {
    const known = names.filter((row) => row.of.some((step) => step && isKnown(each.y(step))));
    if (!known.length) continue;
    const value = (which) => (row) => (row.of[which] ? each.y(row.of[which]) ?? null : null);
    if (!isPair) columns.push({ key: each.key, name: each.name, about: each.about || each.hint, value: value(0), cell: (row) => each.format(value(0)(row)), wide: each.wide });
    else if (both.has(each.key)) {
      for (const which of [0, 1]) columns.push({ key: `${each.key}${which}`, name: [chip(which), each.name], about: each.about || each.hint, value: value(which), cell: (row) => each.format(value(which)(row)), wide: each.key !== "reward" });
    }
  }
  const table = sortableTable({
    label: "Steps",
    columns,
    rows: names,
    sort: overviewSort,
    href: (row) => `#/step/${row.name}`,
    onSort: (sort) => (overviewSort = sort),
  });
  return table.node;
}

function overviewPage(phase) {
  const shownPhase = phases.includes(phase) ? phase : phases[0];
  const tabs = phases.length > 1 ? el("nav", { class: "tabs", "aria-label": "Phases" }, phases.map((each) => el("a", { href: each === phases[0] ? "#/" : `#/phase/${each}`, "aria-current": each === shownPhase ? "page" : null }, each))) : null;
  const trends = METRICS.map((metric) => trendOf(metric, shownPhase)).filter(Boolean);
  return {
    crumbs: [],
    title: report.map((cassette) => cassette.name).join(" and "),
    content: [
      el("div", { class: isPair ? "pair" : "" }, report.map(factsOf)),
      tabs,
      trends.length ? el("section", { "aria-label": "Trends over steps" }, el("h2", {}, "Trends"), chartGrid(trends)) : null,
      el("section", { "aria-label": "Steps" }, el("h2", {}, "Steps"), stepsTable(shownPhase)),
    ],
  };
}
