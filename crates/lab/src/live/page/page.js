// Asks the program for frames, and shows the newest one: the document around the drawings of drawing.js.

import {
  History, count, covarianceOf, drawColourBar, drawCone, drawEllipses, drawErrors, drawGains, drawMatrix, drawTraces,
  ellipseAxes, facing, numeral, readFrame, themes,
} from "./drawing.js";

const at = (id) => document.getElementById(id);
const OFTEN = 100;
const SELDOM = 1000;
// An answer or a drawing that takes longer asks for a slower pace.
const SLOW = 200;
const PATIENCE = 2500;

const still = matchMedia("(prefers-reduced-motion: reduce)");
const darkWished = matchMedia("(prefers-color-scheme: dark)");

// What the page knows, and what its reader has chosen.
const page = {
  history: new History("stream"), lastFrame: null, framesReceived: 0, framesDrawn: 0, connection: "waiting",
  marks: [], toy: null,
};
const view = { paused: false, theme: null, tab: "stream", cell: null, point: null, said: 0 };
const toy = {
  axes: null, dragged: null, range: 3.3, height: 3.5, azimuth: null, elevation: 0.45,
  wishes: {}, posting: false, outbox: {},
};
window.leukosPage = page;

const WORDS = {
  noToken: "This address lacks its token. Open the whole address that the program printed, with what follows the #.",
  oldToken: "This address is no longer valid: its token is of another run. Open the one that the program prints now.",
  gone: "The program is gone: it has ended or was stopped. This is its last picture; the page tries again each second.",
  silent: "The program does not answer. This is its last picture; the page tries again each second.",
  full: "The program has too many connections. Close other pages of it; this one tries again each second.",
  foreign: "The program refuses this page, because its address is not the one that the program printed.",
};

// Frames: one request at a time and the newest answer only, so that a slow page is never more than a frame behind.

let asking = false;
let timer = 0;
let drawing = 0;
let lastTook = 0;

async function ask() {
  clearTimeout(timer);
  if (asking || view.paused) return;
  if (token() === "") {
    stop("token", WORDS.noToken);
    return;
  }
  asking = true;
  const begun = performance.now();
  let pause = pace();
  try {
    const response = await request(`/frame?since=${page.history.lastId}`);
    if (response.status === 401) return stop("refused", WORDS.oldToken);
    if (!response.ok) throw new Error(refusal(response.status));
    receive(readFrame(await response.text()));
    lastTook = performance.now() - begun;
    pause = Math.max(pace() - lastTook, 0);
  } catch (error) {
    trouble("gone", wordsOf(error));
    pause = SELDOM;
  } finally {
    asking = false;
  }
  timer = setTimeout(ask, pause);
}

const token = () => location.hash.slice(1);
const pace = () => (document.hidden || still.matches || lastTook > SLOW || hasEnded() ? SELDOM : OFTEN);
const hasEnded = () => ["ended", "failed"].includes(page.lastFrame?.state?.kind);

