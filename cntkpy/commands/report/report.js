
"use strict";
// The page is complete without this script. It zooms charts (it changes the viewBox of a plot, and writes the grid anew),
// sorts the table of runs, says where something is wider than the screen, and in a live page takes the newest state.
(function () {
  const UNITS = 10000, LEFT = 66, TOP = 10, RIGHT = 626, BOTTOM = 306, SVG = "http://www.w3.org/2000/svg";
  const zooms = new Map(), orders = new Map(); // by the names of charts and of tables

  function nice(step) {
    const power = Math.pow(10, Math.floor(Math.log10(step)));
    for (const factor of [1, 2, 5]) if (factor * power >= step * 0.999999) return factor * power;
    return 10 * power;
  }

  function ticks(low, high, wanted) {
    const step = nice((high - low) / wanted), values = [];
    for (let n = Math.ceil(low / step - 1e-9); n <= Math.floor(high / step + 1e-9); n++) values.push(n * step);
    return values;
  }

  function powers(low, high, wanted) {
    if (high - low < 1) return ticks(Math.pow(10, low), Math.pow(10, high), wanted).filter((v) => v > 0);
    const step = Math.max(1, Math.ceil((high - low) / wanted)), values = [];
    for (let n = Math.ceil(low); n <= Math.floor(high); n++) if (n % step === 0) values.push(Math.pow(10, n));
    return values;
  }

  function add(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }

  const shown = (value) => String(Number(value.toPrecision(4)));

  function setUpChart(svg, key, buttons) {
    const plot = svg.querySelector(".plot"), grid = svg.querySelector(".grid");
    const ends = (name) => svg.dataset[name].split(" ").map(Number);
    const [x0, x1] = ends("x"), [y0, y1] = ends("y"), log = svg.dataset.log !== undefined;
    let box = [0, 0, UNITS, UNITS]; // left, top, width, height
    const edges = () => {
      const x = (unit) => x0 + (unit / UNITS) * (x1 - x0), y = (unit) => y1 - (unit / UNITS) * (y1 - y0);
      return [x(box[0]), x(box[0] + box[2]), y(box[1] + box[3]), y(box[1])]; // left, right, low, high
    };

    function show() {
      plot.setAttribute("viewBox", box.join(" "));
      const [left, right, low, high] = edges();
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
      if (box.join() === [0, 0, UNITS, UNITS].join()) zooms.delete(key); else zooms.set(key, edges());
    }

    // A newer state of a chart may have other ends: the same values stay in view.
    function restore([left, right, low, high]) {
      const x = (value) => ((value - x0) / (x1 - x0)) * UNITS, y = (value) => ((y1 - value) / (y1 - y0)) * UNITS;
      box = [x(left), y(high), x(right) - x(left), y(low) - y(high)];
      show();
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

    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [a, b] = at(event), mark = add(svg, "rect", { class: "marked", width: 0, height: 0 });
      const range = (x, y) => ({ x: Math.min(x, a), y: Math.min(y, b), width: Math.abs(x - a), height: Math.abs(y - b) });
      const move = (later) => {
        const marked = range(...at(later));
        for (const name in marked) mark.setAttribute(name, marked[name]);
      };
      const finish = (later) => {
        svg.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", finish);
        window.removeEventListener("pointercancel", finish);
        dragging = false;
        mark.remove();
        const { x, y, width, height } = range(...at(later));
        if (later.type === "pointercancel" || width < 8 || height < 8) return;
        const across = box[2] / (RIGHT - LEFT), down = box[3] / (BOTTOM - TOP);
        const next = [box[0] + (x - LEFT) * across, box[1] + (y - TOP) * down, width * across, height * down];
        if (next[2] < UNITS / 1000 || next[3] < UNITS / 1000) return;
        box = next;
        show();
      };
      dragging = true;
      svg.addEventListener("pointermove", move);
      window.addEventListener("pointerup", finish);
      window.addEventListener("pointercancel", finish);
    });
    svg.addEventListener("dblclick", reset);
    if (zooms.has(key)) restore(zooms.get(key));
    buttons.push([svg, zoom, reset]);
  }

  let dragging = false;

  function button(text, title, act) {
    const node = document.createElement("button");
    node.type = "button";
    node.textContent = text;
    node.title = title;
    node.addEventListener("click", act);
    return node;
  }

  function setUpCharts(root) {
    for (const figure of root.querySelectorAll("figure.chart")) {
      const parts = [], title = figure.querySelector("figcaption").textContent;
      for (const svg of figure.querySelectorAll("svg.curves")) setUpChart(svg, title + (svg.dataset.log !== undefined), parts);
      const bar = document.createElement("div");
      bar.className = "zoom";
      const visible = () => parts.filter(([svg]) => svg.getBoundingClientRect().width > 0);
      bar.append(
        button("+", "Zoom in", () => visible().forEach((part) => part[1](1.5))),
        button("\u2212", "Zoom out", () => visible().forEach((part) => part[1](1 / 1.5))),
        button("Reset", "Show everything", () => visible().forEach((part) => part[2]())),
      );
      figure.appendChild(bar);
    }
  }

  // A box of the legend shows or hides the curves of its run; the pointer over its label brings them out.
  function setUpLegend(root) {
    const part = root.querySelector(".curves-part");
    if (part === null) return;
    const boxes = [...part.querySelectorAll(".legend input")];
    const show = (box) => {
      for (const line of part.querySelectorAll("." + box.id)) line.classList.toggle("off", !box.checked);
    };
    for (const box of boxes) {
      show(box);
      box.addEventListener("change", () => show(box));
      const light = (on) => {
        part.classList.toggle("faded", on && boxes.length > 1);
        for (const line of part.querySelectorAll("." + box.id)) line.classList.toggle("lit", on);
      };
      box.parentElement.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && light(true));
      box.parentElement.addEventListener("pointerleave", () => light(false));
    }
    if (boxes.length < 3) return;
    const set = (checked) => boxes.forEach((box) => { box.checked = checked; show(box); });
    const bar = document.createElement("div");
    bar.className = "zoom";
    bar.append(button("All", "Show all runs", () => set(true)), button("None", "Hide all runs", () => set(false)));
    part.querySelector(".legend").before(bar);
  }

  // Numbers by size, other texts by their letters; empty cells come last.
  function sort(table, column, descending) {
    const body = table.tBodies[0], heads = table.tHead.rows[0].cells;
    const value = (row) => row.cells[column].textContent.replace("\u2605", "").trim();
    const number = (text) => (/^[-+]?[\d.]/.test(text) ? Number(text.split("/")[0]) : NaN);
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [p, q] = [number(x), number(y)], sign = descending ? -1 : 1;
      if (isNaN(p) !== isNaN(q)) return isNaN(p) - isNaN(q);
      return sign * (isNaN(p) ? x.localeCompare(y, undefined, { numeric: true }) : p - q);
    };
    body.append(...[...body.rows].sort(compare));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    orders.set(table.dataset.key, [heads[column].textContent, descending]);
  }

  function setUpTables(root) {
    for (const table of root.querySelectorAll("table.sortable")) {
      const heads = [...table.tHead.rows[0].cells];
      heads.forEach((head, column) => {
        const name = document.createElement("button");
        name.type = "button";
        name.title = "Sort";
        name.append(...head.childNodes);
        name.addEventListener("click", () => sort(table, column, head.getAttribute("aria-sort") === "ascending"));
        head.append(name);
      });
      if (!orders.has(table.dataset.key)) continue;
      const [title, descending] = orders.get(table.dataset.key);
      const column = heads.findIndex((head) => head.textContent === title);
      if (column >= 0) sort(table, column, descending);
    }
  }

  // What is wider than the screen says so, and can be scrolled with the keyboard.
  function setUpScrolls(root) {
    for (const part of root.querySelectorAll(".scroll")) {
      const hint = document.createElement("p");
      hint.className = "hint";
      hint.textContent = "Scroll sideways for more \u2192";
      part.before(hint);
      const look = () => {
        const wide = part.scrollWidth > part.clientWidth + 1;
        hint.hidden = !wide;
        if (wide) part.tabIndex = 0; else part.removeAttribute("tabindex");
      };
      new ResizeObserver(look).observe(part);
      part.addEventListener("toggle", look);
      look();
    }
  }

  function setUp(root) {
    setUpCharts(root);
    setUpLegend(root);
    setUpTables(root);
    setUpScrolls(root);
  }

  // Paper has no folds.
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  const main = () => document.querySelector("main");
  const keyed = (root, name) => [...root.querySelectorAll(name + "[data-key]")];

  // The newest state takes the place of the old one; what the reader has chosen stays.
  function replace(text) {
    const next = new DOMParser().parseFromString(text, "text/html"), old = main(), fresh = next.querySelector("main");
    if (fresh === null) return;
    const checked = new Map([...old.querySelectorAll("input")].map((box) => [box.id, box.checked]));
    const open = new Map(keyed(old, "details").map((fold) => [fold.dataset.key, fold.open]));
    const sides = [...old.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
    const focus = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
    const [x, y] = [window.scrollX, window.scrollY];
    for (const box of fresh.querySelectorAll("input")) if (checked.has(box.id)) box.checked = checked.get(box.id);
    for (const fold of keyed(fresh, "details")) if (open.has(fold.dataset.key)) fold.open = open.get(fold.dataset.key);
    document.title = next.title;
    old.replaceWith(document.adoptNode(fresh));
    setUp(fresh);
    [...fresh.querySelectorAll(".scroll")].forEach((part, number) => { part.scrollLeft = sides[number] || 0; });
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
    window.scrollTo({ left: x, top: y, behavior: "instant" });
  }

  const isBusy = () => dragging || document.hidden || !document.getSelection().isCollapsed;

  async function refresh() {
    let version = null;
    for (;;) {
      await new Promise((resume) => setTimeout(resume, 1000 * Number(main().dataset.live)));
      if (isBusy()) continue;
      try {
        const answer = await fetch(location.href, { cache: "no-store", headers: version ? { "If-None-Match": version } : {} });
        document.getElementById("ended").hidden = true;
        if (answer.status !== 200) continue;
        const text = await answer.text();
        if (isBusy()) continue;
        version = answer.headers.get("ETag");
        replace(text);
      } catch (error) {
        document.getElementById("ended").hidden = false;
      }
    }
  }

  document.documentElement.classList.add("scripted");
  setUp(document);
  if (main().dataset.live !== undefined) refresh();
})();
