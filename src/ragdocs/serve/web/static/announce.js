// What a write tells after the page it leads to has opened: a message, and the way back.

import { call, toast } from "./app.js";

const base = document.querySelector('meta[name="base"]').content;
const slot = "ragdocs.announcement";

/** Return the address of a text. */
export function addressOf(path, lane = "memory") {
  return `${base}/text/${lane}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** Go to a page and say there what was done; `version` names the change that Undo takes back. */
export function announce(address, message, version, back = address) {
  sessionStorage.setItem(slot, JSON.stringify({ message, version, back }));
  location.assign(address);
}

/** Say what the page before this one has left to say. */
export function tellAnnouncement() {
  const left = sessionStorage.getItem(slot);
  if (!left) return;
  sessionStorage.removeItem(slot);
  const { message, version, back } = JSON.parse(left);
  toast(message, version ? () => undo(version, back) : undefined);
}

async function undo(version, back) {
  try {
    const undone = await call("undo_memory_change", { expected_version: version });
    announce(back, `Undone: ${undone.verb}`);
  } catch (error) {
    toast(error.message);
  }
}