function request(path, body) {
  const headers = { Authorization: `Bearer ${token()}` };
  const options = { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
  if (!body) return fetch(path, options);
  headers["Content-Type"] = "application/json";
  return fetch(path, { ...options, method: "POST", body: JSON.stringify(body) });
}

function refusal(status) {
  if (status === 503) return WORDS.full;
  if (status === 403) return WORDS.foreign;
  return `The program answered with an error (${status}). This page tries again each second.`;
}

function wordsOf(error) {
  if (error.name === "TimeoutError") return WORDS.silent;
  // What `fetch` throws when there is no connection.
  if (error instanceof TypeError) return WORDS.gone;
  if (!error.message.startsWith("frame:")) return error.message;
  return `The program sent what this page does not understand. Reload the page. (${error.message})`;
}

function stop(kind, words) {
  asking = false;
  trouble(kind, words);
}

function trouble(kind, words) {
  page.connection = kind;
  document.body.classList.add("stale");
  say(at("notice"), words);
  at("notice").hidden = false;
  at("begin").hidden = true;
}

function receive(frame) {
  page.connection = "open";
  document.body.classList.remove("stale");
  at("notice").hidden = true;
  at("begin").hidden = true;
  const earlier = page.lastFrame;
  if (earlier?.run !== frame.run || earlier.mode !== frame.mode) beginAnew(frame.mode);
  page.history.merge(frame.mode === "toy" ? frame.toy.points : frame.points);
  if (frame.mode === "toy") receiveToy(frame.toy);
  page.framesReceived += 1;
  page.lastFrame = frame;
  if (frame.mode === "stream" && earlier?.run === frame.run) announceChanges(earlier, frame);
  if (earlier?.run !== frame.run || earlier.sequence !== frame.sequence) redraw();
}

function beginAnew(mode) {
  page.history = new History(mode);
  Object.assign(view, { cell: null, point: null });
  Object.assign(toy, { axes: null, azimuth: null, wishes: {} });
  at("stream-mode").hidden = mode !== "stream";
  at("toy-mode").hidden = mode !== "toy";
}

/** Draws the newest frame soon; a hidden page draws when it is seen again. */
function redraw() {
  if (drawing === 0) drawing = requestAnimationFrame(draw);
}

function draw() {
  drawing = 0;
  const frame = page.lastFrame;
  if (frame === null) return;
  const begun = performance.now();
  const labelled = begun - view.said >= SELDOM;
  if (labelled) view.said = begun;
  nameThemeSwitch();
  if (frame.mode === "toy") showToy(frame, labelled);
  else showStream(frame, labelled);
  page.framesDrawn += 1;
  lastTook = Math.max(lastTook, performance.now() - begun);
}

// Words. Text is written only where it differs, so that a selection or a screen reader is not disturbed.

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function announce(words) {
  say(at("announcements"), words);
}

function label(element, words) {
  if (element.getAttribute("aria-label") !== words) element.setAttribute("aria-label", words);
}

/** Fills a list of names and values. */
function list(element, entries) {
  while (element.children.length > entries.length) element.lastChild.remove();
  entries.forEach(([name, value], i) => {
    if (!element.children[i]) {
      const entry = document.createElement("div");
      entry.append(document.createElement("dt"), document.createElement("dd"));
      element.append(entry);
    }
    const [term, definition] = element.children[i].children;
    say(term, name);
    say(definition, value);
  });
}

const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Rows as the reader counts them: in seconds where the sample rate is known. */
function unitOf({ sample_rate: rate }) {
  return rate ? { of: (row) => row / rate, label: "time (s)" } : { of: (row) => row, label: "row" };
}

const moment = (frame, row) => (frame.sample_rate ? `${(row / frame.sample_rate).toFixed(2)} s` : `row ${count(row)}`);

function theme() {
  return themes[themeName()];
}

function themeName() {
  return view.theme ?? (darkWished.matches ? "dark" : "light");
}

// Stream.

const noticed = ["new", "recalled", "told"];
const layouts = {};

function showStream(frame, labelled) {
  document.title = `${frame.title} – Leukos live`;
  say(at("title"), frame.title);
  say(at("model"), frame.model ? `whitened by ${frame.model}` : "");
  showState(frame);
  showControls(frame);
  if (view.tab === "channels") showChannels(frame);
  else drawStream(frame, labelled);
}

function showState(frame) {
  at("state-dot").className = `dot ${frame.state.kind}`;
  say(at("state"), sentence(frame.state.words));
  const troubled = frame.channels.filter((channel) => channel.state !== "live");
  at("channel-note").hidden = troubled.length === 0;
  say(at("channel-note"), troubled.length > 0 ? `${channelTrouble(troubled)}.` : "");
  say(at("tab-channels"), troubled.length > 0 ? `Channels (${troubled.length} not live)` : "Channels");
  const rows = frame.total_rows === null ? count(frame.rows) : `${count(frame.rows)} of ${count(frame.total_rows)}`;
  const { counts } = frame;
  const entries = [["rows", rows]];
  if (frame.sample_rate) entries.push(["time", `${(frame.rows / frame.sample_rate).toFixed(1)} s`]);
  if (frame.behind_ms !== null) entries.push(["behind by", lag(frame.behind_ms)]);
  entries.push(["changes of context", count(counts.changes)]);
  for (const name of ["bad", "outliers", "silent"]) entries.push([name, count(counts[name])]);
  list(at("counts"), entries);
}

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const lag = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** Names the first channels that do not take part, and counts the others. */
function channelTrouble(troubled) {
  const named = troubled.slice(0, 3).map((channel) => `${channel.name} ${channel.words}`);
  const others = troubled.length - named.length;
  return named.join("; ") + (others > 0 ? `; and ${others} more` : "");
}

function showControls(frame) {
  at("controls").hidden = !frame.control;
  const paused = frame.state.kind === "paused";
  at("adapt").dataset.action = paused ? "adapt-on" : "adapt-off";
  say(at("adapt"), paused ? "Adapt again" : "Stop adapting");
}

function drawStream(frame, labelled) {
  const { error, floor, unadapted, gains, row } = page.history;
  const unit = unitOf(frame);
  const marks = frame.changes.map((change) => ({ x: unit.of(change.row), word: wordOf(change), row: change.row }));
  const shared = { x: row.map(unit.of), xLabel: unit.label, marks, cursor: pointIndex() };
  drawMatrices(frame);
  layouts.errors = drawErrors(at("errors"), { ...shared, error, floor, unadapted }, theme());
  layouts.gains = drawGains(at("gains"), { ...shared, gains }, theme());
  page.marks = layouts.errors.marks;
  drawBothTraces(frame, unit);
  readMatrix(frame);
  readPoint(frame);
  if (labelled) labelStream(frame);
}

/** The word above a change: its kind, or what a note begins with. */
function wordOf({ kind, words }) {
  return kind === "note" && words ? words.split(" ").slice(0, 2).join(" ") : kind;
}

const namesOf = (frame, chosen) => chosen.map((index) => frame.channels[index].name);

function drawMatrices(frame) {
  const names = namesOf(frame, frame.shown);
  for (const side of ["before", "after"]) {
    const data = { values: frame[side], names, cursor: view.cell };
    layouts[`matrix-${side}`] = drawMatrix(at(`matrix-${side}`), data, theme());
  }
  drawColourBar(at("matrix-bar"), theme());
}

function drawBothTraces(frame, unit) {
  const { traces } = frame;
  const names = namesOf(frame, traces.channels);
  const shared = { names, firstX: unit.of(traces.first_row), stepX: unit.of(1), xLabel: unit.label };
  drawTraces(at("traces-before"), { ...shared, values: traces.before, together: false }, theme());
  drawTraces(at("traces-after"), { ...shared, values: traces.after, together: true }, theme());
}

/** The pair of different channels with the strongest value, or null. */
function strongest(values, size) {
  let best = null;
  values.forEach((value, i) => {
    const [row, column] = [Math.floor(i / size), i % size];
    if (row >= column || value === null) return;
    if (best === null || Math.abs(value) > Math.abs(best.value)) best = { row, column, value };
  });
  return best;
}

function hundredths(value) {
  return value === null ? "not known" : value.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
}

function readMatrix(frame) {
  const [shown, all] = [frame.shown.length, frame.channels.length];
  const some = shown < all ? ` ${shown} of ${all} channels are shown.` : "";
  say(at("matrix-reading"), matrixWords(frame) + some);
}

/** The numbers of the cell that is pointed at, or else the strongest of each matrix. */
function matrixWords(frame) {
  const size = frame.shown.length;
  const name = (index) => frame.channels[frame.shown[index]].name;
  const pair = ({ row, column }) => (row === column ? name(row) : `${name(row)} and ${name(column)}`);
  if (view.cell && view.cell.row < size && view.cell.column < size) {
    const index = view.cell.row * size + view.cell.column;
    return `${pair(view.cell)}: ${hundredths(frame.before[index])} before, ${hundredths(frame.after[index])} after.`;
  }
  const [before, after] = [frame.before, frame.after].map((values) => strongest(values, size));
  if (!before || !after) return "Not enough rows yet.";
  const most = (cell) => `${pair(cell)}, ${hundredths(cell.value)}`;
  return `Strongest before: ${most(before)}. After: ${most(after)}.`;
}

function pointIndex() {
  if (view.point === null) return null;
  const index = page.history.id.indexOf(view.point);
  return index < 0 ? null : index;
}

function readPoint(frame) {
  const { history } = page;
  const chosen = pointIndex();
  const index = chosen ?? history.length - 1;
  if (index < 0) {
    say(at("error-reading"), "Not enough rows yet.");
    say(at("gain-reading"), "");
    return;
  }
  const when = chosen === null ? "Now" : `At ${moment(frame, history.row[index])}`;
  const [error, unadapted, floor] = ["error", "unadapted", "floor"].map((name) => level(history[name][index]));
  const change = changeWords(frame, history.row[index]);
  say(at("error-reading"), `${when}: ${error}; nothing adapted ${unadapted}; noise floor ${floor}. ${change}`.trim());
  say(at("gain-reading"), gainWords(frame, history.gains[index], when));
}

const level = (value) => numeral(value).replace("–", "not known yet");

/** The last change at or before a row. */
function changeWords(frame, row) {
  const change = frame.changes.findLast((each) => each.row <= row);
  return change ? `Last change at ${moment(frame, change.row)}: ${change.words ?? change.kind}.` : "";
}

function gainWords(frame, gains, when) {
  const shown = gains.length < frame.gains_total ? `${gains.length} of ${frame.gains_total} gains are shown.` : "";
  return `${when}: ${gains.length > 8 ? rangeWords(gains) : eachGain(gains)}. ${shown}`.trim();
}

const rangeWords = (values) => `from ${numeral(Math.min(...values))} to ${numeral(Math.max(...values))}`;
const eachGain = (gains) => gains.map((gain, i) => `g${i + 1} ${numeral(gain)}`).join(", ");

/** What the drawings show, for those who do not see them. */
function labelStream(frame) {
  for (const side of ["before", "after"]) label(at(`matrix-${side}`), matrixLabel(frame, side));
  labelCurves(frame);
  const { traces } = frame;
  const names = namesOf(frame, traces.channels).join(", ");
  label(at("traces-before"), `Traces as recorded of ${names}, from ${moment(frame, traces.first_row)}`);
  label(at("traces-after"), `Traces after whitening of ${names}, from ${moment(frame, traces.first_row)}`);
}

function matrixLabel(frame, side) {
  const size = frame.shown.length;
  const pair = strongest(frame[side], size);
  if (!pair) return `Correlations ${side} whitening are not known yet`;
  const names = namesOf(frame, [frame.shown[pair.row], frame.shown[pair.column]]).join(" and ");
  const most = `the strongest is ${hundredths(pair.value)}, between ${names}`;
  return `Correlations ${side} whitening of ${size} channels; ${most}`;
}

function labelCurves(frame) {
  const { history } = page;
  const changes = frame.changes.filter((change) => noticed.includes(change.kind));
  const marked = changes.map((change) => `${change.kind} at ${moment(frame, change.row)}`).join(", ") || "none";
  const now = (column) => level(column.at(-1));
  const levels = `with nothing adapted ${now(history.unadapted)}, noise floor ${now(history.floor)}`;
  label(at("errors"), `Whitening error over time: now ${now(history.error)}, ${levels}. Changes of context: ${marked}`);
  const gains = history.gains.at(-1) ?? [];
  const range = gains.length > 0 ? `${plural(gains.length, "gain")}, now ${rangeWords(gains)}` : "not known yet";
  label(at("gains"), `Gains over time: ${range}. Changes of context: ${marked}`);
}

/** Says aloud what has changed in kind; numbers change all the time. */
function announceChanges(earlier, frame) {
  const news = [];
  if (earlier.state.kind !== frame.state.kind) news.push(sentence(frame.state.words));
  const key = (change) => `${change.row} ${change.kind}`;
  const seen = new Set(earlier.changes.map(key));
  for (const change of frame.changes.filter((each) => !seen.has(key(each)))) {
    news.push(`${sentence(change.words ?? change.kind)} at ${moment(frame, change.row)}`);
  }
  frame.channels.forEach((channel, i) => {
    const before = earlier.channels[i] ?? channel;
    if (before.state !== channel.state) news.push(`Channel ${channel.name}: ${channel.words}`);
  });
  if (news.length > 0) announce(`${news.slice(0, 4).join(". ")}.`);
}

function showChannels(frame) {
  const { channels } = frame;
  const troubled = channels.filter((channel) => channel.state !== "live");
  const live = `${channels.length - troubled.length} of ${plural(channels.length, "channel")} live`;
  say(at("channel-summary"), troubled.length > 0 ? `${live}. ${channelTrouble(troubled)}.` : `${live}.`);
  const rows = at("channel-rows");
  while (rows.children.length > channels.length) rows.lastChild.remove();
  channels.forEach((channel, i) => {
    if (!rows.children[i]) rows.append(channelRow());
    const row = rows.children[i];
    const [name, state, scale, bad] = row.children;
    row.className = channel.state;
    say(name, channel.name);
    say(state.lastChild, channel.words);
    say(scale, numeral(channel.scale));
    say(bad, percent(channel.bad));
  });
}

function channelRow() {
  const row = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  const state = document.createElement("td");
  const mark = document.createElement("span");
  mark.className = "mark";
  state.append(mark, document.createElement("span"));
  const numbers = ["scale", "bad"].map(() => Object.assign(document.createElement("td"), { className: "number" }));
  row.append(name, state, ...numbers);
  return row;
}

function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share === 0) return "0 %";
  return share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

