// Draws what `leukos live` sends. It knows frames, numbers and the canvases that it is given, and nothing of the page
// around them, so that a notebook can use it as well.

// The colours are those of Okabe and Ito, which colour-blind readers can tell apart; in the dark some are lighter.
export const themes = {
  light: {
    ink: "#222222", faint: "#5d6166", grid: "#ececea", frame: "#c9cbc8", panel: "#ffffff", shade: "#e7edf2",
    unknown: "#e4e4e2", adapted: "#d55e00", fixed: "#0072b2", context: "#b37b00", contextFill: "#e69f00",
    response: "#0072b2", white: "#009e73", synapses: "#b0568a", plane: "#0072b2", cone: "#e69f00",
    cycle: ["#d55e00", "#0072b2", "#009e73", "#e69f00", "#b0568a", "#56b4e9", "#555555"],
    below: ["#ffffff", "#8fbfdd", "#00588c"], above: ["#ffffff", "#f0b083", "#b84300"],
  },
  dark: {
    ink: "#e4e6e8", faint: "#a3a9b0", grid: "#2a2f35", frame: "#4a5159", panel: "#1b1f24", shade: "#2a323b",
    unknown: "#353b42", adapted: "#ff8a3d", fixed: "#56b4e9", context: "#e69f00", contextFill: "#e69f00",
    response: "#56b4e9", white: "#2cc299", synapses: "#dd8ab9", plane: "#56b4e9", cone: "#e69f00",
    cycle: ["#ff8a3d", "#56b4e9", "#2cc299", "#f0c040", "#dd8ab9", "#8fa8ff", "#b8b8b8"],
    below: ["#1b1f24", "#26658f", "#86d0ff"], above: ["#1b1f24", "#9a5417", "#ffb765"],
  },
};

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';
const SMALL = `11px ${FONT}`;
const DASHES = [[], [6, 3], [2, 2.5], [8, 2, 2, 2], [1, 3]];

// Frames.

const KINDS = ["waiting", "calibrating", "adapting", "paused", "ended", "failed"];
const VERSION = 1;
// What the server keeps, and so all that a page may hold.
const KEPT = { stream: 600, toy: 400 };
const COLUMNS = { stream: ["row", "error", "floor", "unadapted", "gains"], toy: ["sample", "error", "gains"] };
const PATH_KEPT = 400;

/** Parses a frame and checks it; an Error says what was expected, and what came instead. */
export function readFrame(text) {
  let frame;
  try {
    frame = JSON.parse(text);
  } catch {
    throw new Error(`frame: expected JSON, got ${described(text)}`);
  }
  check(isObject(frame), "frame", "an object", frame);
  check(frame.version === VERSION, "version", `${VERSION}`, frame.version);
  check(frame.mode in COLUMNS, "mode", "stream or toy", frame.mode);
  check(typeof frame.run === "string", "run", "a string", frame.run);
  check(isNumber(frame.sequence), "sequence", "a number", frame.sequence);
  check(typeof frame.title === "string", "title", "a string", frame.title);
  if (frame.mode === "stream") checkStream(frame);
  else checkToy(frame.toy);
  return frame;
}

function checkStream(frame) {
  check(isObject(frame.state) && KINDS.includes(frame.state.kind), "state.kind", KINDS.join(", "), frame.state?.kind);
  check(typeof frame.state.words === "string", "state.words", "a string", frame.state.words);
  check(isNumber(frame.rows), "rows", "a number", frame.rows);
  check(isObject(frame.counts), "counts", "an object", frame.counts);
  check(Array.isArray(frame.channels), "channels", "a list", frame.channels);
  for (const channel of frame.channels) {
    check(isObject(channel) && typeof channel.name === "string", "channels", "names", channel?.name);
    check(typeof channel.words === "string", `channel ${channel.name}`, "its state in words", channel.words);
  }
  checkChosen(frame.shown, frame.channels.length, "shown");
  for (const name of ["before", "after"]) checkNumbers(frame[name], frame.shown.length ** 2, name);
  checkPoints(frame.points, "stream");
  check(Array.isArray(frame.changes), "changes", "a list", frame.changes);
  for (const change of frame.changes) {
    check(isNumber(change?.row) && typeof change.kind === "string", "changes", "rows and kinds", change);
  }
  checkTraces(frame.traces, frame.channels.length);
}

function checkTraces(traces, channels) {
  check(isObject(traces), "traces", "an object", traces);
  checkChosen(traces.channels, channels, "traces.channels");
  const size = traces.channels.length;
  for (const name of ["before", "after"]) {
    const rows = traces[name];
    check(Array.isArray(rows) && rows.length === size, `traces.${name}`, `${size} channels`, rows);
    for (const row of rows) checkNumbers(row, rows[0].length, `traces.${name}`);
  }
}

function checkToy(toy) {
  check(isObject(toy), "toy", "an object", toy);
  for (const name of ["context", "response", "target", "reached"]) checkNumbers(toy[name], 3, `toy.${name}`);
  check(Array.isArray(toy.synapses) && toy.synapses.length === 2, "toy.synapses", "2 columns", toy.synapses);
  for (const column of toy.synapses) checkNumbers(column, 2, "toy.synapses");
  checkNumbers(toy.gains, 2, "toy.gains");
  if (toy.best_gains !== null) checkNumbers(toy.best_gains, 2, "toy.best_gains");
  for (const name of ["stimuli", "responses"]) {
    check(Array.isArray(toy[name]), `toy.${name}`, "a list", toy[name]);
    for (const sample of toy[name]) checkNumbers(sample, 2, `toy.${name}`);
  }
  checkPoints(toy.points, "toy");
}

