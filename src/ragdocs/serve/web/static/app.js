// What every page does: keys, messages, calls of the API, and news from the server.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
const base = meta("base");

/** Call a verb; the answer is its result, and an error has the server's own sentence. */
export async function call(verb, args = {}, { signal } = {}) {
  const response = await fetch(`${base}/api/${verb}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-ragdocs-csrf": meta("csrf") },
    body: JSON.stringify(args),
    signal,
  });
  const answer = await response.json();
  if (response.ok) return answer;
  const error = new Error([answer.error, answer.hint].filter(Boolean).join(". "));
  error.status = response.status;
  error.conflict = answer.conflict;
  throw error;
}

/** Show a message, with a button that takes the change back. */
export function toast(message, undo) {
  const box = document.createElement("div");
  const text = document.createElement("span");
  text.textContent = message;
  box.append(text);
  if (undo) {
    const button = document.createElement("button");
    button.textContent = "Undo";
    button.addEventListener("click", () => {
      box.remove();
      undo();
    });
    box.append(button);
  }
  document.querySelector("#toast").replaceChildren(box);
  setTimeout(() => box.remove(), 8000);
}

// Keys

const keys = new Map();
const lettersSetting = "ragdocs.letters";
const lettersOn = () => localStorage.getItem(lettersSetting) !== "off";

/** Give a key a meaning; `about` is said in the list of keys. */
export function key(name, about, act) {
  keys.set(name, { about, act });
}

function isTyping(target) {
  return target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const known = keys.get(event.key);
  if (!known) return;
  const isLetter = event.key.length === 1;
  if (isLetter && (isTyping(event.target) || !lettersOn())) return;
  if (document.querySelector("dialog[open]") && event.key !== "Escape") return;
  if (known.act(event) !== false) event.preventDefault();
});

key("/", "go to the search box", () => {
  const box = document.querySelector("#q, #find");
  if (!box) location.assign(`${base}/`);
  else {
    box.focus();
    box.select();
  }
});

key("?", "show all keys", () => {
  const dialog = document.querySelector("#keys");
  const list = dialog.querySelector("dl");
  list.replaceChildren();
  for (const [name, { about }] of keys) {
    const term = document.createElement("dt");
    const cap = document.createElement("kbd");
    cap.textContent = name;
    term.append(cap);
    const meaning = document.createElement("dd");
    meaning.textContent = about;
    list.append(term, meaning);
  }
  dialog.showModal();
});

const letters = document.querySelector("#letters");
letters.checked = lettersOn();
letters.addEventListener("change", () => {
  localStorage.setItem(lettersSetting, letters.checked ? "on" : "off");
});

// News: what changed while the page is open

const listeners = [];

/** Be told of every document that is written or removed, as {lane, path, title, kind, change}. */
export function onChange(listener) {
  listeners.push(listener);
}

function tell(change) {
  for (const listener of listeners) listener(change);
}

const connection = document.querySelector("#connection");
const events = new EventSource(`${base}/api/events`);
events.addEventListener("open", () => setConnected(true));
events.addEventListener("error", () => setConnected(false));
events.addEventListener("change", (event) => tell(JSON.parse(event.data)));
events.addEventListener("many", () => tell(null));

let isConnected = true;
let canWrite = false;

function setConnected(isNow) {
  isConnected = isNow;
  document.body.classList.toggle("offline", !isNow);
  connection.textContent = isNow ? "connected" : "not connected, trying again";
  updateWriting();
}

/** Let the buttons work that change something; called once a page listens to them. */
export function enableWriting() {
  canWrite = true;
  updateWriting();
}

// A button that worked before its page listens would swallow a click.
function updateWriting() {
  if (!canWrite) return;
  for (const button of document.querySelectorAll("[data-write]")) {
    button.disabled = !isConnected;
    button.title = isConnected ? "" : "the server does not answer";
  }
}