// Toy.

// What the program takes: the lengths of half-axes, and for each slider its range in powers of ten.
const SHORTEST = 0.25;
const LONGEST = 6;
const SLIDERS = {
  gain_rate: ["gain-rate", -4, -0.5],
  synapse_rate: ["synapse-rate", -6, -1],
  speed: ["speed", 1, 4.3],
};

function receiveToy(state) {
  page.history.extendPath(state.reached);
  toy.azimuth ??= facing(state.synapses);
  // While a handle moves, or until the program has heard of it, the page's own ellipse is the newer one.
  const owed = toy.dragged !== null || wished("context");
  const known = toy.axes !== null && (owed || same(covarianceOf(...axesOf(toy.axes)), state.context));
  if (!known) toy.axes = turnedNear(state.context, toy.axes);
  page.toy = { ...state, axes: toy.axes };
}

const axesOf = ({ angle, lengths }) => [angle, ...lengths];
const same = (one, other) => one.every((value, i) => Math.abs(value - other[i]) <= 1e-6 * (1 + Math.abs(value)));

/** The axes of a covariance, in the order and the direction that are nearest to where the handles are now. */
function turnedNear(covariance, present) {
  const { angle, long, short } = ellipseAxes(covariance);
  if (present === null) return { angle, lengths: [long, short] };
  const turns = [0, 1, 2, 3].map((quarter) => ({
    angle: angle + (quarter * Math.PI) / 2,
    lengths: quarter % 2 === 0 ? [long, short] : [short, long],
  }));
  const places = (axes) => [...handlePlace(axes, 0), ...handlePlace(axes, 1)];
  const far = (axes) => Math.hypot(...places(axes).map((value, i) => value - places(present)[i]));
  return turns.reduce((best, each) => (far(each) < far(best) ? each : best));
}

