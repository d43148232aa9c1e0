// Charts: lines over steps with bands, and histograms. They are drawn anew when their width changes.

const HEIGHT = 168;
const MARGIN = { left: 58, right: 12, top: 10, bottom: 22 };
const charts = new Set(); // the line charts on the page: they share where the pointer is

function niceStep(range, count) {
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999);
  return factor * power;
}

function ticks(low, high, count, whole) {
  let step = niceStep(high - low || 1, count);
  if (whole) step = Math.max(1, Math.floor(step));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

function domain(values, { floor, ceiling } = {}) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  const pad = high > low ? (high - low) * 0.06 : Math.abs(high) * 0.1 || 0.5;
  low = isKnown(floor) && low - pad < floor ? floor : low - pad;
  high = isKnown(ceiling) && high + pad > ceiling ? ceiling : high + pad;
  return [low, high];
}

function scale([low, high], [from, to]) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function figure(title, hint, body, extra, about) {
  return el(
    "figure",
    { class: "chart", title: about },
    el("figcaption", {}, el("span", { class: "chart-title" }, title), hint && el("span", { class: "quiet" }, hint), extra),
    body,
  );
}

// As many columns as there is room for, or one less where that leaves fewer places empty.
function chartGrid(made) {
  const grid = el("div", { class: "charts" }, made);
  drawn(grid, (width) => {
    const most = Math.min(made.length, Math.floor((width + 14) / 294));
    const empty = (columns) => (columns - (made.length % columns)) % columns;
    const columns = most > 3 && empty(most - 1) < empty(most) ? most - 1 : most;
    grid.style.gridTemplateColumns = columns > 1 ? `repeat(${columns}, minmax(0, 1fr))` : "";
  });
  return grid;
}

// Draws into an element whenever its width changes, from when it is on the page.
function drawn(holder, draw) {
  let width = 0;
  const watch = new ResizeObserver(() => {
    const now = Math.floor(holder.clientWidth);
    if (!now || now === width) return;
    width = now;
    draw(width);
  });
  watch.observe(holder);
  return holder;
}