function checkPoints(points, mode) {
  check(isObject(points), "points", "an object", points);
  check(isNumber(points.first), "points.first", "a number", points.first);
  check(Array.isArray(points.id) && points.id.every(isNumber), "points.id", "numbers", points.id);
  check(points.id.every((id, i) => i === 0 || id > points.id[i - 1]), "points.id", "ascending numbers", points.id);
  const { length } = points.id;
  for (const name of COLUMNS[mode]) {
    const column = points[name];
    check(Array.isArray(column) && column.length === length, `points.${name}`, `${length} values`, column);
    if (name === "gains") for (const gains of column) checkNumbers(gains, gains?.length, "points.gains");
    else checkNumbers(column, length, `points.${name}`);
  }
}

function checkChosen(chosen, channels, place) {
  check(Array.isArray(chosen), place, "a list", chosen);
  for (const index of chosen) {
    check(Number.isInteger(index) && index >= 0 && index < channels, place, `channels below ${channels}`, index);
  }
}

function checkNumbers(values, length, place) {
  check(Array.isArray(values) && values.length === length, place, `${length ?? "some"} values`, values);
  const wrong = values.find((value) => value !== null && !isNumber(value));
  check(wrong === undefined, place, "numbers or null", wrong);
}

function check(fine, place, expected, got) {
  if (!fine) throw new Error(`frame: ${place}: expected ${expected}, got ${described(got)}`);
}

function described(value) {
  if (Array.isArray(value)) return `${value.length} values`;
  if (typeof value === "object" && value !== null) return "an object";
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? `“${value}”` : String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

const isNumber = (value) => typeof value === "number";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The points of all frames so far, and never more of them than the server keeps. */
export class History {
  constructor(mode) {
    this.names = COLUMNS[mode];
    this.limit = KEPT[mode];
    this.path = [];
    this.clear();
  }

  clear() {
    this.id = [];
    for (const name of this.names) this[name] = [];
  }

  get length() {
    return this.id.length;
  }

  get lastId() {
    return this.id.at(-1) ?? 0;
  }

  /** Takes in the points of a frame that are new. */
  merge(points) {
    const known = this.lastId;
    const begin = points.id.findIndex((id) => id > known);
    if (begin >= 0) for (const name of ["id", ...this.names]) this[name] = this[name].concat(points[name].slice(begin));
    this.dropOlderThan(points.first);
  }

  dropOlderThan(first) {
    const kept = this.id.findIndex((id) => id >= first);
    const old = Math.max(kept < 0 ? this.length : kept, this.length - this.limit);
    if (old > 0) for (const name of ["id", ...this.names]) this[name] = this[name].slice(old);
  }

  /** Adds a place where the circuit's matrix has been. */
  extendPath(place) {
    const last = this.path.at(-1);
    if (last && place.every((value, i) => value === last[i])) return;
    this.path = [...this.path.slice(1 - PATH_KEPT), place];
  }
}

// Numbers in words.

/** A number with three digits or so, and a minus sign that is one. */
export function numeral(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 5e-4)) return powered(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3;
  return signed(value.toFixed(digits));
}

/** Digits with a minus sign that is one, and none before zero. */
const signed = (digits) => digits.replace(/^-/, "−").replace(/^−(0(\.0+)?)$/, "$1");

/** A whole number with its thousands apart. */
export function count(value) {
  return String(Math.round(value)).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function powered(value) {
  const [mantissa, exponent] = value.toExponential(1).split("e");
  const raised = (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  const superscript = [...String(Number(exponent))].map(raised).join("");
  const factor = mantissa.replace(/\.0$/, "").replace("-", "−");
  return factor === "1" ? `10${superscript}` : `${factor}·10${superscript}`;
}

// Canvases.

/** Makes a canvas as sharp as its screen, empties it, and gives its context with its size in CSS pixels. */
function prepare(canvas) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = canvas.clientWidth || canvas.width;
  const height = canvas.clientHeight || canvas.height;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = SMALL;
  pen.lineJoin = "round";
  pen.setLineDash([]);
  return { pen, width, height };
}

function write(pen, text, x, y, { colour, align = "left", baseline = "middle" }) {
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.textBaseline = baseline;
  pen.fillText(text, x, y);
}

function writeUnknown(pen, x, y, theme) {
  write(pen, "not known yet", x, y, { colour: theme.faint, align: "center" });
}

function line(pen, x0, y0, x1, y1, colour, width = 1) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

/** Shortens a text until it fits. */
function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let length = text.length - 1;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

const widest = (pen, texts) => Math.max(0, ...texts.map((text) => pen.measureText(text).width));
/** The middle of a pixel, where a line of one pixel is sharp. */
const sharp = (value) => Math.round(value) + 0.5;
const known = (value) => value !== null && value !== undefined;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Matrices.

const SHADES = 64;
const shadesOf = new WeakMap();

/** The colour of a number from −1 to 1; what lies outside has the colour of the end. */
export function divergingColour(value, theme) {
  if (!known(value)) return theme.unknown;
  if (!shadesOf.has(theme)) {
    const side = (stops) => Array.from({ length: SHADES + 1 }, (_, i) => blend(stops, i / SHADES));
    shadesOf.set(theme, { below: side(theme.below), above: side(theme.above) });
  }
  const shades = shadesOf.get(theme);
  return (value < 0 ? shades.below : shades.above)[Math.round(Math.min(Math.abs(value), 1) * SHADES)];
}

function blend([near, middle, far], share) {
  const [from, to, part] = share < 0.5 ? [near, middle, 2 * share] : [middle, far, 2 * share - 1];
  const channel = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(channel(from, i) + part * (channel(to, i) - channel(from, i))));
  return `rgb(${mixed.join(" ")})`;
}