function handlePlace({ angle, lengths }, index) {
  const turned = angle + (index * Math.PI) / 2;
  return [lengths[index] * Math.cos(turned), lengths[index] * Math.sin(turned)];
}

function showToy(frame, labelled) {
  const state = frame.toy;
  document.title = "Toy – Leukos live";
  say(at("title"), "a toy to play with");
  drawPlane(state);
  drawConeOf(state);
  const { history } = page;
  const shared = { x: history.sample, xLabel: "samples", marks: [], cursor: pointIndex() };
  const best = state.best_error === null ? undefined : history.error.map(() => state.best_error);
  const errors = { ...shared, error: history.error, floor: best, floorName: "with the best gains" };
  layouts.errors = drawErrors(at("toy-errors"), errors, theme());
  layouts.gains = drawGains(at("toy-gains"), { ...shared, gains: history.gains, best: state.best_gains }, theme());
  showKnobs(state);
  readToyPoint(state);
  if (labelled) labelToy(state);
}

const RANGES = [3.3, 4.7, 7];

function drawPlane(state) {
  const context = covarianceOf(...axesOf(toy.axes));
  // In steps, and not under a finger, or the handles would run away.
  const longest = Math.max(...toy.axes.lengths);
  if (toy.dragged === null) toy.range = RANGES.find((range) => 0.88 * range >= longest) ?? RANGES.at(-1);
  layouts.plane = drawEllipses(at("ellipses"), { ...state, context, range: toy.range }, theme());
  [0, 1].forEach((index) => {
    const [x, y] = layouts.plane.toPixel(handlePlace(toy.axes, index));
    Object.assign(at(`handle-${index}`).style, { left: `${x}px`, top: `${y}px` });
  });
}

