"use strict";
// Draws what a slider of the page picks, or a dot that is pointed at. The page is complete without it, nothing moves by
// itself, and an address like report.html#k=5 sets a slider.
(() => {
  const all = JSON.parse(document.getElementById("explore-data").textContent);
  const make = (name, attributes, parent, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };
  // Words in which what follows an underscore stands low.
  const write = (words, element, low) => words.split(/_([0T∗])/).forEach((part, i) =>
    element.append(i % 2 ? low(part) : part));
  const lowInText = (part) => Object.assign(document.createElement("sub"), { textContent: part });
  const lowInPicture = (part) => make("tspan", { dy: 3, "font-size": 9 }, new DocumentFragment(), part);
  // Blue over white to red, as in the pictures.
  const colour = (share) => {
    const end = share < 0 ? [0x00, 0x51, 0x86] : [0xb8, 0x43, 0x00];
    const s = Math.min(Math.abs(share), 1);
    return "rgb(" + end.map((x) => Math.round(255 + (x - 255) * s)).join(",") + ")";
  };

  // Columns as filters or as curves, in a grid that has room for the most there are; fewer in a row on narrow screens.
  const drawColumns = (svg, data, at) => {
    const [side, gap, across] = [44, 4, svg.clientWidth < 500 ? 8 : 15];
    const most = Math.max(...data.frames.map((frame) => frame.columns.length));
    const rows = Math.ceil(most / across);
    svg.setAttribute("viewBox", `0 0 ${across * (side + gap) - gap} ${rows * (side + gap)}`);
    const [down, right] = data.patch;
    data.frames[at].columns.forEach((column, i) => {
      const x = (i % across) * (side + gap), y = Math.floor(i / across) * (side + gap);
      const cell = make("g", { transform: `translate(${x} ${y})`, class: "column" }, svg);
      if (data.kind === "curves") {
        const height = (value) => side / 2 - (value / data.limit) * (side / 2 - 2);
        const points = column.map((value, j) => `${(j * side) / (column.length - 1)},${height(value)}`);
        make("line", { x2: side, y1: side / 2, y2: side / 2, stroke: "#cccccc", "stroke-width": 0.6 }, cell);
        make("polyline", { points: points.join(" "), fill: "none", stroke: "#d55e00", "stroke-width": 1.2 }, cell);
        return;
      }
      const [width, height] = [side / right, side / down];
      column.forEach((value, j) => make("rect", {
        x: (j % right) * width, y: Math.floor(j / right) * height, width: width + 0.1, height: height + 0.1,
        fill: colour(value / data.limit),
      }, cell));
      make("rect", { width: side, height: side, fill: "none", stroke: "#222222", "stroke-width": 0.6 }, cell);
    });
    return data.frames[at].words;
  };

  // The variances and the angle of the responses' covariance M⁻¹ C M⁻¹.
  const responses = ([a, b, c], [s, t, u]) => {
    const d = a * c - b * b, [i, j, k] = [c / d, -b / d, a / d];
    const [p, q, r, v] = [i * s + j * t, i * t + j * u, j * s + k * t, j * t + k * u];
    const [x, y, z] = [p * i + q * j, p * j + q * k, r * j + v * k];
    const [mean, half] = [(x + z) / 2, Math.hypot((x - z) / 2, y)];
    return { variances: [mean + half, mean - half], angle: Math.atan2(2 * y, x - z) / 2 };
  };
  const drawPath = (svg, data, at) => {
    svg.setAttribute("viewBox", "0 0 720 200");
    const each = data.sides.map((side) => side.path.map((m) => responses(m, data.context)));
    const unit = 84 / Math.sqrt(Math.max(1, ...each.flat().map((now) => now.variances[0])));
    const words = data.sides.map((side, i) => {
      const { variances, angle } = each[i][at], error = Math.max(...variances.map((x) => Math.abs(x - 1)));
      const plane = make("g", { transform: `translate(${210 + 300 * i} 108)` }, svg);
      make("path", { d: "M-86 0H86M0 -86V86", stroke: "#f0f0f0" }, plane);
      const name = make("text", { y: -94, "text-anchor": "middle", "font-size": 12, fill: "#222222" }, plane);
      write(side.name, name, lowInPicture);
      const [rx, ry] = variances.map((x) => unit * Math.sqrt(Math.max(x, 0)));
      const turn = `rotate(${(-angle * 180) / Math.PI})`;
      make("ellipse", { rx, ry, transform: turn, fill: "#56b4e9", "fill-opacity": 0.18, stroke: "#56b4e9",
        "stroke-width": 1.6, "stroke-dasharray": "4 3" }, plane);
      make("circle", { r: unit, fill: "none", stroke: "#009e73", "stroke-width": 1.4 }, plane);
      follow(side, at);
      return `${error.toPrecision(2)} with ${side.name}`;
    });
    const last = Math.min(...data.sides.map((side) => side.path.length)) - 1;
    return `${at} of ${last}: whitening error ${words.join(", ")}`;
  };
  // A ring at this place of the path in the picture.
  const follow = (side, at) => {
    const part = document.querySelector(side.picture), path = part && part.querySelector("path");
    if (!path) return;
    const point = path.getAttribute("d").slice(1).split("L")[at].split(" ");
    const ring = part.querySelector(".here-on-path") || make("circle", { r: 3.6, fill: "#ffffff", stroke: "#222222",
      "stroke-width": 1.4, class: "here-on-path" }, part);
    ring.setAttribute("cx", point[0]);
    ring.setAttribute("cy", point[1]);
  };

  // Marks what belongs to a place of the slider: dots of a strip, or of the curves of a picture.
  const mark = (element, data, at) => {
    for (const dot of element.querySelectorAll("[data-start]"))
      dot.classList.toggle("on", dot.dataset.start === String(data.frames[at].mark));
    const dots = data.dots ? [...document.querySelectorAll(data.dots)] : [];
    if (dots.length % (data.frames || [0]).length === 0)
      dots.forEach((dot, i) => dot.classList.toggle("on", i % data.frames.length === at));
  };

  const sliders = new Map();
  for (const element of document.querySelectorAll("[data-explore]")) {
    const data = all[element.dataset.explore];
    const [slider, output, svg] = ["input", "output", "svg.shown"].map((name) => element.querySelector(name));
    const show = () => {
      svg.replaceChildren();
      const words = (data.kind === "path" ? drawPath : drawColumns)(svg, data, Number(slider.value));
      output.replaceChildren();
      write(words, output, lowInText);
      slider.setAttribute("aria-valuetext", words.replaceAll("_", ""));
      mark(element, data, Number(slider.value));
    };
    const set = (place) => {
      slider.value = place;
      show();
    };
    slider.addEventListener("input", show);
    addEventListener("resize", show);
    for (const dot of element.querySelectorAll("[data-start]"))
      for (const kind of ["pointerenter", "click"])
        dot.addEventListener(kind, () => set(data.frames.findIndex((frame) => String(frame.mark) === dot.dataset.start)));
    element.hidden = false;
    element.querySelector(".control").hidden = false;
    show();
    sliders.set(element.dataset.explore, { element, data, set });
  }

  const fromAddress = () => {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const found = sliders.get(name);
      if (!found || value === "") continue;
      const places = found.data.frames ? found.data.frames.map((frame) => frame.at)
        : found.data.sides[0].path.map((_, i) => i);
      const far = places.map((place) => Math.abs(place - Number(value)));
      found.set(Math.max(far.indexOf(Math.min(...far)), 0));
      found.element.scrollIntoView();
    }
  };
  addEventListener("hashchange", fromAddress);
  fromAddress();
})();