/**
 * Draws a square matrix; data: {values, names, cursor: {row, column} or null}.
 * Returns `cellAt(x, y)`, which gives the cell under a pixel or null.
 */
export function drawMatrix(canvas, { values, names, cursor }, theme) {
  const { pen, width, height } = prepare(canvas);
  const size = names.length;
  const area = matrixArea(pen, names, width, height);
  const cellAt = (x, y) => {
    const [column, row] = [x - area.left, y - area.top].map((offset) => Math.floor((offset / area.side) * size));
    return row >= 0 && column >= 0 && row < size && column < size ? { row, column } : null;
  };
  if (size === 0) return { cellAt: () => null };
  // Edges on whole pixels, or seams show between the cells.
  const edge = (i) => Math.round((i * area.side) / size);
  const boxOf = (row, column) => [
    area.left + edge(column), area.top + edge(row), edge(column + 1) - edge(column), edge(row + 1) - edge(row),
  ];
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      pen.fillStyle = divergingColour(values[row * size + column], theme);
      pen.fillRect(...boxOf(row, column));
    }
  }
  pen.strokeStyle = theme.frame;
  pen.lineWidth = 1;
  pen.strokeRect(area.left - 0.5, area.top - 0.5, area.side + 1, area.side + 1);
  writeNames(pen, names, area, theme);
  if (!values.some(known)) writeUnknown(pen, area.left + area.side / 2, area.top + area.side / 2, theme);
  if (cursor) outline(pen, boxOf(cursor.row, cursor.column), theme);
  return { cellAt };
}

function matrixArea(pen, names, width, height) {
  const margin = Math.ceil(Math.min(widest(pen, names), 0.2 * width, 60)) + 5;
  // Half a line above, for the name of the first row.
  const top = 6;
  const side = Math.floor(Math.min(width - margin - 1, height - margin - top));
  return { left: margin, top, side, margin };
}

function writeNames(pen, names, area, theme) {
  const cell = area.side / names.length;
  const every = Math.max(1, Math.ceil(13 / cell));
  const room = area.margin - 5;
  for (let i = 0; i < names.length; i += every) {
    const name = fitted(pen, names[i], room);
    const middle = (i + 0.5) * cell;
    write(pen, name, area.left - 4, area.top + middle, { colour: theme.faint, align: "right" });
    const below = area.top + area.side + 5;
    if (widest(pen, names) < cell * every - 4) {
      write(pen, name, area.left + middle, below, { colour: theme.faint, align: "center", baseline: "top" });
    } else {
      pen.save();
      pen.translate(area.left + middle, below - 1);
      pen.rotate(-Math.PI / 2);
      write(pen, name, 0, 0, { colour: theme.faint, align: "right" });
      pen.restore();
    }
  }
}

/** A dark line in a light one, to be seen on any colour. */
function outline(pen, [left, top, wide, tall], theme) {
  for (const [width, colour] of [[3.5, theme.panel], [1.5, theme.ink]]) {
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.strokeRect(left - 1, top - 1, wide + 2, tall + 2);
  }
}

/** Draws the key to the colours of matrices. */
export function drawColourBar(canvas, theme) {
  const { pen, width } = prepare(canvas);
  const [left, top, tall] = [30, 1, 12];
  const wide = Math.floor(width - 2 * left);
  for (let x = 0; x < wide; x += 1) {
    pen.fillStyle = divergingColour((2 * x) / (wide - 1) - 1, theme);
    pen.fillRect(left + x, top, 1, tall);
  }
  pen.strokeStyle = theme.frame;
  pen.lineWidth = 1;
  pen.strokeRect(left - 0.5, top - 0.5, wide + 1, tall + 1);
  for (const [value, word] of [[-1, "−1 or less"], [-0.5, "−0.5"], [0, "0"], [0.5, "0.5"], [1, "1 or more"]]) {
    const x = left + ((value + 1) / 2) * wide;
    line(pen, sharp(x - 0.5), top + tall, sharp(x - 0.5), top + tall + 4, theme.faint);
    write(pen, word, x, top + tall + 6, { colour: theme.faint, align: "center", baseline: "top" });
  }
}

// Curves over time.

/**
 * Draws curves; data: {x, xLabel, log, lines, marks, cursor}. A line is {name, values, colour, width, dash, label}, and
 * its name goes to the legend, its label to its end; a mark is {x, word}.
 * Returns `indexAt(x)`, the point nearest to a pixel or null, and the marks that were drawn.
 */