function drawConeOf(state) {
  const best = state.best_gains && matrixOf(state.synapses, state.best_gains);
  const highest = Math.max(...[state.target, state.reached].map(([a, , c]) => (a + c) / 2));
  // In steps, or the cone would breathe.
  const needed = Math.max(2.5, Math.ceil(highest * 1.25 * 2) / 2);
  if (needed > toy.height || needed < toy.height - 1) toy.height = needed;
  const { height, azimuth, elevation } = toy;
  drawCone(at("cone"), { ...state, best, path: page.history.path, height, azimuth, elevation }, theme());
}

/** M = I + g₁w₁w₁ᵀ + g₂w₂w₂ᵀ, as [a, b, c]. */
function matrixOf(synapses, gains) {
  const add = ([a, b, c], [x, y], i) => [a + gains[i] * x * x, b + gains[i] * x * y, c + gains[i] * y * y];
  return synapses.reduce(add, [1, 0, 1]);
}

function showKnobs(state) {
  say(at("toy-state"), toyWords(state));
  const best = (i) => (state.best_gains ? ` (best ${numeral(state.best_gains[i])})` : "");
  list(at("toy-numbers"), [
    ["error", numeral(state.error)],
    ["with the best gains", numeral(state.best_error)],
    ["g1", numeral(state.gains[0]) + best(0)],
    ["g2", numeral(state.gains[1]) + best(1)],
    ["samples", count(state.samples)],
  ]);
  for (const radio of document.getElementsByName("adapt")) {
    if (!wished("adapt")) radio.checked = radio.value === state.adapt;
  }
  for (const [name, [id]] of Object.entries(SLIDERS)) {
    if (!wished(name)) at(id).value = Math.log10(state[name]);
    const value = wished(name) ? 10 ** Number(at(id).value) : state[name];
    say(at(`${id}-value`), name === "speed" ? count(value) : numeral(value));
    at(id).setAttribute("aria-valuetext", name === "speed" ? `${Math.round(value)}` : value.toPrecision(2));
  }
}

