"use strict";
// Zoom of charts. A chart is drawn without this script: it changes the viewBox of the plot, and writes the grid anew.
(function () {
  const UNITS = 10000, LEFT = 66, TOP = 10, RIGHT = 626, BOTTOM = 306, SVG = "http://www.w3.org/2000/svg";

  function nice(step) {
    const power = Math.pow(10, Math.floor(Math.log10(step)));
    for (const factor of [1, 2, 5]) if (factor * power >= step * 0.999999) return factor * power;
    return 10 * power;
  }

  function ticks(low, high, wanted) {
    const step = nice((high - low) / wanted), found = [];
    for (let n = Math.ceil(low / step - 1e-9); n <= Math.floor(high / step + 1e-9); n++) found.push(n * step);
    return found;
  }

  function powers(low, high, wanted) {
    if (high - low < 1) return ticks(Math.pow(10, low), Math.pow(10, high), wanted).filter((v) => v > 0);
    const step = Math.max(1, Math.ceil((high - low) / wanted)), found = [];
    for (let n = Math.ceil(low); n <= Math.floor(high); n++) if (n % step === 0) found.push(Math.pow(10, n));
    return found;
  }

  function add(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  const shown = (value) => String(Number(value.toPrecision(4)));

  function setUp(svg, buttons) {
    const plot = svg.querySelector(".plot"), grid = svg.querySelector(".grid");
    const ends = (name) => svg.dataset[name].split(" ").map(Number);
    const [x0, x1] = ends("x"), [y0, y1] = ends("y"), log = svg.dataset.log !== undefined;
    let box = [0, 0, UNITS, UNITS]; // left, top, width, height

    function show() {
      plot.setAttribute("viewBox", box.join(" "));
      const x = (unit) => x0 + (unit / UNITS) * (x1 - x0), y = (unit) => y1 - (unit / UNITS) * (y1 - y0);
      const left = x(box[0]), right = x(box[0] + box[2]), high = y(box[1]), low = y(box[1] + box[3]);
      grid.replaceChildren();
      for (const value of log ? powers(low, high, 6) : ticks(low, high, 6)) {
        const at = BOTTOM - (((log ? Math.log10(value) : value) - low) / (high - low)) * (BOTTOM - TOP);
        add(grid, "line", { x1: LEFT, x2: RIGHT, y1: at, y2: at });
        add(grid, "text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, shown(value));
      }
      const epochs = right - left >= 2 ? Math.min(8, Math.ceil(right - left)) : 4; // see whole_steps
      for (const value of ticks(left, right, epochs)) {
        const at = LEFT + ((value - left) / (right - left)) * (RIGHT - LEFT);
        add(grid, "line", { x1: at, x2: at, y1: TOP, y2: BOTTOM });
        add(grid, "text", { x: at, y: BOTTOM + 16, "text-anchor": "middle" }, shown(value));
      }
      add(grid, "text", { x: (LEFT + RIGHT) / 2, y: 336, "text-anchor": "middle" }, "epoch");
    }

    function zoom(factor) {
      const width = Math.min(UNITS, Math.max(UNITS / 1000, box[2] / factor));
      const height = Math.min(UNITS, Math.max(UNITS / 1000, box[3] / factor));
      const left = box[0] + (box[2] - width) / 2, top = box[1] + box[3] - height;
      box = [Math.max(0, Math.min(UNITS - width, left)), Math.max(0, Math.min(UNITS - height, top)), width, height];
      show();
    }

    function reset() { box = [0, 0, UNITS, UNITS]; show(); }

    // Where the pointer is, in the units of the whole picture, kept inside of the plot.
    function at(event) {
      const frame = svg.getBoundingClientRect(), scale = 640 / frame.width;
      const inside = (value, low, high) => Math.min(high, Math.max(low, value));
      return [inside((event.clientX - frame.left) * scale, LEFT, RIGHT), inside((event.clientY - frame.top) * scale, TOP, BOTTOM)];
    }

    let start = null, mark = null;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = at(event);
      mark = add(svg, "rect", { class: "marked", width: 0, height: 0 });
    });
    svg.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const [x, y] = at(event);
      const range = { x: Math.min(x, start[0]), y: Math.min(y, start[1]), width: Math.abs(x - start[0]), height: Math.abs(y - start[1]) };
      for (const key in range) mark.setAttribute(key, range[key]);
    });
    function finish(event) {
      if (start === null) return;
      const [x, y] = at(event), [a, b] = start;
      start = null;
      mark.remove();
      if (event.type === "pointercancel" || Math.abs(x - a) < 8 || Math.abs(y - b) < 8) return;
      const across = box[2] / (RIGHT - LEFT), down = box[3] / (BOTTOM - TOP);
      const next = [box[0] + (Math.min(x, a) - LEFT) * across, box[1] + (Math.min(y, b) - TOP) * down, Math.abs(x - a) * across, Math.abs(y - b) * down];
      if (next[2] < UNITS / 1000 || next[3] < UNITS / 1000) return;
      box = next;
      show();
    }
    window.addEventListener("pointerup", finish);
    window.addEventListener("pointercancel", finish);
    svg.addEventListener("dblclick", reset);
    buttons.push([svg, zoom, reset]);
  }

  // Paper has no folds.
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  document.documentElement.classList.add("scripted");
  for (const figure of document.querySelectorAll("figure.chart")) {
    const parts = [];
    for (const svg of figure.querySelectorAll("svg.curves")) setUp(svg, parts);
    const bar = document.createElement("div");
    bar.className = "zoom";
    const visible = () => parts.filter(([svg]) => svg.getBoundingClientRect().width > 0);
    const actions = [["+", "Zoom in", (one) => one[1](1.5)], ["\u2212", "Zoom out", (one) => one[1](1 / 1.5)], ["Reset", "Show everything", (one) => one[2]()]];
    for (const [text, title, act] of actions) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = title;
      button.addEventListener("click", () => visible().forEach(act));
      bar.appendChild(button);
    }
    figure.appendChild(bar);
  }
})();