export function drawLines(canvas, data, theme) {
  const { pen, width, height } = prepare(canvas);
  const legend = legendRows(pen, data.lines.filter((each) => each.name), width);
  const limits = data.log ? logLimits(data.lines) : linearLimits(data.lines);
  const ticks = data.log ? logTicks(limits) : linearTicks(...limits, 5);
  const labels = ticks.map(({ value, step }) => (data.log ? plain(value) : stepped(value, step)));
  // At least so much on both sides, so that charts one above the other have one time axis.
  const left = Math.max(36, Math.ceil(widest(pen, labels)) + 10);
  const right = Math.max(28, Math.ceil(widest(pen, data.lines.map((each) => each.label ?? ""))) + 8);
  const area = { left, right: width - right, top: legend.length * 16 + 18, bottom: height - 34 };
  const xLimits = data.x.length > 0 ? [data.x[0], Math.max(data.x.at(-1), data.x[0] + 1e-9)] : [0, 1];
  const xOf = (value) => area.left + ((value - xLimits[0]) / (xLimits[1] - xLimits[0])) * (area.right - area.left);
  const transform = data.log ? Math.log : (value) => value;
  const [low, high] = limits.map(transform);
  const shareOf = (value) => (clamp(transform(value), low, high) - low) / (high - low);
  const yOf = (value) => area.bottom - shareOf(value) * (area.bottom - area.top);

  writeLegend(pen, legend, theme);
  drawAxes(pen, area, { ticks, labels, yOf, xLimits, xOf, xLabel: data.xLabel }, theme);
  const below = { colour: theme.faint, baseline: "bottom" };
  if (data.log) write(pen, "logarithmic scale", area.left, area.bottom + 32, below);
  const marks = data.marks.filter((mark) => mark.x >= xLimits[0] && mark.x <= xLimits[1] && data.x.length > 0);
  drawMarks(pen, marks, area, xOf, theme);
  for (const each of data.lines) trace(pen, data.x, each, xOf, yOf);
  labelEnds(pen, data.lines, area, yOf);
  if (data.x.length === 0 || !data.lines.some((each) => each.values.some(known))) {
    writeUnknown(pen, (area.left + area.right) / 2, (area.top + area.bottom) / 2, theme);
  }
  if (known(data.cursor) && data.cursor < data.x.length) drawCursor(pen, data, area, { xOf, yOf }, theme);
  return { marks, indexAt: (pixel) => nearest(data.x, xOf, pixel) };
}

/** The whitening error; data: {x, xLabel, error, floor, floorName, unadapted, marks, cursor}, the curves or some. */
export function drawErrors(canvas, data, theme) {
  const lines = [
    { name: "nothing adapted", values: data.unadapted, colour: theme.fixed, width: 1.5 },
    { name: data.unadapted ? "gains adapt" : "error", values: data.error, colour: theme.adapted, width: 2 },
    { name: data.floorName ?? "noise floor", values: data.floor, colour: theme.ink, width: 1.3, dash: [5, 4] },
  ];
  return drawLines(canvas, { ...data, log: true, lines: lines.filter((each) => each.values) }, theme);
}

/** Gains; data: {x, xLabel, gains: a list for each point, best: a list or null, marks, cursor}. */
export function drawGains(canvas, data, theme) {
  const size = Math.max(0, ...data.gains.map((gains) => gains.length));
  const lines = Array.from({ length: size }, (_, i) => ({
    values: data.gains.map((gains) => gains[i]),
    colour: gainColour(i, theme),
    width: size > 12 ? 1 : 1.6,
    dash: DASHES[Math.floor(i / theme.cycle.length) % DASHES.length],
    label: size <= 12 ? `g${i + 1}` : undefined,
  }));
  const best = (data.best ?? []).map((value, i) => ({
    values: data.gains.map(() => value),
    colour: gainColour(i, theme),
    width: 1,
    dash: [3, 4],
  }));
  return drawLines(canvas, { ...data, log: false, lines: [...best, ...lines] }, theme);
}

const gainColour = (index, theme) => theme.cycle[index % theme.cycle.length];

function legendRows(pen, entries, width) {
  const rows = [];
  let x = Infinity;
  for (const entry of entries) {
    const wide = 26 + pen.measureText(entry.name).width;
    if (x + wide > width) {
      rows.push([]);
      x = 4;
    }
    rows.at(-1).push({ ...entry, x });
    x += wide + 14;
  }
  return rows;
}

function writeLegend(pen, rows, theme) {
  rows.forEach((row, i) => {
    for (const { x, name, colour, width, dash } of row) {
      pen.setLineDash(dash ?? []);
      line(pen, x, i * 16 + 8, x + 20, i * 16 + 8, colour, width + 0.5);
      pen.setLineDash([]);
      write(pen, name, x + 25, i * 16 + 8, { colour: theme.ink });
    }
  });
}

function drawAxes(pen, area, { ticks, labels, yOf, xLimits, xOf, xLabel }, theme) {
  ticks.forEach(({ value }, i) => {
    const y = sharp(yOf(value));
    line(pen, area.left, y, area.right, y, theme.grid);
    write(pen, labels[i], area.left - 6, y, { colour: theme.faint, align: "right" });
  });
  const wanted = clamp(Math.floor((area.right - area.left) / 70), 2, 10);
  for (const { value, step } of linearTicks(...xLimits, wanted)) {
    const x = sharp(xOf(value));
    line(pen, x, area.bottom, x, area.bottom + 4, theme.frame);
    const words = step >= 1 ? count(value) : stepped(value, step);
    write(pen, words, x, area.bottom + 6, { colour: theme.faint, align: "center", baseline: "top" });
  }
  line(pen, area.left, sharp(area.bottom), area.right, sharp(area.bottom), theme.frame);
  write(pen, xLabel, area.right, area.bottom + 32, { colour: theme.faint, align: "right", baseline: "bottom" });
}