function toyWords(state) {
  if (state.error === null) return "The error is not known.";
  if (state.error < 0.15) return "White: the response ellipse is the circle.";
  if (state.adapt === "nothing") return "Nothing adapts, so the responses stay as they are.";
  if (state.best_error !== null && state.best_error < 0.15 && state.error < 0.5) {
    return "Nearly white. Gains learn from single samples, so they wander, the more the higher their rate.";
  }
  const stuck = state.best_error !== null && state.error < state.best_error + 0.15;
  if (stuck && state.adapt === "gains") {
    return "As white as gains alone can make it: C^½ lies off the plane. Let the synapses adapt, or turn the ellipse.";
  }
  if (stuck) return "The gains are as good as they can be; the synapses turn slowly until the plane meets C^½.";
  return `Not white${state.error > 1 ? ": some direction varies too much" : " yet"}. The gains are on their way.`;
}

/** Whether the reader has just set something that the program may not have heard of yet. */
const wished = (name) => (toy.wishes[name] ?? 0) > performance.now();

function readToyPoint(state) {
  const { history } = page;
  const chosen = pointIndex();
  if (chosen === null) {
    say(at("toy-error-reading"), `Now: ${numeral(state.error)}.`);
    say(at("toy-gain-reading"), state.best_gains ? "Dashed: the best gains for this context and these synapses." : "");
    return;
  }
  const when = `At sample ${count(history.sample[chosen])}`;
  say(at("toy-error-reading"), `${when}: ${numeral(history.error[chosen])}.`);
  say(at("toy-gain-reading"), `${when}: ${eachGain(history.gains[chosen])}.`);
}

function labelToy(state) {
  const [stimuli, responses] = [state.context, state.response].map(ellipseWords);
  label(at("ellipses"), `Stimuli: ${stimuli}. Responses: ${responses}. White would be 1 and 1`);
  const apart = Math.hypot(...state.target.map((value, i) => (value - state.reached[i]) * (i === 1 ? Math.SQRT2 : 1)));
  label(at("cone"), `The cone of positive semidefinite matrices; M is ${numeral(apart)} away from C to the one half`);
  const [error, best] = [state.error, state.best_error].map(numeral);
  label(at("toy-errors"), `Whitening error over time: now ${error}, with the best gains ${best}`);
  label(at("toy-gains"), `Gains over time: now ${state.gains.map(numeral).join(" and ")}`);
  ["First", "Second"].forEach((which, i) => {
    const [x, y] = handlePlace(toy.axes, i);
    const place = `length ${numeral(toy.axes.lengths[i])}, angle ${degrees(Math.atan2(y, x))} degrees`;
    label(at(`handle-${i}`), `${which} axis of the stimuli: ${place}. Arrow keys move its end`);
  });
}

function ellipseWords(covariance) {
  const { angle, long, short } = ellipseAxes(covariance);
  return `half-axes ${numeral(long)} and ${numeral(short)}, the longer one at ${degrees(angle)} degrees`;
}

const degrees = (angle) => Math.round((angle * 180) / Math.PI);

