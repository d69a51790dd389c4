// Tidying up: merge, skip, remove, say which text is meant; each with a way back.

import { call, enableWriting, key, onChange, toast } from "./app.js";

const base = document.querySelector('meta[name="base"]').content;
const SKIPPED = "ragdocs.skipped";
const MOST_SKIPPED = 500;
const suggestions = () => [...document.querySelectorAll(".suggestion")].filter((each) => !each.hidden);
// What takes the last actions back, the latest at the end.
const undos = [];
// When this page changed something itself; the server tells it of that too.
let ownChangeAt = 0;

/** Put a line with a way back in the place of a suggestion, and of others that went with it. */
function done(suggestion, message, takeBack, others = []) {
  const isRow = suggestion.matches("tr");
  const bar = document.createElement(isRow ? "tr" : "div");
  const line = document.createElement(isRow ? "td" : "span");
  if (isRow) line.colSpan = 9;
  const text = document.createElement("span");
  text.textContent = `${message} `;
  const button = document.createElement("button");
  button.className = "btn tiny";
  button.type = "button";
  button.textContent = "Undo";
  line.append(text, button);
  line.className = "done";
  bar.append(line);
  const next = suggestions().slice(suggestions().indexOf(suggestion) + 1).find((each) => !others.includes(each));
  suggestion.before(bar);
  show([suggestion, ...others], false);
  const undo = async () => {
    ownChangeAt = Date.now();
    try {
      await takeBack();
      ownChangeAt = Date.now();
    } catch (error) {
      toast(error.message);
      return;
    }
    const position = undos.indexOf(undo);
    if (position >= 0) undos.splice(position, 1);
    bar.remove();
    show([suggestion, ...others], true);
    suggestion.focus();
    toast("Taken back");
  };
  button.addEventListener("click", undo);
  undos.push(undo);
  toast(message, undo);
  (next ?? button).focus();
}

function show(rows, isShown) {
  for (const row of rows) {
    row.hidden = !isShown;
    recount(isShown ? 1 : -1, row);
  }
}

function neighbour(suggestion, by) {
  const all = suggestions();
  return all[all.indexOf(suggestion) + by];
}

/** Keep the numbers beside the page and in the bar right. */
function recount(by, suggestion) {
  const section = suggestion.closest("section.sec").id;
  const places = [
    document.querySelector(`.contents a[href="#${section}"] b`),
    document.querySelector(".nav [aria-current] i"),
  ];
  for (const place of places) {
    if (place) place.textContent = String(Number(place.textContent) + by);
  }
}

function complain(suggestion, message) {
  const note = suggestion.querySelector("[role=alert]");
  if (!note) return toast(message);
  note.hidden = false;
  note.querySelector("span").textContent = message;
  return undefined;
}

const acts = {
  async merge(suggestion, button) {
    const { target } = button.dataset;
    const sides = [...suggestion.querySelectorAll("[data-path]")];
    let answer;
    try {
      answer = await call("merge_memories", {
        source_files: sides.map((side) => side.dataset.path),
        source_versions: sides.map((side) => side.dataset.version),
        target_file: target,
        summary_content: suggestion.querySelector("textarea").value,
      });
    } catch (error) {
      if (!error.conflict) throw error;
      await compareAgain(suggestion, error.message);
      return;
    }
    const count = answer.merged.length;
    done(suggestion, `Merged ${count} memories into ${target}.`, () =>
      call("undo_memory_change", { expected_version: answer.version }),
    );
  },

  async compare(suggestion, button) {
    const names = new URL(button.href).searchParams.getAll("compare");
    await compare(suggestion, names);
    button.parentNode.remove();
    suggestion.querySelector("[data-act=merge]")?.focus();
  },

  async edit(suggestion) {
    const field = suggestion.querySelector("textarea");
    showField(suggestion, field.hidden);
    if (!field.hidden) field.focus();
  },

  async skip(suggestion) {
    const name = suggestion.dataset.key;
    remember([...skipped(), name]);
    done(suggestion, "Skipped until one of them changes.", async () => {
      remember(skipped().filter((each) => each !== name));
    });
  },

  async remove(suggestion, button) {
    const { path, version } = button.dataset;
    await call("delete_memory", { filename: path, expected_version: version || null });
    done(suggestion, `Removed ${path}.`, () =>
      call("undo_memory_change", { expected_version: version }),
    );
  },

  async holds(suggestion, button) {
    const { path, other, version } = button.dataset;
    const answer = await call("append_memory", {
      filename: path,
      content: `supersedes:: [[${other.replace(/\.md$/, "")}]]`,
      expected_version: version || null,
    });
    done(suggestion, `${path} now supersedes ${other}.`, () =>
      call("undo_memory_change", { expected_version: answer.version }),
    );
  },

  async verify(suggestion, button) {
    const { path } = button.dataset;
    const answer = await call("verify_memory", { filename: path });
    if (answer.links.length) {
      toast(`Still to correct: ${answer.links.join("; ")}`);
      return;
    }
    show(suggestions().filter((row) => row.dataset.memory === path), false);
    toast(`Marked as still true: ${path}`);
  },

  async relink(suggestion, button) {
    const { path, version } = button.dataset;
    const answer = await call("update_links", { filename: path, expected_version: version || null });
    const words = answer.links.map(([, to]) => to).join(", ");
    // All links of the memory that moved are updated at once.
    const others = suggestions().filter(
      (row) => row !== suggestion && row.dataset.memory === path && row.querySelector("[data-act=relink]"),
    );
    done(
      suggestion,
      `${path} now links to ${words}.`,
      () => call("undo_memory_change", { expected_version: answer.version }),
      others,
    );
  },

  async mean(suggestion, button) {
    const { path, link, meant } = button.dataset;
    const answer = await call("edit_memory", {
      filename: path,
      find: `[[${link}]]`,
      text: `[[${meant}]]`,
      mode: "replace_all",
    });
    done(suggestion, `${path} now links to ${meant}.`, () =>
      call("undo_memory_change", { expected_version: answer.version }),
    );
  },
};