/** Lines where something changed, with a word above the curves wherever it does not run into another. */
function drawMarks(pen, marks, area, xOf, theme) {
  let free = area.left;
  marks.forEach((mark, i) => {
    const x = sharp(xOf(mark.x));
    line(pen, x, area.top - 12, x, area.bottom, theme.faint);
    const wide = pen.measureText(mark.word).width;
    const next = i + 1 < marks.length ? xOf(marks[i + 1].x) : area.right + 8;
    if (x + 4 + wide <= next) {
      write(pen, mark.word, x + 4, area.top - 8, { colour: theme.ink });
      free = x + 8 + wide;
    } else if (x - 4 - wide >= free) {
      write(pen, mark.word, x - 4, area.top - 8, { colour: theme.ink, align: "right" });
      free = x;
    }
  });
}

function trace(pen, x, { values, colour, width, dash }, xOf, yOf) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash ?? []);
  pen.beginPath();
  let drawing = false;
  values.forEach((value, i) => {
    if (known(value)) {
      if (drawing) pen.lineTo(xOf(x[i]), yOf(value));
      else pen.moveTo(xOf(x[i]), yOf(value));
    }
    drawing = known(value);
  });
  pen.stroke();
  pen.setLineDash([]);
}

/** Names at the ends of curves, pushed apart where they would overlap, and left out where there is no room. */
function labelEnds(pen, lines, area, yOf) {
  const labelled = lines.filter((each) => each.label && known(each.values.at(-1)));
  const ends = labelled.map((each) => ({ ...each, y: yOf(each.values.at(-1)) }));
  ends.sort((a, b) => a.y - b.y);
  const apart = 12;
  if (ends.length * apart > area.bottom - area.top + apart) return;
  ends.forEach((end, i) => {
    if (i > 0) end.y = Math.max(end.y, ends[i - 1].y + apart);
  });
  for (let i = ends.length - 1; i >= 0; i -= 1) {
    ends[i].y = Math.min(ends[i].y, i === ends.length - 1 ? area.bottom : ends[i + 1].y - apart);
  }
  for (const end of ends) write(pen, end.label, area.right + 4, end.y, { colour: end.colour });
}

function drawCursor(pen, { x, lines, cursor }, area, { xOf, yOf }, theme) {
  const at = sharp(xOf(x[cursor]));
  pen.setLineDash([2, 2]);
  line(pen, at, area.top, at, area.bottom, theme.ink);
  pen.setLineDash([]);
  for (const { values, colour } of lines) {
    if (!known(values[cursor])) continue;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(at, yOf(values[cursor]), 3, 0, 2 * Math.PI);
    pen.fill();
  }
}

function nearest(x, xOf, pixel) {
  let best = null;
  for (let i = 0; i < x.length; i += 1) {
    if (best === null || Math.abs(xOf(x[i]) - pixel) < Math.abs(xOf(x[best]) - pixel)) best = i;
  }
  return best;
}

// Scales.

const numbersOf = (lines) => lines.flatMap((each) => each.values.filter(known));

/** Limits at 1, 2 and 5 times powers of ten, so that they move rarely. */
function logLimits(lines) {
  const values = numbersOf(lines).filter((value) => value > 0);
  const [low, high] = values.length > 0 ? [Math.max(Math.min(...values), 1e-4), Math.max(...values, 1e-4)] : [0.1, 10];
  const around = (value) => [1, 2, 5, 10].map((factor) => factor * 10 ** Math.floor(Math.log10(value)));
  const bottom = around(low).findLast((each) => each <= low * 1.0001);
  const top = around(high).find((each) => each >= high / 1.0001);
  return top / bottom < 4 ? [bottom / 2, top * 2] : [bottom, top];
}

function logTicks([low, high]) {
  const factors = high / low > 1500 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value });
    }
  }
  return ticks;
}

function linearLimits(lines) {
  const values = numbersOf(lines);
  if (values.length === 0) return [0, 1];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const grain = Math.max(high - low, 0.1) / 16;
  const step = 2 ** Math.ceil(Math.log2(grain));
  // In steps, so that limits move rarely.
  return [(Math.floor(low / step) - 0.5) * step, (Math.ceil(high / step) + 0.5) * step];
}

function linearTicks(low, high, wanted) {
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999);
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => ({ value: (first + i) * step, step }));
}

/** A number with as many digits as its neighbours at this step need. */
function stepped(value, step) {
  const digits = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 8);
  return signed(value.toFixed(digits));
}

const plain = (value) => (value >= 1e4 || value < 1e-3 ? powered(value) : String(Number(value.toPrecision(1))));

// Traces.

/**
 * Draws traces one above the other; data: {names, values: a list for each channel, firstX, stepX, xLabel, together}.
 * With `together` all have one scale and a band of one standard deviation, otherwise each has its own range beside it.
 */
