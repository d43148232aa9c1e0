// Blocks: text that stays compressed until it is looked at.

const report = JSON.parse(byId("report").textContent);
const kept = new Map(); // decoded blocks, the latest last
const MOST_KEPT = 160;
const ROWS_EACH = 64; // as in blocks.py
const FIRST = 0x23;
const UNKNOWN = 50001;

// The browser may still be reading the file: what follows a block says that it is whole.
async function present(id) {
  for (;;) {
    const node = byId(id);
    const isWhole = document.readyState !== "loading";
    if (node && (isWhole || node.nextSibling)) return node;
    if (isWhole) throw new Error(`The report lacks ${id}.`);
    await new Promise((done) => setTimeout(done, 30));
  }
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const data = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place += 1) data[place] = raw.charCodeAt(place);
  return data;
}

async function decoded(id) {
  const data = fromBase64((await present(id)).textContent);
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function block(cassette, step, name) {
  const id = `${cassette}/${step}/${name}`;
  const found = kept.get(id) || decoded(id);
  kept.delete(id);
  kept.set(id, found);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return found;
}

// Rows in figures, as objects; `at` is a row's place among the blocks of text.
async function rowsOf(cassette, step) {
  const columns = await block(cassette, step.name, "rows");
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  return Array.from({ length: count }, (_, at) => {
    const row = { at };
    for (const name of names) row[name] = columns[name][at];
    if (!isKnown(row.passed) && step.judged && isKnown(row.score)) row.passed = row.score > 0;
    if (!isKnown(row.cut) && report[cassette].limit && isKnown(row.tokens)) row.cut = row.tokens >= report[cassette].limit;
    return row;
  });
}

async function textOf(cassette, step, at) {
  const held = await block(cassette, step.name, String(Math.floor(at / ROWS_EACH)));
  const row = held.rows[at % ROWS_EACH];
  return { ...row, prompt: held.prompts[row.prompt] };
}

// ---- rows of numbers, a character each

function numberAt(packed, place) {
  return packed.charCodeAt(place) - FIRST;
}

function logProbAt(packed, place) {
  const value = numberAt(packed, place);
  return value === UNKNOWN || Number.isNaN(value) ? null : -value / 100;
}