function showField(suggestion, isOpen) {
  suggestion.querySelector("textarea").hidden = !isOpen;
  suggestion.querySelector(".proposal").hidden = isOpen;
  suggestion.querySelector("[data-act=edit]").setAttribute("aria-pressed", String(isOpen));
}

/** Put memories side by side as they are now, with a draft. */
async function compare(suggestion, names) {
  const words = new URLSearchParams(names.map((name) => ["compare", name]));
  const response = await fetch(`${base}/tidy-fragment?${words}`);
  if (!response.ok) throw new Error("the server could not compare them");
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  suggestion.querySelector(".compared")?.remove();
  suggestion.append(parsed.querySelector(".compared"));
  enableWriting();
}

/** Show what others changed meanwhile; a draft that was edited stays as it is. */
async function compareAgain(suggestion, message) {
  const before = suggestion.querySelector("textarea");
  const sides = [...suggestion.querySelectorAll("[data-path]")];
  const versions = new Map(sides.map(({ dataset }) => [dataset.path, dataset.version]));
  await compare(suggestion, [...versions.keys()]);
  for (const side of suggestion.querySelectorAll("[data-path]")) {
    if (versions.get(side.dataset.path) === side.dataset.version) continue;
    const flag = document.createElement("span");
    flag.className = "flag changed";
    flag.textContent = "changed since you looked";
    side.querySelector("header").append(flag);
  }
  const field = suggestion.querySelector("textarea");
  let next = "The draft has the new text. Look at it and merge again";
  if (field && before.value !== before.defaultValue) {
    field.value = before.value;
    showField(suggestion, true);
    next = "Your draft is as you left it: add what is new and merge again";
  }
  complain(suggestion, `${message.split(". ")[0]}. Nothing was merged. ${next}.`);
}

async function act(suggestion, button) {
  button.disabled = true;
  try {
    await acts[button.dataset.act](suggestion, button);
  } catch (error) {
    complain(suggestion, error.message);
  }
  button.disabled = false;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act(button.closest(".suggestion"), button);
});

// Suggestions that were skipped stay away until one of their memories changes

function skipped() {
  try {
    return JSON.parse(localStorage.getItem(SKIPPED) ?? "[]");
  } catch {
    return [];
  }
}

function remember(names) {
  localStorage.setItem(SKIPPED, JSON.stringify(names.slice(-MOST_SKIPPED)));
}

const names = new Set(skipped());
const isSkipped = (suggestion) => names.has(suggestion.dataset.key);

function hideSkipped(part) {
  for (const suggestion of [...part.querySelectorAll(".suggestion[data-key]")].filter(isSkipped)) {
    suggestion.hidden = true;
    recount(-1, suggestion);
  }
}
hideSkipped(document);

// Keys

function step(by) {
  const all = suggestions();
  if (!all.length) return false;
  const position = all.indexOf(document.activeElement.closest(".suggestion"));
  const next = all[Math.min(all.length - 1, Math.max(0, position + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function press(...names) {
  const current = document.activeElement.closest(".suggestion") ?? suggestions()[0];
  const [button] = names.map((name) => current?.querySelector(`[data-act="${name}"]`)).filter(Boolean);
  if (!button || button.disabled) return false;
  act(current, button);
  return true;
}

key("ArrowDown", "go to the next suggestion", () => step(1));
key("ArrowUp", "go to the previous suggestion", () => step(-1));
key("m", "compare, then merge", () => press("merge", "compare"));
key("s", "skip", () => press("skip"));
key("u", "undo the last action", () => (undos.length ? void undos.at(-1)() : false));

// Only what others do is news here.
const echoMilliseconds = 5000;
let isTold = false;
onChange(() => {
  const isEcho = Date.now() - ownChangeAt < echoMilliseconds;
  if (isTold || isEcho || undos.length) return;
  isTold = true;
  toast("A memory changed. Reload to see new suggestions.");
});

// The rest of the suggestions is there a little later. A reload would take a click back that is being
// followed, so only the sections that were missing are filled.
const againMilliseconds = 2000;
const isMissing = (part) => part.querySelector("[data-again]") !== null;

async function lookAgain() {
  const response = await fetch(location.href).catch(() => null);
  if (!response?.ok) return;
  const now = new DOMParser().parseFromString(await response.text(), "text/html");
  updateTotal(now);
  for (const section of [...document.querySelectorAll("section.sec")].filter(isMissing)) {
    const filled = now.getElementById(section.id);
    if (filled && !isMissing(filled)) fill(section, filled, now);
  }
  enableWriting();
  if (isMissing(document)) setTimeout(lookAgain, againMilliseconds);
}

function fill(section, filled, now) {
  const link = `.contents a[href$="#${section.id}"]`;
  section.replaceWith(filled);
  document.querySelector(link)?.replaceWith(now.querySelector(link));
  hideSkipped(filled);
}

/** Take over the numbers of the whole page, unless actions here have changed them since. */
function updateTotal(now) {
  if (undos.length) return;
  const skippedBefore = [...document.querySelectorAll(".suggestion[hidden]")].filter(isSkipped).length;
  for (const place of [".tidy header p", ".nav [aria-current]"]) {
    document.querySelector(place).replaceChildren(...now.querySelector(place).childNodes);
  }
  const total = document.querySelector(".nav [aria-current] i");
  if (total) total.textContent = String(Number(total.textContent) - skippedBefore);
}
if (isMissing(document)) setTimeout(lookAgain, againMilliseconds);

enableWriting();
