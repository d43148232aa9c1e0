// Amounts, written for people.

const MINUS = "\u2212";

function isKnown(value) {
  return value !== null && value !== undefined;
}

// `step` is the distance between the figures on an axis: they have as many digits as tell them apart.
function number(value, step) {
  if (!isKnown(value)) return "";
  const size = Math.abs(value);
  let text;
  if (step && step < 1) text = size.toFixed(Math.min(6, Math.ceil(-Math.log10(step) + (/[25]/.test(String(step).replace(/^[0.]*/, "").slice(1)) ? 0.9 : -1e-9))));
  else if (size >= 1e6 || (step && step >= 1000)) text = size.toLocaleString("en-US", { notation: "compact", maximumSignificantDigits: 3 });
  else if (Number.isInteger(value)) text = size.toLocaleString("en-US");
  else if (size >= 1000) text = Math.round(size).toLocaleString("en-US");
  else if (size >= 0.001) text = size.toPrecision(size >= 100 ? 4 : 3);
  else text = size.toExponential(1);
  return value < 0 ? MINUS + text : text;
}

function signed(value) {
  return isKnown(value) ? (value > 0 ? "+" : "") + number(value) : "";
}

function length(value, step) {
  return isKnown(value) ? number(step ? value : Number(value.toPrecision(4)), step) : "";
}

function share(value) {
  if (!isKnown(value)) return "";
  const percent = value * 100;
  return `${percent === 0 || percent >= 9.95 ? percent.toFixed(percent % 1 && percent < 99.95 ? 1 : 0) : percent.toFixed(percent < 1 ? 2 : 1)}%`;
}

// What arithmetic adds in the last place would count as a digit.
function exact(value) {
  return Number(value.toPrecision(6));
}

function seconds(value, step) {
  if (!isKnown(value)) return "";
  if (value === 0) return "0 s";
  if (step && step < 1 && value < 60) return value < 0.0995 ? `${number(exact(value * 1000), exact(step * 1000))} ms` : `${number(value, step)} s`;
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 9.995) return `${value.toFixed(value < 1 ? 2 : 1)} s`;
  if (Math.round(value) < 60) return `${Math.round(value)} s`;
  const minutes = Math.floor(Math.round(value) / 60);
  if (minutes < 60) return `${minutes} m ${String(Math.round(value) % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
}

function bytes(count) {
  if (count < 1000) return `${count} B`;
  for (const unit of ["kB", "MB", "GB"]) {
    count /= 1000;
    if (count < 999.95) return `${count.toFixed(1)} ${unit}`;
  }
  return `${(count / 1000).toFixed(1)} TB`;
}

function plural(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function deviation(values) {
  const middle = mean(values);
  return values.length ? Math.sqrt(mean(values.map((value) => (value - middle) ** 2))) : null;
}
