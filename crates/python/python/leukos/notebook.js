// Shows the frames of a whitener in a notebook. `leukos.notebook` puts it behind drawing.js, whose names it uses.

const PARTS = `
  <p class="leukos-notice" data-part="notice" role="alert" hidden></p>
  <p class="leukos-unseen" data-part="announcements" aria-live="polite"></p>
  <p class="leukos-state"><span class="leukos-dot" data-part="dot" aria-hidden="true"></span><span data-part="state"></span></p>
  <p class="leukos-alarm" data-part="trouble" hidden></p>
  <dl class="leukos-counts" data-part="counts"></dl>
  <div class="leukos-panels">
    <section class="leukos-correlations" aria-label="Correlations">
      <div class="leukos-pair">
        <figure><figcaption>before: stimuli, correlation</figcaption><canvas data-part="before" role="img"></canvas></figure>
        <figure><figcaption>after: responses, covariance</figcaption><canvas data-part="after" role="img"></canvas></figure>
      </div>
      <canvas class="leukos-bar" data-part="bar" role="img" aria-label="Colours from minus one, blue, over zero to one, orange"></canvas>
      <p class="leukos-reading" data-part="matrix-reading"></p>
    </section>
    <section class="leukos-error" aria-label="Whitening error">
      <figure><figcaption>whitening error: 0 is white</figcaption><canvas data-part="errors" role="img"></canvas></figure>
      <p class="leukos-reading" data-part="error-reading"></p>
    </section>
    <section class="leukos-gains" aria-label="Gains">
      <figure><figcaption>gains, at the end of each call</figcaption><canvas data-part="gains" role="img"></canvas></figure>
    </section>
    <section class="leukos-traces leukos-pair" aria-label="Traces">
      <figure><figcaption>before: stimuli, as given</figcaption><canvas data-part="traces-before" role="img"></canvas></figure>
      <figure><figcaption>after: responses, unit variance</figcaption><canvas data-part="traces-after" role="img"></canvas></figure>
    </section>
  </div>`;

/** The time between two drawings for readers who want little motion, in milliseconds. */
const CALM = 1000;
const SIDES = ["before", "after"];

/** One view of a widget; a notebook may show several. */
class View {
  constructor(model, el) {
    this.model = model;
    this.root = document.createElement("div");
    this.root.className = "leukos-widget";
    this.root.innerHTML = PARTS;
    const parts = [...this.root.querySelectorAll("[data-part]")];
    this.parts = Object.fromEntries(parts.map((each) => [each.dataset.part, each]));
    el.append(this.root);
    this.frame = null;
    this.history = null;
    this.drawnAt = -Infinity;
    this.pending = 0;
    this.timer = 0;
    this.attend();
    this.receive();
  }