export function drawTraces(canvas, { names, values, firstX, stepX, xLabel, together }, theme) {
  const { pen, width, height } = prepare(canvas);
  const length = values[0]?.length ?? 0;
  const ranges = values.map((row) => rangeOf(row, together ? commonReach(values) : null));
  const sides = ranges.map((range) => range?.map(together ? count : numeral) ?? ["", ""]);
  const area = {
    left: Math.ceil(Math.min(widest(pen, names), 70)) + 8,
    right: width - Math.ceil(widest(pen, sides.flat())) - 8,
    top: 2,
    bottom: height - 34,
  };
  const xLimits = [firstX, firstX + stepX * Math.max(length - 1, 1)];
  const xOf = (value) => area.left + ((value - xLimits[0]) / (xLimits[1] - xLimits[0])) * (area.right - area.left);
  drawAxes(pen, area, { ticks: [], labels: [], xLimits, xOf, xLabel }, theme);
  const tall = (area.bottom - area.top) / Math.max(names.length, 1);
  const x = Array.from({ length }, (_, i) => firstX + i * stepX);
  names.forEach((name, i) => {
    const [top, bottom] = [area.top + i * tall, area.top + (i + 1) * tall];
    const middle = (top + bottom) / 2;
    write(pen, fitted(pen, name, area.left - 8), area.left - 6, middle, { colour: theme.ink, align: "right" });
    if (i > 0) line(pen, area.left, sharp(top), area.right, sharp(top), theme.grid);
    if (ranges[i] === null) {
      writeUnknown(pen, (area.left + area.right) / 2, middle, theme);
      return;
    }
    const [low, high] = ranges[i];
    const yOf = (value) => bottom - 3 - ((clamp(value, low, high) - low) / (high - low)) * (tall - 6);
    if (together) band(pen, area, yOf, theme);
    writeRange(pen, sides[i], { x: area.right + 5, top, bottom }, theme);
    trace(pen, x, { values: values[i], colour: together ? theme.response : theme.context, width: 1.1 }, xOf, yOf);
  });
}

function band(pen, area, yOf, theme) {
  pen.fillStyle = theme.shade;
  pen.fillRect(area.left, yOf(1), area.right - area.left, yOf(-1) - yOf(1));
}

function writeRange(pen, [low, high], { x, top, bottom }, theme) {
  if (bottom - top < 25) return;
  write(pen, high, x, top + 8, { colour: theme.faint });
  write(pen, low, x, bottom - 8, { colour: theme.faint });
}

/** How far a common scale reaches: whole standard deviations, at least three and at most ten. */
function commonReach(values) {
  const largest = Math.max(0, ...values.flat().filter(known).map(Math.abs));
  return clamp(Math.ceil(largest), 3, 10);
}

function rangeOf(row, reach) {
  const present = row.filter(known);
  if (present.length === 0) return null;
  if (reach !== null) return [-reach, reach];
  const [low, high] = [Math.min(...present), Math.max(...present)];
  const least = Math.max(Math.abs(low), 1) * 1e-6;
  return high - low > least ? [low, high] : [low - 0.5, high + 0.5];
}

// Two dimensions.

/** The axes of the ellipse of a covariance [a, b, c]: the angle of the longer one, and both lengths. */
export function ellipseAxes([a, b, c]) {
  const middle = (a + c) / 2;
  const spread = Math.hypot((a - c) / 2, b);
  const [long, short] = [middle + spread, middle - spread].map((variance) => Math.sqrt(Math.max(variance, 0)));
  return { angle: 0.5 * Math.atan2(2 * b, a - c), long, short };
}

/** The covariance whose ellipse has the axis `first` at an angle, and `second` across. */
export function covarianceOf(angle, first, second) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const [one, two] = [first ** 2, second ** 2];
  return [one * cos ** 2 + two * sin ** 2, (one - two) * cos * sin, one * sin ** 2 + two * cos ** 2];
}

/**
 * Draws the ellipses of stimuli and responses; data: {context, response, stimuli, responses, synapses, range}.
 * Returns `toPixel([x, y])` and `toValue([x, y])` between standard deviations and CSS pixels.
 */
export function drawEllipses(canvas, data, theme) {
  const { pen, width, height } = prepare(canvas);
  const legend = legendRows(pen, [
    { name: "stimuli", colour: theme.context, width: 2 },
    { name: "responses", colour: theme.response, width: 2.5 },
    { name: "white", colour: theme.white, width: 2, dash: [5, 4] },
    { name: "synapses", colour: theme.synapses, width: 1.5 },
  ], width);
  const area = { left: 18, right: width, top: legend.length * 16 + 6, bottom: height - 16 };
  const scale = Math.min(area.right - area.left, area.bottom - area.top) / 2 / data.range;
  const [x0, y0] = [(area.left + area.right) / 2, (area.top + area.bottom) / 2];
  const toPixel = ([x, y]) => [x0 + x * scale, y0 - y * scale];
  const toValue = ([x, y]) => [(x - x0) / scale, (y0 - y) / scale];

  writeLegend(pen, legend, theme);
  drawPlaneAxes(pen, area, toPixel, data.range, theme);
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  pen.clip();
  scatter(pen, data.stimuli, toPixel, theme.contextFill);
  scatter(pen, data.responses, toPixel, theme.response);
  drawDirections(pen, data.synapses, toPixel, data.range, theme);
  const place = { x0, y0, scale };
  ellipse(pen, data.context, place, { stroke: theme.context, fill: theme.contextFill, width: 2 });
  ellipse(pen, data.response, place, { stroke: theme.response, fill: theme.response, width: 2.5 });
  ellipse(pen, [1, 0, 1], place, { stroke: theme.white, width: 2, dash: [5, 4] });
  pen.restore();
  return { toPixel, toValue };
}

