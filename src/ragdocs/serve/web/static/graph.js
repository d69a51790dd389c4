// The graph: find, choose, zoom and drag; the server has placed the nodes.

import { call, key, onChange, toast } from "./app.js";

const base = document.querySelector('meta[name="base"]').content;
const svg = document.querySelector("#graph");
if (svg) start();

function start() {
  const nodes = [...svg.querySelectorAll(".n a")];
  const whole = [0, 0, svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
  const side = document.querySelector("#side");
  const untouched = side.cloneNode(true);
  let view = whole;
  let chosen = null;

  // The page comes in few bytes: what follows makes a line of every link, and gives every node its
  // own place, a ring, and a name.

  const byPlace = new Map();
  for (const node of nodes) {
    const { x, y } = node.querySelector("use");
    byPlace.set(`${x.baseVal.value} ${y.baseVal.value}`, node);
    unfold(node, x.baseVal.value, y.baseVal.value);
  }
  const edges = [];
  for (const line of [...svg.querySelectorAll("#links path")]) {
    for (const walk of line.getAttribute("d").split("M").slice(1)) split(line, walk.split(" "));
    line.remove();
  }
  for (const node of nodes) {
    const count = edges.filter(({ ends }) => ends.includes(node)).length;
    const links = count === 1 ? "1 link" : `${count} links`;
    node.setAttribute("aria-label", `${nameOf(node)}, ${node.parentNode.dataset.kind}, ${links}`);
  }
  const byId = new Map(nodes.map((node) => [idOf(node), node]));
  svg.classList.add("unfolded");

  function split(line, numbers) {
    for (let at = 0; at + 3 < numbers.length; at += 2) {
      const path = line.cloneNode();
      const [fromX, fromY, toX, toY] = numbers.slice(at, at + 4);
      path.setAttribute("d", `M${fromX} ${fromY}L${toX} ${toY}`);
      line.before(path);
      edges.push({ path, ends: [byPlace.get(`${fromX} ${fromY}`), byPlace.get(`${toX} ${toY}`)] });
    }
  }

  function place(node) {
    const [, x, y] = node.getAttribute("transform").match(/\(([-\d.]+)[ ,]([-\d.]+)/);
    return [Number(x), Number(y)];
  }

  // Looking at a part

  function show(next) {
    view = next;
    svg.setAttribute("viewBox", next.map((value) => value.toFixed(1)).join(" "));
  }

  function zoom(factor, [x, y] = middle()) {
    const width = Math.min(whole[2] * 1.5, Math.max(120, view[2] * factor));
    const ratio = width / view[2];
    show([x - (x - view[0]) * ratio, y - (y - view[1]) * ratio, width, view[3] * ratio]);
  }

  function middle() {
    return [view[0] + view[2] / 2, view[1] + view[3] / 2];
  }

  function fit() {
    const box = svg.getBoundingClientRect();
    const isNarrow = box.width < 700;
    if (!isNarrow) return show(whole);
    // At full size around the chosen node, because all of it would be too small to read.
    const [x, y] = place(chosen ?? mostLinked());
    show([x - box.width / 2, y - box.height / 2, box.width, box.height]);
  }

  function mostLinked() {
    const count = new Map();
    for (const node of edges.flatMap(({ ends }) => ends)) count.set(node, (count.get(node) ?? 0) + 1);
    const [most] = [...count].sort((left, right) => right[1] - left[1]);
    return most ? most[0] : nodes[0];
  }

  function toCanvas(event) {
    const point = new DOMPoint(event.clientX, event.clientY);
    const { x, y } = point.matrixTransform(svg.getScreenCTM().inverse());
    return [x, y];
  }

  for (const button of document.querySelectorAll("[data-zoom]")) {
    const acts = { in: () => zoom(0.8), out: () => zoom(1.25), fit };
    button.addEventListener("click", acts[button.dataset.zoom]);
  }
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 0.87, toCanvas(event));
    },
    { passive: false },
  );

  // Dragging a node moves it with its links; dragging anything else moves the view

  let drag = null;

  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const node = event.target.closest(".n a");
    drag = { node, from: toCanvas(event), at: [event.clientX, event.clientY], moved: false };
  });
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const distance = Math.hypot(event.clientX - drag.at[0], event.clientY - drag.at[1]);
    if (!drag.moved && distance < 5) return;
    drag.moved = true;
    svg.classList.add("drags");
    const [x, y] = toCanvas(event);
    if (drag.node) move(drag.node, x, y);
    else show([view[0] - (x - drag.from[0]), view[1] - (y - drag.from[1]), view[2], view[3]]);
  });
  window.addEventListener("pointerup", () => {
    svg.classList.remove("drags");
    // The click that follows must still know that it ended a drag.
    setTimeout(() => (drag = null));
  });

  function move(node, x, y) {
    node.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    for (const { path, ends } of edges) {
      if (!ends.includes(node)) continue;
      path.setAttribute("d", `M${place(ends[0]).join(" ")}L${place(ends[1]).join(" ")}`);
    }
  }

  // Choosing

  svg.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const node = event.target.closest(".n a");
    if (drag?.moved) return event.preventDefault();
    if (!node) return clear();
    // The second click follows the link to the text.
    if (node === chosen) return;
    event.preventDefault();
    choose(node);
  });

  function choose(node) {
    chosen = node;
    const near = new Set();
    for (const { path, ends } of edges) {
      const isNear = ends.includes(node);
      path.classList.toggle("near", isNear);
      if (isNear) ends.forEach((end) => near.add(end));
    }
    for (const each of nodes) {
      each.classList.toggle("chosen", each === node);
      each.classList.toggle("near", each !== node && near.has(each));
      each.tabIndex = each === node ? 0 : -1;
    }
    svg.classList.add("picked");
    node.focus({ preventScroll: true });
    describe(node);
  }

  function clear() {
    chosen = null;
    svg.classList.remove("picked");
    for (const each of [...nodes, ...edges.map(({ path }) => path)]) {
      each.classList.remove("chosen", "near", "hit");
    }
    side.replaceChildren(...untouched.cloneNode(true).childNodes);
    nodes[0].tabIndex = 0;
  }

  /** Go to the next or previous neighbour of the chosen node, or to the first node. */
  function step(by) {
    if (!chosen) return choose(mostLinked());
    const near = nodes.filter((node) => node.classList.contains("near"));
    if (!near.length) return undefined;
    const position = near.indexOf(document.activeElement);
    near[(position + by + near.length) % near.length].focus({ preventScroll: true });
    return undefined;
  }

  // What is known about the chosen node

  async function describe(node) {
    let graph;
    try {
      graph = await call("link_graph", { around: idOf(node), steps: 1, limit: 1 });
    } catch (error) {
      toast(error.message);
      return;
    }
    if (node !== chosen) return;
    side.replaceChildren(...panel(node, graph.centre));
  }

  function panel(node, centre) {
    const head = element("div", "with-sig", sigil(centre), element("h2", "", centre.title));
    const about = element("p", "small muted", element("span", "addr", centre.path));
    const words = centre.lane ? [centre.age, centre.author] : ["not indexed"];
    about.append(element("br"), words.filter(Boolean).join(", "));
    const parts = [head, about];
    if (centre.beginning) parts.push(element("blockquote", "passage small", centre.beginning));
    const row = element("p", "row");
    const address = node.getAttribute("href");
    if (address) row.append(link("btn main", address, "Open"));
    row.append(link("btn", around(centre.id), "Only around it"));
    const title = element("h3", "", "Neighbours ");
    title.append(element("span", "muted", String(centre.neighbours.length)));
    const list = element("ul", "rows");
    for (const neighbour of centre.neighbours) {
      const name = link("", around(neighbour.id), neighbour.title);
      name.dataset.id = neighbour.id;
      const arrow = neighbour.direction === "out" ? "→" : "←";
      const kind = element("span", "small muted", ` ${arrow} ${neighbour.edge}`);
      list.append(element("li", "with-sig", sigil(neighbour), element("span", "", name, kind)));
    }
    return [...parts, row, title, list];
  }

  side.addEventListener("click", (event) => {
    const name = event.target.closest("a[data-id]");
    const node = name && byId.get(name.dataset.id);
    if (!node || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(node);
  });

  // Finding

  const find = document.querySelector("#find");
  find.addEventListener("input", () => {
    const words = find.value.trim().toLowerCase();
    let count = 0;
    for (const node of nodes) {
      const isHit = Boolean(words) && nameOf(node).toLowerCase().includes(words);
      node.classList.toggle("hit", isHit);
      count += isHit;
    }
    find.setAttribute("aria-description", words ? `${count} nodes match` : "");
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      find.value = "";
      find.dispatchEvent(new Event("input"));
      find.blur();
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const hit = nodes.find((node) => node.classList.contains("hit"));
    if (!hit) return toast("No node on this page has that name");
    choose(hit);
    fit();
  });

  // A filter takes effect when it is chosen.
  document.querySelector(".graph-bar button").hidden = true;
  for (const field of document.querySelectorAll(".graph-bar select, .graph-bar [type=checkbox]")) {
    field.addEventListener("change", () => field.form.submit());
  }

  key("ArrowDown", "go to the next neighbour", () => step(1));
  key("ArrowUp", "go to the previous neighbour", () => step(-1));
  key("Enter", "choose the node, or open the chosen one", () => {
    const node = document.activeElement.closest?.(".n a");
    if (!node) return false;
    if (node !== chosen) choose(node);
    else if (node.getAttribute("href")) location.assign(node.getAttribute("href"));
    return true;
  });
  key("+", "zoom in", () => zoom(0.8));
  key("-", "zoom out", () => zoom(1.25));
  key("0", "fit the graph into the page", fit);
  key("Escape", "clear the selection", () => (chosen ? clear() : false));

  let isTold = false;
  onChange(() => {
    if (isTold) return;
    isTold = true;
    toast("A text changed. Reload to see its links.");
  });

  // One stop for the Tab key; the arrows go on from there.
  for (const node of nodes) {
    // A target that is not indexed has no address, but it can be chosen.
    node.setAttribute("role", "button");
    node.tabIndex = -1;
  }
  nodes[0].tabIndex = 0;
  const centre = byId.get(document.querySelector("[name=around]")?.value);
  if (centre) {
    choose(centre);
    centre.blur();
  }
  fit();
}