/** Moves the end of an axis; the other axis keeps its length and stays at a right angle. */
function moveHandle(index, [x, y]) {
  const length = clamp(Math.hypot(x, y), SHORTEST, Math.min(LONGEST, 0.95 * toy.range));
  toy.axes = { angle: Math.atan2(y, x) - (index * Math.PI) / 2, lengths: toy.axes.lengths.with(index, length) };
  tell({ context: covarianceOf(...axesOf(toy.axes)) });
  redraw();
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Tells the program of wishes, the latest of each kind, one message at a time. */
async function tell(wishes) {
  Object.assign(toy.outbox, wishes);
  for (const name of Object.keys(wishes)) toy.wishes[name] = performance.now() + 500;
  if (toy.posting) return;
  toy.posting = true;
  while (Object.keys(toy.outbox).length > 0) {
    const message = toy.outbox;
    toy.outbox = {};
    await post("/toy", message);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  toy.posting = false;
}

/** Asks for another context, which the page's own ellipse must not outlast. */
function replaceContext(wish) {
  delete toy.outbox.context;
  toy.wishes = {};
  tell(wish);
}

/** Sends a wish, and says in words if it was not granted; returns whether it was. */
async function post(path, body) {
  let words = null;
  try {
    const response = await request(path, body);
    if (response.ok) return true;
    const said = await response.json().catch(() => ({}));
    words = `The program declined: ${said.error ?? `error ${response.status}`}`;
  } catch {
    words = "The program did not answer, so nothing was changed.";
  }
  show(words, "failed");
  return false;
}

let doneTimer = 0;

function show(words, kind) {
  clearTimeout(doneTimer);
  say(at("done"), words);
  at("done").className = `done ${kind}`;
  at("done").hidden = false;
  doneTimer = setTimeout(() => { at("done").hidden = true; }, 5000);
}

// What the reader does.

const DONE = {
  "new-context": "The program was told of a new context.",
  "adapt-on": "Adapting again.",
  "adapt-off": "The gains stand still.",
  save: "The model will be saved with the next row.",
};

function attendButtons() {
  for (const button of at("controls").querySelectorAll("button")) {
    button.addEventListener("click", async () => {
      const { action } = button.dataset;
      if (await post("/control", { action })) show(DONE[action], "granted");
    });
  }
  at("pause").addEventListener("click", () => {
    view.paused = !view.paused;
    at("pause").setAttribute("aria-pressed", String(view.paused));
    say(at("pause"), view.paused ? "Resume view" : "Pause view");
    announce(view.paused ? "The view is paused; the program goes on." : "The view goes on.");
    if (view.paused) clearTimeout(timer);
    else ask();
  });
  at("theme").addEventListener("click", () => {
    view.theme = themeName() === "dark" ? "light" : "dark";
    applyTheme();
  });
}

function applyTheme() {
  if (view.theme) document.documentElement.dataset.theme = view.theme;
  nameThemeSwitch();
  redraw();
}

/** Also before each drawing: Chromium does not report a change of preference that a script has asked about first. */
function nameThemeSwitch() {
  const other = themeName() === "dark" ? "light" : "dark";
  say(at("theme"), sentence(other));
  label(at("theme"), `Switch to ${other} colours`);
}

function attendTabs() {
  const tabs = [at("tab-stream"), at("tab-channels")];
  const choose = (index) => {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
      at(tab.getAttribute("aria-controls")).hidden = i !== index;
    });
    view.tab = index === 0 ? "stream" : "channels";
    redraw();
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(i));
    tab.addEventListener("keydown", (event) => {
      const goal = { ArrowRight: (i + 1) % 2, ArrowLeft: (i + 1) % 2, Home: 0, End: 1 }[event.key];
      if (goal === undefined) return;
      event.preventDefault();
      choose(goal);
      tabs[goal].focus();
    });
  });
}

function attendMatrices() {
  const size = () => page.lastFrame?.shown?.length ?? 0;
  for (const side of ["before", "after"]) {
    const canvas = at(`matrix-${side}`);
    const look = (event) => {
      view.cell = layouts[`matrix-${side}`]?.cellAt(event.offsetX, event.offsetY) ?? null;
      redraw();
    };
    canvas.addEventListener("pointermove", look);
    canvas.addEventListener("pointerdown", look);
  }
  forget(at("matrices"), () => { view.cell = null; });
  at("matrices").addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") view.cell = null;
    else if (step && size() > 0) {
      const { row, column } = view.cell ?? { row: -step[0], column: -step[1] };
      view.cell = { row: clamp(row + step[0], 0, size() - 1), column: clamp(column + step[1], 0, size() - 1) };
    } else return;
    event.preventDefault();
    redraw();
    readMatrix(page.lastFrame);
    announce(at("matrix-reading").textContent);
  });
}