  attend() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    const received = () => this.receive();
    const redraw = () => this.redraw();
    this.model.on("change:frame", received);
    dark.addEventListener("change", redraw);
    const resized = new ResizeObserver(redraw);
    for (const canvas of this.root.querySelectorAll("canvas")) resized.observe(canvas);
    // JupyterLab says here whether its theme is a light one.
    const themed = new MutationObserver(redraw);
    themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    this.end = () => {
      this.model.off("change:frame", received);
      dark.removeEventListener("change", redraw);
      resized.disconnect();
      themed.disconnect();
      clearTimeout(this.timer);
      cancelAnimationFrame(this.pending);
      this.root.remove();
    };
    this.theme = () => {
      const light = document.body.dataset.jpThemeLight;
      return (light === undefined ? dark.matches : light !== "true") ? "dark" : "light";
    };
  }

  receive() {
    const earlier = this.frame;
    try {
      this.frame = readFrame(this.model.get("frame"));
    } catch (error) {
      this.parts.notice.hidden = false;
      sayIn(this.parts.notice, `This widget does not understand what it was sent. (${error.message})`);
      return;
    }
    this.parts.notice.hidden = true;
    if (earlier?.run !== this.frame.run) this.history = new History("stream");
    this.history.merge(this.frame.points);
    if (earlier?.run === this.frame.run) this.announce(earlier);
    this.redraw(this.still.matches ? CALM - (performance.now() - this.drawnAt) : 0);
  }

  /** Draws the newest frame with the next picture of the screen, or the first one after some milliseconds. */
  redraw(wait = 0) {
    if (this.frame === null || this.pending !== 0 || this.timer !== 0) return;
    if (wait > 0) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.redraw();
      }, wait);
      return;
    }
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.drawnAt = performance.now();
      this.draw();
    });
  }

  draw() {
    const { frame, parts, history } = this;
    this.root.dataset.theme = this.theme();
    const theme = themes[this.theme()];
    this.writeState();
    // A matrix is small here.
    const names = namesIn(frame, frame.shown).map((name) => name.replace(/^channel (?=\d+$)/, "ch "));
    for (const side of SIDES) drawMatrix(parts[side], { values: frame[side], names, cursor: null }, theme);
    drawColourBar(parts.bar, theme);
    const { row, error, floor, unadapted } = history;
    const marks = frame.changes.map((change) => ({ x: change.row, word: markWord(change) }));
    const shared = { xLabel: "row", marks, cursor: null };
    drawErrors(parts.errors, { ...shared, x: row, error, floor, unadapted }, theme);
    // Gains are known at the ends of calls only; curves go straight from one to the next.
    const ends = [...row.keys()].filter((i) => history.gains[i].length > 0);
    const gains = ends.map((i) => history.gains[i]);
    drawGains(parts.gains, { ...shared, x: ends.map((i) => row[i]), gains }, theme);
    this.drawTraces(theme);
    this.writeReadings();
    this.label(gains.at(-1) ?? []);
  }

  drawTraces(theme) {
    const { traces } = this.frame;
    const names = namesIn(this.frame, traces.channels);
    const shared = { names, firstX: traces.first_row, stepX: 1, xLabel: "row" };
    drawTraces(this.parts["traces-before"], { ...shared, values: traces.before, together: false }, theme);
    drawTraces(this.parts["traces-after"], { ...shared, values: traces.after, together: true }, theme);
  }

  writeState() {
    const { frame, parts } = this;
    parts.dot.className = `leukos-dot ${frame.state.kind}`;
    sayIn(parts.state, asSentence(frame.state.words));
    const troubled = frame.channels.filter((channel) => channel.state !== "live");
    const named = troubled.slice(0, 3).map((channel) => `${channel.name} ${channel.words}`).join("; ");
    parts.trouble.hidden = troubled.length === 0;
    sayIn(parts.trouble, troubled.length > 3 ? `${named}; and ${troubled.length - 3} more.` : `${named}.`);
    const { counts } = frame;
    const entries = [["rows", frame.rows], ["changes of context", counts.changes]];
    for (const name of ["bad", "outliers", "silent"]) entries.push([name, counts[name]]);
    entries.forEach(([name, value], i) => {
      if (!parts.counts.children[i]) parts.counts.append(entryNamed(name));
      sayIn(parts.counts.children[i].lastChild, count(value));
    });
  }

  writeReadings() {
    const { frame, parts, history } = this;
    const pairs = SIDES.map((side) => strongestIn(frame, side));
    const [before, after] = pairs.map((pair) => pair && `${pair.names}, ${pair.value}`);
    sayIn(parts["matrix-reading"], before && after ? `Strongest before: ${before}. After: ${after}.` : "");
    const [error, unadapted, floor] = ["error", "unadapted", "floor"].map((name) => numberIn(history[name].at(-1)));
    const change = frame.changes.at(-1);
    const last = change ? ` Last change at row ${count(change.row)}: ${change.words}.` : "";
    sayIn(parts["error-reading"], `Now: ${error}; nothing adapted ${unadapted}; noise floor ${floor}.${last}`);
  }

  /** Says what the drawings show, for those who do not see them. */
  label(gains) {
    const { frame, parts, history } = this;
    for (const side of SIDES) {
      const pair = strongestIn(frame, side);
      const most = pair && `of ${frame.shown.length} channels; the strongest is ${pair.value}, between ${pair.names}`;
      labelWith(parts[side], `Correlations ${side} whitening ${most ?? "are not known yet"}`);
      const names = namesIn(frame, frame.traces.channels).join(", ");
      const which = side === "before" ? "as given" : "after whitening";
      labelWith(parts[`traces-${side}`], `Traces ${which} of ${names}, from row ${count(frame.traces.first_row)}`);
    }
    const changes = frame.changes.map((change) => `${markWord(change)} at row ${count(change.row)}`);
    const marked = changes.join(", ") || "none";
    const now = (name) => numberIn(history[name].at(-1));
    const levels = `with nothing adapted ${now("unadapted")}, noise floor ${now("floor")}`;
    labelWith(parts.errors, `Whitening error over time: now ${now("error")}, ${levels}. Changes of context: ${marked}`);
    const range = `from ${numeral(Math.min(...gains))} to ${numeral(Math.max(...gains))}`;
    const shown = gains.length > 0 ? `${gains.length} of ${frame.gains_total} gains, now ${range}` : "not known yet";
    labelWith(parts.gains, `Gains over time: ${shown}. Changes of context: ${marked}`);
  }

  /** Says aloud what has changed in kind; numbers change all the time. */
  announce(earlier) {
    const { frame } = this;
    const news = earlier.state.kind === frame.state.kind ? [] : [asSentence(frame.state.words)];
    const keyOf = (change) => `${change.row} ${change.words}`;
    const seen = new Set(earlier.changes.map(keyOf));
    for (const change of frame.changes.filter((each) => !seen.has(keyOf(each)))) {
      news.push(`${asSentence(change.words)} at row ${count(change.row)}`);
    }
    frame.channels.forEach((channel, i) => {
      if (earlier.channels[i]?.state !== channel.state) news.push(`${channel.name}: ${channel.words}`);
    });
    if (news.length > 0) sayIn(this.parts.announcements, `${news.slice(0, 4).join(". ")}.`);
  }
}

/** Writes text only where it differs, so that a selection or a screen reader is not disturbed. */
function sayIn(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function labelWith(element, words) {
  if (element.getAttribute("aria-label") !== words) element.setAttribute("aria-label", words);
}

function entryNamed(name) {
  const entry = document.createElement("div");
  entry.append(document.createElement("dt"), document.createElement("dd"));
  entry.firstChild.textContent = name;
  return entry;
}

const asSentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const namesIn = (frame, chosen) => chosen.map((index) => frame.channels[index].name);
const numberIn = (value) => numeral(value).replace("–", "not known yet");
// Nobody judges here whether a context that was detected is new.
const markWord = ({ kind }) => (kind === "new" ? "detected" : kind);

/** The pair of different channels with the strongest value, in words, or null. */
function strongestIn(frame, side) {
  const size = frame.shown.length;
  let best = null;
  frame[side].forEach((value, i) => {
    const [row, column] = [Math.floor(i / size), i % size];
    if (row < column && value !== null && (best === null || Math.abs(value) > Math.abs(best.value))) {
      best = { value, names: namesIn(frame, [frame.shown[row], frame.shown[column]]).join(" and ") };
    }
  });
  return best && { ...best, value: best.value.toFixed(2).replace("-", "−").replace("−0.00", "0.00") };
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.end();
  },
};
