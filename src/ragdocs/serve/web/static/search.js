// Search as you type; the address holds the whole state, and every answer is made by the server.

import { key, onChange } from "./app.js";

const PAUSE_MS = 180;
const SLOW_MS = 400;
const NEWS_PAUSE_MS = 300;
const NARROW = "(max-width: 860px)";

const base = document.querySelector('meta[name="base"]').content;
const form = document.querySelector("#search");
const box = document.querySelector("#q");
const results = document.querySelector("#results");
const fresh = document.querySelector("#fresh");
const filters = document.querySelector("#facets");

if (matchMedia(NARROW).matches) filters.open = false;

// State and address

/** Return what the form asks for; whatever is as it is without a choice is left out. */
function formState() {
  const state = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value && name !== "why") state.append(name, value);
  }
  const lanes = form.elements.lane;
  const boxes = lanes instanceof RadioNodeList ? [...lanes] : [lanes].filter(Boolean);
  if (boxes.every((lane) => lane.checked)) state.delete("lane");
  return state;
}

function address(state) {
  const query = state.toString();
  return `${base}/${query ? `?${query}` : ""}`;
}

// Asking the server

let running = null;
let pause = 0;
// What the step back leads to after Enter: keys in between leave no trace in the history.
let committed = location.pathname + location.search;

function remember(target, push) {
  if (push && target !== committed) {
    history.replaceState(null, "", committed);
    history.pushState(null, "", target);
    committed = target;
  } else history.replaceState(null, "", target);
}

async function fetchParts(state, signal) {
  const response = await fetch(`${base}/search-fragment?${state}`, { signal });
  if (response.status === 401 || response.status === 403) location.reload();
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Show what a state finds; an answer that is no longer wanted is dropped. */
async function search(state, { push = false, only = "" } = {}) {
  clearTimeout(pause);
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  fresh.hidden = true;
  results.classList.add("waiting");
  const slow = setTimeout(() => {
    document.querySelector('[data-part="found"]').textContent = "searching";
  }, SLOW_MS);
  try {
    const parts = await fetchParts(state, signal);
    if (signal.aborted) return;
    remember(address(state), push);
    document.title = document.title.replace(/^.*?(?= · )/, () => state.get("q") || "Search");
    put(parts, only);
    results.classList.remove("waiting");
  } catch (error) {
    if (error.name === "AbortError") return;
    results.classList.remove("waiting");
    document.querySelector('[data-part="found"]').textContent = "the server does not answer";
  } finally {
    clearTimeout(slow);
  }
}

/** Put the parts of an answer, or only one of them, in their places.
 *  What had the focus or was unfolded stays so. */
function put(parts, only = "") {
  const { name, value } = document.activeElement ?? {};
  const wasInPart = document.activeElement?.closest("[data-part]");
  const unfolded = [...document.querySelectorAll("details.more[open]")].map((details) => details.id);
  for (const part of parts.querySelectorAll(`[data-part${only ? `="${only}"` : ""}]`)) {
    const place = document.querySelector(`[data-part="${part.dataset.part}"]`);
    place.replaceChildren(...part.childNodes);
  }
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  if (wasInPart && name) {
    const again = [...form.elements].find((field) => field.name === name && field.value === value);
    again?.focus();
  }
}

box.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => search(formState()), PAUSE_MS);
});

document.addEventListener("change", (event) => {
  if (event.target.form === form && event.target.type !== "search" && event.target.name !== "why") {
    search(formState());
  }
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const state = formState();
  const why = form.elements.why.value.trim();
  const isAboutOne = event.submitter?.id === "explain" || document.activeElement === form.elements.why;
  if (why && isAboutOne) {
    state.set("why", why);
    search(state, { push: true, only: "stages" });
  } else search(state, { push: true });
});

addEventListener("popstate", () => {
  committed = location.pathname + location.search;
  const state = new URLSearchParams(location.search);
  box.value = state.get("q") ?? "";
  form.elements.why.value = state.get("why") ?? "";
  search(state);
});

// Keys

const rows = () => [...results.querySelectorAll(".hit")];
const selected = () => results.querySelector(".hit.on");

function select(row) {
  selected()?.classList.remove("on");
  row?.classList.add("on");
  row?.querySelector(".open").focus();
}

/** Move the selection; fields that use the arrows themselves keep them. */
function move(event, step) {
  const target = event.target;
  if (target.matches("input:not(#q), select, textarea, summary")) return false;
  const every = rows();
  if (!every.length) return false;
  const next = every.indexOf(selected()) + step;
  if (next < 0 || (target === box && step < 0)) {
    select(null);
    box.focus();
  } else select(every[Math.min(next, every.length - 1)]);
  return true;
}

key("ArrowDown", "next result", (event) => move(event, 1));
key("ArrowUp", "previous result", (event) => move(event, -1));
// The title of the selected result has the focus, so the browser opens it.
key("Enter", "open at the line", () => false);
key("x", "explain the selected result", () => {
  const explain = (selected() ?? rows()[0])?.querySelector(".explain");
  if (explain) explain.open = !explain.open;
});
key("Escape", "clear the query, or go back to the box", (event) => {
  if (document.querySelector("dialog[open]")) return false;
  if (event.target === box && box.value) {
    box.value = "";
    search(formState());
  }
  select(null);
  box.focus();
  return true;
});

results.addEventListener("focusin", (event) => {
  const row = event.target.closest(".hit");
  if (row && row !== selected()) {
    selected()?.classList.remove("on");
    row.classList.add("on");
  }
});

// News: a memory that matches is announced, and nothing moves until somebody asks for it

let pending = [];
let newsPause = 0;

onChange((change) => {
  if (!change || change.change !== "written") return;
  pending.push(change);
  clearTimeout(newsPause);
  newsPause = setTimeout(announce, NEWS_PAUSE_MS);
});

async function announce() {
  const changes = pending;
  const asked = location.search;
  pending = [];
  const parts = await fetchParts(new URLSearchParams(asked));
  if (asked !== location.search) return;
  const hits = [...parts.querySelectorAll(".hits .hit:not(.below)")];
  const isNews = (hit) => changes.some(({ lane, path }) => hit.dataset.lane === lane && hit.dataset.path === path);
  const hit = hits.find(isNews);
  if (!hit) return;
  const noun = hit.dataset.lane === "memory" ? "memory" : "document";
  const author = hit.dataset.author || "Somebody";
  const what = location.search ? `a ${noun} that matches` : `a ${noun}`;
  fresh.querySelector(".words").textContent = `${author} saved ${what}: ${hit.querySelector(".open").textContent}`;
  fresh.hidden = false;
  fresh.querySelector("button").onclick = () => {
    fresh.hidden = true;
    put(parts);
    select(rows().find(isNews));
  };
}