/** Lets go of what was pointed at when a mouse leaves or the focus does; what a finger chose stays. */
function forget(element, letGo) {
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "mouse") return;
    letGo();
    redraw();
  });
  element.addEventListener("blur", () => {
    letGo();
    redraw();
  });
}

function attendChart(id, layout, readings) {
  const element = at(id);
  const canvas = element.firstElementChild;
  const look = (event) => {
    const index = layouts[layout]?.indexAt(event.offsetX) ?? null;
    view.point = index === null ? null : page.history.id[index];
    redraw();
  };
  canvas.addEventListener("pointermove", look);
  canvas.addEventListener("pointerdown", look);
  forget(element, () => { view.point = null; });
  element.addEventListener("keydown", (event) => {
    const last = page.history.length - 1;
    const here = pointIndex() ?? last;
    const far = event.shiftKey ? 10 : 1;
    const goal = { ArrowLeft: here - far, ArrowRight: here + far, Home: 0, End: last, Escape: null }[event.key];
    if (goal === undefined || last < 0) return;
    event.preventDefault();
    view.point = goal === null ? null : page.history.id[clamp(goal, 0, last)];
    redraw();
    requestAnimationFrame(() => announce(at(readings).textContent));
  });
}

function attendHandles() {
  [0, 1].forEach((index) => {
    const handle = at(`handle-${index}`);
    const place = (event) => {
      const box = at("ellipses").getBoundingClientRect();
      return layouts.plane.toValue([event.clientX - box.left, event.clientY - box.top]);
    };
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      toy.dragged = index;
    });
    handle.addEventListener("pointermove", (event) => {
      if (toy.dragged === index) moveHandle(index, place(event));
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      handle.addEventListener(end, () => { toy.dragged = null; });
    }
    handle.addEventListener("keydown", (event) => {
      const step = arrows(event, event.shiftKey ? 0.02 : 0.1);
      if (!step || !toy.axes) return;
      event.preventDefault();
      const [x, y] = handlePlace(toy.axes, index);
      moveHandle(index, [x + step[0], y - step[1]]);
    });
  });
}

/** The step of an arrow key, to the right and downwards; undefined for other keys. */
function arrows({ key }, size) {
  return { ArrowLeft: [-size, 0], ArrowRight: [size, 0], ArrowUp: [0, -size], ArrowDown: [0, size] }[key];
}

function attendCone() {
  const element = at("cone-view");
  const turn = (right, down) => {
    toy.azimuth += right;
    toy.elevation = clamp(toy.elevation + down, 0, 1.4);
    redraw();
  };
  element.addEventListener("pointerdown", (event) => element.setPointerCapture(event.pointerId));
  element.addEventListener("pointermove", (event) => {
    if (element.hasPointerCapture(event.pointerId)) turn(-event.movementX * 0.008, event.movementY * 0.008);
  });
  element.addEventListener("keydown", (event) => {
    const step = arrows(event, 0.08);
    if (!step) return;
    event.preventDefault();
    turn(...step);
  });
}

function attendKnobs() {
  for (const radio of document.getElementsByName("adapt")) {
    radio.addEventListener("change", () => tell({ adapt: radio.value }));
  }
  for (const [name, [id, low, high]] of Object.entries(SLIDERS)) {
    Object.assign(at(id), { min: low, max: high, step: 0.05 });
    at(id).addEventListener("input", () => {
      tell({ [name]: Number((10 ** Number(at(id).value)).toPrecision(3)) });
      redraw();
    });
  }
  at("new-context").addEventListener("click", () => replaceContext({ new_context: true }));
  at("restart").addEventListener("click", () => {
    page.history.path = [];
    toy.azimuth = null;
    replaceContext({ restart: true });
  });
}

attendButtons();
attendTabs();
attendMatrices();
attendChart("error-chart", "errors", "error-reading");
attendChart("gain-chart", "gains", "gain-reading");
attendChart("toy-error-chart", "errors", "toy-error-reading");
attendChart("toy-gain-chart", "gains", "toy-gain-reading");
attendHandles();
attendCone();
attendKnobs();
applyTheme();
darkWished.addEventListener("change", applyTheme);
const resized = new ResizeObserver(redraw);
for (const canvas of document.querySelectorAll("canvas")) resized.observe(canvas);
addEventListener("hashchange", ask);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) ask();
});
ask();
