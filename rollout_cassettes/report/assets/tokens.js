// A response token by token: shaded by how probable each was.

const LIMITS = [0.01, 0.1, 0.5, 0.9]; // as in display/shading.py
const LEGEND = ["<1%", "<10%", "<50%", "<90%"];
const MOST_TOKENS = 6000;

function shadeOf(logProb) {
  const probability = Math.exp(Math.min(logProb, 0));
  const place = LIMITS.findIndex((limit) => probability < limit);
  return place < 0 ? LIMITS.length : place;
}

// The text of each token; where it isn't known, its id.
function piecesOf(told) {
  if (told.tokens) {
    const text = told.pieces ?? told.text ?? "";
    const marks = /[\ud800-\udfff]/.test(text) ? Array.from(text) : null; // lengths count characters
    let from = 0;
    return Array.from({ length: told.tokens.length }, (_, place) => {
      const to = from + numberAt(told.tokens, place);
      const piece = marks ? marks.slice(from, to).join("") : text.slice(from, to);
      from = to;
      return piece;
    });
  }
  return told.ids ? told.ids.map((id) => `${id} `) : null;
}

function tokenFacts(told) {
  const rewards = new Map(told.rewards || []);
  const isMasked = (place) => (told.masked || []).some(([from, to]) => from <= place && place < to);
  return (place) => ({
    place,
    id: told.ids?.[place],
    logProb: told.logProbs ? logProbAt(told.logProbs, place) : null,
    reward: rewards.get(place) ?? null,
    masked: isMasked(place),
  });
}

function toldOf(fact) {
  return [
    `token ${fact.place}`,
    isKnown(fact.id) && `id ${fact.id}`,
    isKnown(fact.logProb) && `probability ${share(Math.exp(fact.logProb))}`,
    isKnown(fact.logProb) && `log-prob ${number(fact.logProb)}`,
    isKnown(fact.reward) && `reward ${number(fact.reward)}`,
    fact.masked && "masked: not the model's",
  ]
    .filter(Boolean)
    .join("\n");
}

/* The response as spans; `differs` is the first token that is another than in the cassette beside it. */
function tokensView(told, differs) {
  const pieces = piecesOf(told);
  const factOf = tokenFacts(told);
  const holder = el("div", { class: `text tokens${told.tokens ? "" : " ids"}` });
  const add = (from, to) => {
    const made = document.createDocumentFragment();
    for (let place = from; place < to; place += 1) {
      const fact = factOf(place);
      const kinds = [];
      if (fact.masked) kinds.push("masked");
      else if (isKnown(fact.logProb) && shadeOf(fact.logProb) < 4) kinds.push(`s${shadeOf(fact.logProb)}`);
      if (fact.reward) kinds.push("rewarded");
      if (place === differs) kinds.push("differs");
      const node = document.createElement("span");
      node.textContent = pieces[place];
      node.dataset.at = place;
      if (kinds.length) node.className = kinds.join(" ");
      made.append(node);
    }
    holder.append(made);
  };
  add(0, Math.min(pieces.length, MOST_TOKENS));
  if (pieces.length > MOST_TOKENS) {
    const more = el("button", { type: "button", class: "more", onclick: () => (more.remove(), add(MOST_TOKENS, pieces.length)) }, `Show ${number(pieces.length - MOST_TOKENS)} more tokens`);
    holder.append(more);
  }
  holder.addEventListener("pointermove", (event) => {
    const place = event.target.dataset?.at;
    if (place === undefined) hideTip();
    else showTip(toldOf(factOf(Number(place))), event.clientX, event.clientY);
  });
  holder.addEventListener("pointerleave", hideTip);
  return holder;
}

function legend(told) {
  const hasMask = told.masked?.length;
  const hasRewards = (told.rewards || []).length;
  if (!told.logProbs && !hasMask && !hasRewards) return null;
  return el(
    "p",
    { class: "legend quiet" },
    told.logProbs ? ["probability ", LEGEND.map((text, place) => [el("span", { class: `s${place} swatch` }, text), " "])] : null,
    hasMask ? [el("span", { class: "masked swatch" }, "masked"), " "] : null,
    hasRewards ? el("span", { class: "rewarded swatch" }, "rewarded") : null,
  );
}

// Log-probs along the response, as a line of stems; a click shows the token.
function logProbStrip(told, show) {
  const count = told.logProbs?.length || 0;
  if (count < 2) return null;
  const values = Array.from({ length: count }, (_, place) => logProbAt(told.logProbs, place));
  const low = Math.min(-0.1, ...values.filter(isKnown));
  const holder = el("div", { class: "plot strip" });
  const height = 72;
  const placeAt = (event) => {
    const box = holder.getBoundingClientRect();
    return Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - box.left) / Math.min(box.width, count * 14)) * count)));
  };
  const factOf = tokenFacts(told);
  drawn(holder, (room) => {
    const width = Math.min(room, count * 14);
    const x = scale([0, count], [0, width]);
    const y = scale([0, low], [4, height - 4]);
    const columns = Math.min(count, width);
    const stems = [];
    for (let place = 0; place < columns; place += 1) {
      const part = values.slice(Math.floor((place * count) / columns), Math.floor(((place + 1) * count) / columns)).filter(isKnown);
      if (!part.length) continue;
      const middle = x(((place + 0.5) * count) / columns).toFixed(1);
      stems.push(`M${middle} 4V${y(Math.min(...part)).toFixed(1)}`);
    }
    holder.replaceChildren(
      svg(
        "svg",
        { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Log-probs along the response, from 0 down to ${number(low)}` },
        svg("path", { class: "stems", d: stems.join(""), "stroke-width": Math.max(1, Math.min(10, (width / columns) * 0.7)) }),
        svg("line", { class: "axis", x1: 0, x2: width, y1: 4, y2: 4 }),
      ),
    );
  });
  holder.addEventListener("pointermove", (event) => showTip(toldOf(factOf(placeAt(event))), event.clientX, event.clientY));
  holder.addEventListener("pointerleave", hideTip);
  holder.addEventListener("click", (event) => show(placeAt(event)));
  return el("figure", { class: "chart" }, el("figcaption", {}, el("span", { class: "chart-title" }, "Log-probs along the response"), el("span", { class: "quiet" }, `0 to ${number(low)}`)), holder);
}