function drawPlaneAxes(pen, area, toPixel, range, theme) {
  const apart = range > 8 ? 5 : 1;
  for (let value = -Math.floor(range / apart) * apart; value <= range; value += apart) {
    const colour = value === 0 ? theme.frame : theme.grid;
    const [x, y] = toPixel([value, value]).map(sharp);
    line(pen, x, area.top, x, area.bottom, colour);
    line(pen, area.left, y, area.right, y, colour);
    write(pen, count(value), x, area.bottom + 9, { colour: theme.faint, align: "center" });
    write(pen, count(value), area.left - 5, y, { colour: theme.faint, align: "right" });
  }
  write(pen, "channel 1", area.right - 3, area.bottom - 7, { colour: theme.faint, align: "right" });
  write(pen, "channel 2", area.left + 4, area.top + 8, { colour: theme.faint });
}

function scatter(pen, samples, toPixel, colour) {
  pen.fillStyle = colour;
  pen.globalAlpha = 0.45;
  for (const sample of samples) {
    pen.beginPath();
    pen.arc(...toPixel(sample), 1.8, 0, 2 * Math.PI);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

function drawDirections(pen, synapses, toPixel, range, theme) {
  synapses.forEach(([x, y], i) => {
    const reach = 0.9 * range;
    line(pen, ...toPixel([-reach * x, -reach * y]), ...toPixel([reach * x, reach * y]), theme.synapses, 1.2);
    // The end on the right, or the upper one, so that a name does not jump with a sign.
    const sign = x > 1e-9 || (Math.abs(x) <= 1e-9 && y > 0) ? 1 : -1;
    const [end, top] = toPixel([sign * reach * 1.08 * x, sign * reach * 1.08 * y]);
    write(pen, `w${i + 1}`, end, top, { colour: theme.synapses, align: "center" });
  });
}

function ellipse(pen, covariance, { x0, y0, scale }, { stroke, fill, width, dash = [] }) {
  if (!covariance.every(known)) return;
  const { angle, long, short } = ellipseAxes(covariance);
  pen.beginPath();
  pen.ellipse(x0, y0, long * scale, short * scale, -angle, 0, 2 * Math.PI);
  if (fill) {
    pen.globalAlpha = 0.13;
    pen.fillStyle = fill;
    pen.fill();
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = stroke;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.stroke();
  pen.setLineDash([]);
}

// The cone of positive semidefinite matrices [[a, b], [b, c]], as (x, y, z) = ((a − c)/2, b, (a + c)/2): there it is
// round, z² ≥ x² + y².

const inSpace = ([a, b, c]) => [(a - c) / 2, b, (a + c) / 2];
/** The direction in which a gain moves M: the outer product of an interneuron's weights with themselves. */
const ofGain = ([x, y]) => inSpace([x * x, x * y, y * y]);
const IDENTITY = inSpace([1, 0, 1]);
const FACETS = 72;
const ANGLES = Array.from({ length: FACETS }, (_, i) => (2 * Math.PI * i) / FACETS);

/** The azimuth from which the plane of the gains is seen well, a little from the side. */
export function facing(synapses) {
  const [[x1, y1, z1], [x2, y2, z2]] = synapses.map(ofGain);
  const [x, y] = [y1 * z2 - z1 * y2, z1 * x2 - x1 * z2];
  return Math.atan2(-x, y) + 0.4;
}

/**
 * Draws the cone; data: {synapses, target, reached, best: a matrix or null, path, height, azimuth, elevation}.
 * Matrices are [a, b, c]; angles are in radians.
 */
export function drawCone(canvas, data, theme) {
  const { pen, width, height } = prepare(canvas);
  const legendTall = writeConeLegend(pen, width, Boolean(data.best), theme);
  const view = viewOf(data, width, height, legendTall);
  drawShell(pen, data.height, view, theme);
  const plane = reachable(data.synapses, data.height);
  polygon(pen, plane.map(view.flat), { stroke: theme.plane, fill: theme.plane, opacity: 0.28 });
  for (const weights of data.synapses) {
    const ends = clippedLine(IDENTITY, ofGain(weights), data.height);
    if (ends) line(pen, ...view.flat(ends[0]), ...view.flat(ends[1]), theme.plane, 1);
  }
  drawPath(pen, data.path.map((place) => view.flat(inSpace(place))), theme);
  const [target, reached] = [data.target, data.reached].map((matrix) => view.flat(inSpace(matrix)));
  pen.setLineDash([2, 3]);
  line(pen, ...reached, ...target, theme.ink, 1.2);
  pen.setLineDash([]);
  if (data.best) dot(pen, view.flat(inSpace(data.best)), 4, { fill: theme.panel, stroke: theme.plane });
  dot(pen, target, 7, { fill: theme.white, stroke: theme.panel });
  dot(pen, reached, 5.5, { fill: theme.adapted, stroke: theme.panel });
}

function viewOf({ height: tall, azimuth, elevation }, width, height, legendTall) {
  const [cosA, sinA, cosE, sinE] = [Math.cos(azimuth), Math.sin(azimuth), Math.cos(elevation), Math.sin(elevation)];
  const [highest, lowest] = [tall * (cosE + sinE), Math.min(0, tall * (cosE - sinE))];
  const top = legendTall + 8;
  const scale = Math.min((width - 16) / (2 * tall), (height - top - 14) / (highest - lowest));
  const y0 = top + (height - top) / 2 + ((highest + lowest) / 2) * scale;
  const depth = ([x, y]) => y * cosA - x * sinA;
  const across = ([x, y]) => x * cosA + y * sinA;
  const up = (place) => place[2] * cosE + depth(place) * sinE;
  const flat = (place) => [width / 2 + across(place) * scale, y0 - up(place) * scale];
  return { flat, depth };
}

function drawShell(pen, tall, { flat, depth }, theme) {
  const rim = (level) => ANGLES.map((angle) => [level * Math.cos(angle), level * Math.sin(angle), level]);
  const apex = [0, 0, 0];
  polygon(pen, hull([...rim(tall), apex].map(flat)), { fill: theme.cone, opacity: 0.09 });
  for (const share of [0.25, 0.5, 0.75, 1]) {
    const ring = rim(share * tall);
    ring.forEach((place, i) => {
      const next = ring[(i + 1) % FACETS];
      wire(pen, flat(place), flat(next), share === 1 || depth(place) < 0 ? 0.8 : 0.35, theme);
    });
  }
  const edges = rim(tall);
  for (let i = 0; i < FACETS; i += FACETS / 18) {
    wire(pen, flat(apex), flat(edges[i]), depth(edges[i]) < 0 ? 0.8 : 0.35, theme);
  }
}

function wire(pen, from, to, opacity, theme) {
  pen.globalAlpha = opacity;
  line(pen, ...from, ...to, theme.frame);
  pen.globalAlpha = 1;
}

/** The part of the plane {I + g₁w₁w₁ᵀ + g₂w₂w₂ᵀ} inside the cone: a large square, cut by tangent planes of the cone. */
function reachable(synapses, tall) {
  const [one, two] = synapses.map(ofGain);
  const first = unit(one);
  const across = minus(two, scaled(first, dot3(two, first)));
  // Synapses that are parallel reach a line only.
  if (Math.hypot(...across) < 1e-6) return [];
  const second = unit(across);
  const far = 4 * tall;
  const corner = ([s, t]) => plus(IDENTITY, plus(scaled(first, s * far), scaled(second, t * far)));
  let corners = [[1, 1], [1, -1], [-1, -1], [-1, 1]].map(corner);
  for (const inside of conePlanes(tall)) corners = cut(corners, inside);
  return corners;
}

/** Functions that are positive on one side of a plane; where all are, one is in the cone and below its rim. */
function conePlanes(tall) {
  const tangents = ANGLES.map((angle) => ([x, y, z]) => z - x * Math.cos(angle) - y * Math.sin(angle));
  return [([, , z]) => tall - z, ...tangents];
}

function cut(corners, inside) {
  return corners.flatMap((corner, i) => {
    const next = corners[(i + 1) % corners.length];
    const [here, there] = [inside(corner), inside(next)];
    const kept = here >= 0 ? [corner] : [];
    if (here >= 0 !== there >= 0) kept.push(plus(corner, scaled(minus(next, corner), here / (here - there))));
    return kept;
  });
}

function clippedLine(through, direction, tall) {
  let [low, high] = [-1e3, 1e3];
  for (const inside of conePlanes(tall)) {
    const here = inside(through);
    const slope = inside(plus(through, direction)) - here;
    // A plane's function may have a constant, so the slope is a difference of two values.
    if (slope > 1e-12) low = Math.max(low, -here / slope);
    else if (slope < -1e-12) high = Math.min(high, -here / slope);
    else if (here < 0) return null;
  }
  return low < high ? [low, high].map((share) => plus(through, scaled(direction, share))) : null;
}

function drawPath(pen, places, theme) {
  if (places.length < 2) return;
  pen.strokeStyle = theme.adapted;
  pen.lineWidth = 1.6;
  pen.beginPath();
  places.forEach((place, i) => (i === 0 ? pen.moveTo(...place) : pen.lineTo(...place)));
  pen.stroke();
}

function polygon(pen, corners, { stroke, fill, opacity }) {
  if (corners.length < 3) return;
  pen.beginPath();
  corners.forEach((corner, i) => (i === 0 ? pen.moveTo(...corner) : pen.lineTo(...corner)));
  pen.closePath();
  pen.globalAlpha = opacity;
  pen.fillStyle = fill;
  pen.fill();
  pen.globalAlpha = 1;
  if (!stroke) return;
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.3;
  pen.stroke();
}

function dot(pen, [x, y], radius, { fill, stroke }) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  pen.strokeStyle = stroke;
  pen.lineWidth = 1.5;
  pen.stroke();
}

function writeConeLegend(pen, width, hasBest, theme) {
  const entries = [
    { name: "M, the circuit", fill: theme.adapted, stroke: theme.panel, radius: 5 },
    { name: "C^½, white", fill: theme.white, stroke: theme.panel, radius: 6 },
    { name: "best gains", fill: theme.panel, stroke: theme.plane, radius: 4 },
  ].filter((entry) => hasBest || entry.name !== "best gains");
  const rows = legendRows(pen, entries, width);
  rows.forEach((row, i) => {
    for (const entry of row) {
      dot(pen, [entry.x + 14, i * 16 + 8], entry.radius, entry);
      write(pen, entry.name, entry.x + 25, i * 16 + 8, { colour: theme.ink });
    }
  });
  return rows.length * 16;
}

/** The convex hull of points in the plane, by Andrew's monotone chain. */
function hull(points) {
  const sorted = points.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const chain = (ordered) => {
    const kept = [];
    for (const point of ordered) {
      while (kept.length >= 2 && turn(kept.at(-2), kept.at(-1), point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.toReversed())];
}

const plus = (a, b) => a.map((value, i) => value + b[i]);
const minus = (a, b) => a.map((value, i) => value - b[i]);
const scaled = (a, factor) => a.map((value) => value * factor);
const dot3 = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const unit = (a) => scaled(a, 1 / Math.hypot(...a));
