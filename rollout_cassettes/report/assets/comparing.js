// What steps come to, and which of two cassettes' steps and trajectories belong together.

const KINDS = ["a", "b"];
const isPair = report.length > 1;

/* What is known of a step in figures. `y` gives the figure, `bands` how its values lie. */
const METRICS = [
  { key: "reward", name: "Reward", hint: "mean", y: (step) => step.reward?.mean, spread: "reward", format: number },
  { key: "pass", name: "Pass rate", hint: "", y: (step) => step.pass_rate, format: share, floor: 0, ceiling: 1 },
  { key: "length", name: "Response length", hint: "tokens", y: (step) => step.length?.mean, spread: "length", format: length, floor: 0 },
  { key: "truncated", name: "Truncated", hint: "", y: (step) => step.truncated, format: share, floor: 0, ceiling: 1 },
  { key: "log_prob", name: "Log-prob", hint: "nats", y: (step) => step.log_prob?.mean, spread: "log_prob", format: number, ceiling: 0 },
  { key: "entropy", name: "Entropy", hint: "estimated, nats", about: "Minus the log-prob of sampled tokens, averaged over all of them", y: (step) => step.entropy, format: number, floor: 0 },
  { key: "unlikely", name: "Unlikely tokens", hint: "", about: "The share of tokens that had a probability below 10%", y: (step) => step.unlikely, format: share, floor: 0, ceiling: 1 },
  { key: "flat", name: "Groups of one reward", hint: "", about: "Their responses all have one reward: there is no advantage to learn from", y: (step) => step.flat_groups, format: share, floor: 0, ceiling: 1 },
  { key: "lag", name: "Policy lag", hint: "updates behind", y: (step) => step.lag?.mean, spread: "lag", format: number, floor: 0 },
  { key: "seconds", name: "Generation", hint: "", y: (step) => step.seconds, format: seconds, floor: 0 },
  { key: "pace", name: "Throughput", hint: "tokens/s", y: (step) => (step.seconds && step.length ? (step.length.mean * step.rows) / step.seconds : null), format: length, floor: 0 },
];

function withTruth(cassette) {
  const known = cassette.steps.filter((step) => step.length);
  const longest = Math.max(...known.map((step) => step.length.high));
  const several = known.some((step) => step.length.high === longest && step.longest > 2 && step.length.low < longest);
  // As many tokens as this, several times: there it was cut.
  cassette.limit = several && !known.some((step) => isKnown(step.truncated)) ? longest : null;
  const judged = cassette.steps.every((step) => !step.reward || isKnown(step.pass_rate));
  for (const step of cassette.steps) {
    step.judged = judged && step.by_reward;
    if (!judged && step.by_reward) step.pass_rate = null;
    if (cassette.limit && step.length) step.truncated = step.length.high === longest ? step.longest / step.rows : 0;
  }
  const within = new Map();
  for (const step of cassette.steps) {
    const place = `${step.step}/${step.phase}`;
    within.set(place, [...(within.get(place) || []), step]);
  }
  for (const group of within.values()) group.forEach((step, place) => (step.x = step.step + place / group.length));
}

report.forEach(withTruth);

const phases = [...new Set(report.flatMap((cassette) => cassette.steps.map((step) => step.phase)))].sort((one, other) => (other === "train") - (one === "train"));
const order = [...new Map(report.flatMap((cassette) => cassette.steps).map((step) => [step.name, step])).values()].sort((one, other) => one.step - other.step || phases.indexOf(one.phase) - phases.indexOf(other.phase) || one.x - other.x);

const SHORT = { length: "Length", unlikely: "Unlikely", flat: "One reward", lag: "Lag", pace: "Tokens/s" };

function stepOf(cassette, name) {
  return report[cassette]?.steps.find((step) => step.name === name);
}

function titleOf(step) {
  const rest = step.name.slice(String(step.step).length + 1);
  return `Step ${number(step.step)}${rest ? ` · ${rest.replaceAll(".", " · ")}` : ""}`;
}

// What a trajectory answers, and which of the answers it is.
function placeOf(row) {
  return `${row.group ?? `row ${row.row}`}/${row.session ?? 0}/${row.output_index ?? 0}`;
}

function chip(which) {
  return el("span", { class: `chip ${KINDS[which]}` }, "AB"[which]);
}