function frame(width, label, xs, ys, x, y, format, { xWhole = true, xFormat = number, yWhole = false } = {}) {
  const right = width - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const levels = ticks(...ys, 4, yWhole);
  const apart = levels.length > 1 ? levels[1] - levels[0] : 0;
  const lines = levels.map((value) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: MARGIN.left - 7, y: y(value) + 3.5, "text-anchor": "end" }, format(value, Number(apart.toPrecision(6)))),
  ]);
  const along = ticks(...xs, Math.max(2, Math.floor(width / 60)), xWhole);
  const between = along.length > 1 ? Number((along[1] - along[0]).toPrecision(6)) : 0;
  const marks = along.map((value) =>
    svg("text", { class: "tick", x: x(value), y: bottom + 15, "text-anchor": "middle" }, xFormat(value, between)),
  );
  return svg(
    "svg",
    { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
    lines,
    svg("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }),
    marks,
  );
}

function pathOf(points) {
  return points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/* A line for each series over steps.
   series: [{kind: "a" | "b", name, points: [{x, y, bands: [[low, high], …], step}]}] */
function lineChart({ title, hint, about, series, format, floor, ceiling, open }) {
  const all = series.flatMap((each) => each.points);
  const values = all.flatMap((point) => [point.y, ...point.bands.flat()]);
  const places = [...new Set(all.map((point) => point.x))].sort((one, other) => one - other);
  const ys = domain(values, { floor, ceiling });
  const xs = places.length > 1 ? [places[0], places.at(-1)] : [places[0] - 1, places[0] + 1];
  const last = series.map((each) => format(each.points.at(-1).y)).join(" and ");
  const label = `${title} over steps; last ${last}`;
  const holder = el("div", { class: "plot", tabindex: 0, "aria-label": `${label}. Left and right move along steps.`, role: "group" });
  const read = el("span", { class: "reading" });
  const chart = { places, here: null };
  let x = null;
  let y = null;
  let hover = null;

  drawn(holder, (width) => {
    x = scale(xs, [MARGIN.left + 4, width - MARGIN.right - 4]);
    y = scale(ys, [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const plot = frame(width, label, xs, ys, x, y, format);
    for (const each of series) {
      const many = each.points.length;
      for (const which of [0, 1]) {
        const band = each.points.filter((point) => point.bands[which]);
        if (band.length < 2) continue;
        const up = band.map((point) => [x(point.x), y(point.bands[which][1])]);
        const down = band.map((point) => [x(point.x), y(point.bands[which][0])]).reverse();
        plot.append(svg("path", { class: `band ${each.kind}`, d: `${pathOf([...up, ...down])}Z` }));
      }
      plot.append(svg("path", { class: `line ${each.kind}`, d: pathOf(each.points.map((point) => [x(point.x), y(point.y)])) }));
      if (many <= 24) for (const point of each.points) plot.append(svg("circle", { class: `dot ${each.kind}`, cx: x(point.x), cy: y(point.y), r: 3 }));
    }
    hover = svg("g", { class: "hover" });
    plot.append(hover);
    holder.replaceChildren(plot);
    chart.show(chart.here);
  });

  chart.show = (place) => {
    chart.here = place;
    const found = series.map((each) => [each, isKnown(place) ? each.points.find((point) => point.x === place) : each.points.at(-1)]);
    read.replaceChildren(
      ...found.filter(([, point]) => point).map(([each, point]) => el("span", { class: `value ${series.length > 1 ? each.kind : ""}` }, format(point.y))),
    );
    if (!hover) return;
    hover.replaceChildren();
    if (!isKnown(place)) return;
    hover.append(svg("line", { class: "cross", x1: x(place), x2: x(place), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    for (const [each, point] of found) if (point) hover.append(svg("circle", { class: `dot ${each.kind}`, cx: x(place), cy: y(point.y), r: 4 }));
  };
  const told = (place) => {
    const lines = series.map((each) => {
      const point = each.points.find((one) => one.x === place);
      if (!point) return null;
      const bands = point.bands.map(([low, high], which) => `${["80%", "50%"].slice(-point.bands.length)[which]} within ${format(low)} to ${format(high)}`);
      return [series.length > 1 ? `${each.name}: ${format(point.y)}` : format(point.y), ...bands].join("\n");
    });
    return [`step ${number(places.includes(place) ? Math.floor(place) : place)}`, ...lines.filter(Boolean)].join("\n");
  };
  const nearest = (event) => {
    const at = event.clientX - holder.getBoundingClientRect().left;
    return places.reduce((best, place) => (Math.abs(x(place) - at) < Math.abs(x(best) - at) ? place : best));
  };
  const stepAt = (place) => all.find((point) => point.x === place).step;
  holder.addEventListener("pointermove", (event) => {
    const place = nearest(event);
    for (const each of charts) each.show(each.places.includes(place) ? place : null);
    showTip(told(place), event.clientX, event.clientY);
  });
  holder.addEventListener("pointerleave", () => {
    for (const each of charts) each.show(null);
    hideTip();
  });
  holder.addEventListener("click", (event) => open(stepAt(nearest(event))));
  holder.addEventListener("blur", () => {
    for (const each of charts) each.show(null);
    hideTip();
  });
  holder.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way) {
      const now = isKnown(chart.here) ? places.indexOf(chart.here) + way : way < 0 ? places.length - 1 : 0;
      const place = places[Math.max(0, Math.min(places.length - 1, now))];
      for (const each of charts) each.show(each.places.includes(place) ? place : null);
      const box = holder.getBoundingClientRect();
      showTip(told(place), box.left + x(place), box.top + 20);
      say(told(place));
      event.preventDefault();
    } else if (event.key === "Enter" && isKnown(chart.here)) {
      hideTip();
      open(stepAt(chart.here));
    }
  });
  charts.add(chart);
  chart.show(null);
  return figure(title, hint, holder, read, about);
}

// ---- histograms

function binsOf(series, whole) {
  const all = series.flatMap((each) => each.values);
  const low = Math.min(...all);
  const high = Math.max(...all);
  const different = [...new Set(all)].sort((one, other) => one - other);
  if (different.length <= 8 && all.length >= 4 * different.length) return different.map((value) => ({ low: value, high: value, one: true }));
  let width = niceStep(high - low || 1, Math.min(22, Math.ceil(2 * Math.sqrt(all.length))));
  if (whole) width = Math.max(1, Math.round(width));
  const first = Math.floor(low / width);
  const count = Math.max(1, Math.floor(high / width) - first + 1);
  return Array.from({ length: count }, (_, place) => ({
    low: Number(((first + place) * width).toPrecision(12)),
    high: Number(((first + place + 1) * width).toPrecision(12)),
  }));
}

function binAt(bins, value) {
  if (bins[0].one) return bins.findIndex((bin) => bin.low === value);
  return Math.max(0, Math.min(bins.length - 1, Math.floor((value - bins[0].low) / (bins[0].high - bins[0].low) + 1e-9)));
}

/* How often values occur, as bars; `pick` is called with a bar's bounds.
   series: [{kind, name, values}] */
function histogram({ title, hint, series, format, whole, pick, counted = ["trajectory", "trajectories"] }) {
  const shown = series.filter((each) => each.values.length);
  const bins = binsOf(shown, whole);
  const counts = shown.map((each) => {
    const count = bins.map(() => 0);
    for (const value of each.values) count[binAt(bins, value)] += 1;
    return count;
  });
  const one = Boolean(bins[0].one);
  const named = (bin) => (one ? format(bin.low) : `${format(bin.low)} to ${format(bin.high)}`);
  const label = `${title}: ${bins.map((bin, place) => `${named(bin)}: ${counts.map((count) => count[place]).join(" and ")}`).join(", ")}`;
  const holder = el("div", { class: `plot${pick ? " picks" : ""}` });
  drawn(holder, (width) => {
    const xs = one ? [-0.5, bins.length - 0.5] : [bins[0].low, bins.at(-1).high];
    const ys = [0, Math.max(...counts.flat()) * 1.06];
    const x = scale(xs, [MARGIN.left, width - MARGIN.right]);
    const y = scale(ys, [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const fitting = Math.max(1, Math.ceil(bins.length / Math.max(2, Math.floor(width / 60))));
    const xFormat = (value) => (one ? (bins[value] && value % fitting === 0 ? format(bins[value].low) : "") : format(value));
    const marks = one ? Array.from(bins, (_, place) => place) : null;
    const plot = frame(width, label, xs, ys, x, y, number, { yWhole: true, xWhole: Boolean(one || whole), xFormat: one ? () => "" : format });
    if (marks) for (const place of marks) plot.append(svg("text", { class: "tick", x: x(place), y: HEIGHT - MARGIN.bottom + 15, "text-anchor": "middle" }, xFormat(place)));
    bins.forEach((bin, place) => {
      const from = one ? x(place - 0.5) : x(bin.low);
      const to = one ? x(place + 0.5) : x(bin.high);
      const gap = one ? Math.max(2, (to - from - 64) / 2) : 1;
      const each = (to - from - 2 * gap) / shown.length;
      shown.forEach((series, which) => {
        const top = y(counts[which][place]);
        plot.append(svg("rect", { class: `bar ${series.kind}`, x: from + gap + which * each, width: Math.max(1, each - (shown.length > 1 ? 1 : 0)), y: top, height: Math.max(0, HEIGHT - MARGIN.bottom - top), rx: 1.5 }));
      });
      const told = `${named(bin)}\n${shown.map((series, which) => (shown.length > 1 ? `${series.name}: ${number(counts[which][place])}` : `${number(counts[which][place])} ${counted[counts[which][place] === 1 ? 0 : 1]}`)).join("\n")}`;
      const total = counts.reduce((sum, count) => sum + count[place], 0);
      plot.append(
        svg("rect", {
          class: "catch",
          x: from,
          width: Math.max(1, to - from),
          y: MARGIN.top,
          height: HEIGHT - MARGIN.top - MARGIN.bottom,
          onpointermove: (event) => showTip(told, event.clientX, event.clientY),
          onpointerleave: hideTip,
          onclick: pick && total ? () => pick(bin.low, bin.high, one) : null,
        }),
      );
    });
    holder.replaceChildren(plot);
  });
  return figure(title, hint, holder);
}
