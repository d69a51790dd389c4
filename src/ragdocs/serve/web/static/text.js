// The page of one text: marks the line of its address, changes it, and tells when others did.

import { call, enableWriting, key, onChange, toast } from "./app.js";
import { addressOf, announce, tellAnnouncement } from "./announce.js";

const article = document.querySelector(".text-page");
const { lane, path, version, status } = article.dataset;
const own = addressOf(path, lane);

tellAnnouncement();

// The passage that the address names, such as #L12 or #L12-15

function markPassage() {
  for (const marked of document.querySelectorAll(".passage")) marked.classList.remove("passage");
  const lines = location.hash.match(/^#L(\d+)(?:-L?(\d+))?$/);
  if (!lines) return;
  const first = Number(lines[1]);
  const last = Number(lines[2] ?? lines[1]);
  const passages = innermost(first, last);
  for (const passage of passages) passage.classList.add("passage");
  passages[0]?.scrollIntoView({ block: "center" });
}

/** Return the smallest blocks made of these lines; of a line between blocks, the block before. */
function innermost(first, last) {
  const blocks = [...document.querySelectorAll("[data-lines]")];
  const rangeOf = (block) => block.dataset.lines.split("-").map(Number);
  const touching = blocks.filter((block) => {
    const [from, to] = rangeOf(block);
    return from <= last && to >= first;
  });
  const smallest = touching.filter((block) => !touching.some((other) => block !== other && block.contains(other)));
  if (smallest.length) return smallest;
  const before = blocks.filter((block) => rangeOf(block)[0] <= first);
  return before.slice(-1);
}

addEventListener("hashchange", markPassage);
markPassage();

// Keys

const press = (id) => () => document.querySelector(id)?.click();
if (document.querySelector("#edit")) {
  key("e", "edit", press("#edit"));
  key("a", "append", press("#append"));
}
const history = document.querySelector("#history");
if (history) {
  key("h", "history", () => {
    history.scrollIntoView();
    history.querySelector("[aria-current], .changes a")?.focus();
  });
}

// Changes

function on(selector, act) {
  for (const button of document.querySelectorAll(selector)) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await act(button);
      } catch (error) {
        toast(error.status === 409 ? `${error.message} Reload to see the text there now.` : error.message);
      }
      button.disabled = false;
    });
  }
}

on("#archive", async () => {
  const next = status === "archived" ? "active" : "archived";
  const fields = { status: next };
  const saved = await call("edit_memory", { filename: path, fields, expected_version: version });
  announce(own, next === "archived" ? "Archived" : "No longer archived", saved.version);
});

on("#verify", async () => {
  const answer = await call("verify_memory", { filename: path });
  toast(`Marked as still true: ${answer.verified}`);
  if (!answer.links.length) document.querySelector("#drifted").hidden = true;
});

on("#relink", async () => {
  const saved = await call("update_links", { filename: path, expected_version: version });
  announce(own, "Links updated", saved.version);
});

on("#delete", async () => {
  await call("delete_memory", { filename: path, expected_version: version });
  announce(own, "Moved to the trash", version);
});

on("[data-restore]", async (button) => {
  const saved = await call("restore_memory", { filename: path, version: button.dataset.restore });
  announce(own, `Restored version ${button.dataset.restore.slice(0, 8)}`, saved.version);
});

const renameBox = document.querySelector("#rename-box");
document.querySelector("#rename")?.addEventListener("click", () => {
  renameBox.showModal();
  document.querySelector("#new-name").select();
});
renameBox?.addEventListener("close", async () => {
  const name = document.querySelector("#new-name").value.trim();
  if (renameBox.returnValue !== "rename" || !name || name === path) return;
  try {
    const renamed = await call("rename_memory", { filename: path, new_name: name, expected_version: version });
    const links = renamed.links === 1 ? "1 link" : `${renamed.links} links`;
    announce(addressOf(renamed.filename), `Renamed, ${links} rewritten`, renamed.version, own);
  } catch (error) {
    toast(error.message);
  }
});

// Without this script they would do nothing.
enableWriting();

// News: somebody else changed it

onChange(async (change) => {
  if (!version || (change && (change.lane !== lane || change.path !== path))) return;
  let message = "It was removed just now.";
  try {
    const text = await call("show_text", { text_lane: lane, path });
    if (text.version === version) return;
    message = "It was changed just now.";
  } catch (error) {
    if (error.status !== 404) return;
  }
  const note = document.createElement("p");
  note.className = "note changed";
  const words = document.createElement("span");
  words.textContent = `${message} You still see the text as it was. `;
  const reload = document.createElement("a");
  reload.href = location.href;
  reload.textContent = "Reload";
  reload.addEventListener("click", () => location.reload());
  words.append(reload);
  note.append(words);
  document.querySelector("#news").replaceChildren(note);
});