function drawn(name, attributes) {
  const made = document.createElementNS(svg.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Move a node's parts to its own place, so that it can be dragged as one. */
function unfold(node, x, y) {
  const use = node.querySelector("use");
  const shape = svg.querySelector(use.getAttribute("href")).firstElementChild;
  const radius = shape.r ? shape.r.baseVal.value : shape.width.baseVal.value / 2;
  const label = node.querySelector("text");
  if (label) {
    label.setAttribute("x", label.getAttribute("x") - x);
    label.setAttribute("y", label.getAttribute("y") - y);
  } else {
    node.append(drawn("text", { class: "far", x: radius + 7, y: 4 }));
    node.lastChild.append(node.getAttribute("aria-label"));
  }
  node.dataset.name = node.getAttribute("aria-label") ?? label.textContent;
  use.removeAttribute("x");
  use.removeAttribute("y");
  use.before(drawn("circle", { class: "ring", r: radius + 4 }));
  node.setAttribute("transform", `translate(${x} ${y})`);
}

function nameOf(node) {
  return node.dataset.name;
}

/** Return the id of a node; that of a text follows from its address. */
function idOf(node) {
  if (node.dataset.id) return node.dataset.id;
  const [, lane, path] = node.getAttribute("href").slice(base.length).match(/^\/text\/(\w+)\/(.*)$/);
  const name = decodeURIComponent(path);
  const isPlain = !name.slice(name.lastIndexOf("/") + 2).includes(".");
  return `${lane}:${isPlain ? `${name}.` : name.replace(/\.md$/, "")}`;
}

function around(id) {
  return `${base}/graph?around=${encodeURIComponent(id)}`;
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function link(className, address, text) {
  const made = element("a", className, text);
  made.href = address;
  return made;
}

const HUES = new Set(["fact", "decision", "plan", "journal", "observation"]);

function sigil({ lane, type }) {
  const isMemory = lane === "memory";
  const look = isMemory ? (HUES.has(type) ? type : "") : lane ? "doc" : "ghost";
  const about = isMemory ? `memory, ${type || "memory"}` : lane ? "document" : "not indexed";
  const letter = isMemory ? (type || "M")[0].toUpperCase() : lane ? "§" : "·";
  const made = element("span", `sig ${look}`, letter);
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", about);
  made.title = about;
  return made;
}
