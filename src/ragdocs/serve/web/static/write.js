// The page on which a person writes: preview, secrets, drafts that survive a reload, conflicts.

import { call, enableWriting, onChange } from "./app.js";
import { addressOf, announce } from "./announce.js";
import { showConflict } from "./conflict.js";

const PAUSE = 300;
const page = document.querySelector(".write-page");
const { mode, path } = page.dataset;
const base = document.querySelector('meta[name="base"]').content;
const csrf = document.querySelector('meta[name="csrf"]').content;
const field = document.querySelector("#content");
const save = document.querySelector("#save");
const slot = `ragdocs.draft:${base}:${mode}:${path}`;

// The text and version that this writing started from; a draft may have started from older ones.
let started = { version: page.dataset.version ?? "", text: field.value };
let choices = {};
let acceptedSecrets = "";

const one = (selector) => document.querySelector(selector);

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function note(target, kind, ...children) {
  const box = one(target);
  box.replaceChildren();
  if (children.length) box.append(element("p", `note ${kind}`, element("span", "", ...children)));
}

// Drafts

const newFields = ["#filename", "#kind", "#tags"].map(one).filter(Boolean);

function keepDraft() {
  const fields = newFields.map((input) => input.value);
  const isEmpty = field.value === started.text && !fields.slice(0, 1).some(Boolean);
  if (isEmpty) localStorage.removeItem(slot);
  else localStorage.setItem(slot, JSON.stringify({ text: field.value, started, choices, fields, at: Date.now() }));
  one("#discard").hidden = isEmpty;
}

function dropDraft() {
  localStorage.removeItem(slot);
}

function takeUpDraft() {
  const kept = localStorage.getItem(slot);
  if (!kept) return;
  const draft = JSON.parse(kept);
  if (draft.text === field.value && !newFields.length) return dropDraft();
  field.value = draft.text;
  newFields.forEach((input, number) => (input.value = draft.fields[number] ?? input.value));
  choices = draft.choices;
  const isOlder = draft.started.version !== started.version;
  started = draft.started;
  one("#discard").hidden = false;
  const at = new Date(draft.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  note("#news", "", `This is your unsaved text of ${at}.`);
  if (isOlder && mode === "edit") meetConflict();
}

one("#discard").addEventListener("click", () => {
  dropDraft();
  location.reload();
});

// Preview and secrets, after a pause

let timer = 0;

function afterTyping() {
  keepDraft();
  clearTimeout(timer);
  timer = setTimeout(() => {
    preview();
    findSecrets().catch(() => {});
  }, PAUSE);
}

async function preview() {
  const name = one("#filename")?.value || path;
  const response = await fetch(`${base}/preview`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-ragdocs-csrf": csrf },
    body: JSON.stringify({ path: name, content: field.value }),
  });
  // The server cleaned it: nothing in it can run or load.
  if (response.ok) one("#preview").innerHTML = await response.text();
}

/** Show what would be taken out of the text; tell whether that was shown and accepted before. */
async function findSecrets(text = field.value, target = "#secrets") {
  const { result } = text ? await call("check_secrets", { content: text }) : { result: [] };
  const found = JSON.stringify(result);
  if (!result.length) {
    note(target, "");
    save.textContent = "Save";
    return true;
  }
  const lines = result.map(({ line, kind }) => `line ${line} (${kind})`).join(", ");
  note(target, "bad", `It looks as if there were secrets in the text: ${lines}. They are not written down: the text is saved with placeholders instead.`);
  save.textContent = "Save without the secrets";
  const accepted = acceptedSecrets === found;
  acceptedSecrets = found;
  return accepted;
}

// Saving

const withLineEnds = (text) => (page.dataset.crlf === "true" ? text.replace(/\n/g, "\r\n") : text);

async function write() {
  if (mode === "create") {
    const tags = one("#tags").value.split(",").map((tag) => tag.trim()).filter(Boolean);
    return call("create_memory", { filename: one("#filename").value.trim(), content: field.value, tags, memory_type: one("#kind").value });
  }
  if (mode === "append") {
    return call("append_memory", { filename: path, content: field.value, expected_version: started.version });
  }
  return call("update_memory", { filename: path, content: withLineEnds(field.value), expected_version: started.version });
}

async function saveText() {
  note("#failed", "");
  save.disabled = true;
  try {
    if (await findSecrets()) finish(await write());
  } catch (error) {
    if (error.conflict?.theirs) await meetConflict();
    else note("#failed", "bad", `${error.message} Your text is kept here and in this browser.`);
  } finally {
    save.disabled = false;
  }
}

function finish(saved) {
  dropDraft();
  const message = [`Saved as version ${saved.version.slice(0, 8)}`, ...saved.warnings].join(". ");
  announce(addressOf(saved.filename), message, saved.version);
}

save.addEventListener("click", saveText);
// Without this script it would do nothing; a reader's stays as it is.
enableWriting();
field.addEventListener("input", afterTyping);
for (const input of newFields) input.addEventListener("input", keepDraft);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  (one("#save-merged") ?? save).click();
});

// Conflicts

async function meetConflict() {
  const theirs = await call("show_text", { text_lane: "memory", path });
  if (mode === "append") {
    started.version = theirs.version;
    note("#failed", "changed", "The memory changed while you were writing. Your paragraph goes behind the new text: save again.");
    return;
  }
  const compared = await call("compare_texts", { base: started.text, theirs: theirs.content, yours: field.value });
  keepDraft();
  note("#news", "");
  one("#editor").hidden = true;
  document.body.classList.add("conflicting");
  showConflict(one("#conflict"), {
    regions: compared.result,
    base: started,
    theirs,
    choices,
    onChoice: keepDraft,
    checkSecrets: (text) => findSecrets(text, "#merged-secrets"),
    save: (text, isEdited) => saveMerged(text, isEdited, theirs),
    discard: () => {
      dropDraft();
      location.assign(addressOf(path));
    },
    back: () => {
      one("#editor").hidden = false;
      one("#conflict").hidden = true;
      document.body.classList.remove("conflicting");
    },
  });
}

async function saveMerged(text, isEdited, theirs) {
  try {
    finish(await call("update_memory", { filename: path, content: withLineEnds(text), expected_version: theirs.version }));
  } catch (error) {
    if (!error.conflict?.theirs) throw error;
    if (isEdited) {
      // What was written by hand started from the text that is theirs now.
      started = { version: theirs.version, text: theirs.content };
      field.value = text;
    }
    await meetConflict();
  }
}

// News: somebody else changed the memory that is being written

onChange(async (change) => {
  if (!started.version || !one("#conflict").hidden) return;
  if (change && (change.lane !== "memory" || change.path !== path)) return;
  const text = await call("show_text", { text_lane: "memory", path }).catch(() => null);
  if (!text || text.version === started.version) return;
  const look = element("button", "btn tiny", "Compare now");
  look.addEventListener("click", meetConflict);
  const words = "The memory was changed just now by somebody else. Your text is untouched; saving puts both together. ";
  if (mode === "edit") note("#news", "changed", words, look);
  else note("#news", "changed", words);
});

takeUpDraft();
if (field.value) {
  preview();
  findSecrets().catch(() => {});
}
if (one("#conflict").hidden) (one("#filename") ?? field).focus();
