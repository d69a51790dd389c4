// A conflict: base, theirs and yours side by side, a choice for each change, and the merged text.

import { key } from "./app.js";

const LABELS = { merged: "merged", both: "both, one after the other", theirs: "theirs", yours: "yours", base: "base" };
const REMARKS = { theirs: "only they changed it", yours: "only you changed it", both: "both changed it alike" };
const OPTIONS = {
  overlap: ["merged", "theirs", "yours", "both", "base"],
  theirs: ["theirs", "base"],
  yours: ["yours", "base"],
  both: ["theirs", "base"],
};

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const endLine = (text) => (!text || text.endsWith("\n") ? text : `${text}\n`);

function textOf(region, choice) {
  if (choice === "both") return endLine(region.theirs) + region.yours;
  return region[choice];
}

/** Return what can be taken; a proposal that is both texts in turn is not offered twice. */
function optionsOf(region) {
  const options = OPTIONS[region.origin];
  if (region.origin !== "overlap") return options;
  if (region.merged === textOf(region, "both")) return ["both", "theirs", "yours", "base"];
  return options;
}

/** Show a conflict; `choices` are kept by what each change says, so they survive the next one. */
export function showConflict(box, conflict) {
  const { regions, base, theirs, choices } = conflict;
  const changes = regions.filter((region) => region.origin !== "same");
  let current = 0;
  let editing = false;

  const idOf = (region) => JSON.stringify([region.base, region.theirs, region.yours]);
  const choiceOf = (region) => choices[idOf(region)] ?? optionsOf(region)[0];
  const isChosen = (region) => idOf(region) in choices;
  const mergedText = () => regions.map((region) => (region.origin === "same" ? region.base : textOf(region, choiceOf(region)))).join("");

  function choose(region, choice) {
    choices[idOf(region)] = choice;
    conflict.onChoice();
    drawMerged();
  }

  // The sides

  function side(label, text, pieces, sameAsBase) {
    const made = element("div", "side", element("span", "side-label", label));
    if (sameAsBase && label !== "Base") {
      made.classList.add("same");
      made.append(element("span", "muted", "as in the base"));
    } else if (!text) {
      made.classList.add("same");
      made.append(element("span", "muted", "not there"));
    } else if (pieces?.length) {
      for (const piece of pieces) made.append(piece.added ? element("ins", "", piece.text) : piece.text);
    } else made.append(text);
    return made;
  }

  function hunk(region, number) {
    const where = region.heading ? `${region.heading}, line ${region.line}` : `Line ${region.line}`;
    const remark = region.origin === "overlap"
      ? element("span", "flag changed", "both changed it: check")
      : element("span", "small muted", REMARKS[region.origin]);
    const head = element("div", "hunk-head", element("h2", "", where), remark);
    const three = element("div", "three",
      side("Base", region.base, null, false),
      side("Theirs", region.theirs, region.theirs_pieces, region.theirs === region.base),
      side("Yours", region.yours, region.yours_pieces, region.yours === region.base));
    const pick = element("fieldset", "pick", element("legend", "sr", `What to keep of “${where}”`));
    for (const option of optionsOf(region)) {
      const radio = element("input", "");
      radio.type = "radio";
      radio.name = `hunk-${number}`;
      radio.value = option;
      radio.checked = option === choiceOf(region);
      radio.addEventListener("change", () => choose(region, option));
      let label = region.origin === "both" && option === "theirs" ? "both" : LABELS[option];
      if (option === "base" && !region.base) label = "leave it out";
      pick.append(element("label", "", radio, label));
    }
    const made = element("section", "hunk", head, three, pick);
    made.addEventListener("focusin", () => mark(number));
    return made;
  }

  function mark(number) {
    current = number;
    [...box.querySelectorAll(".hunk")].forEach((made, at) => made.classList.toggle("current", at === number));
  }

  function step(by) {
    const hunks = box.querySelectorAll(".hunk");
    const next = Math.min(Math.max(current + by, 0), hunks.length - 1);
    hunks[next]?.querySelector("input:checked")?.focus();
    hunks[next]?.scrollIntoView({ block: "nearest" });
  }

  function take(choice) {
    const hunkNow = box.querySelectorAll(".hunk")[current];
    hunkNow?.querySelector(`input[value="${choice}"]`)?.click();
  }

  // The merged text

  function drawMerged() {
    const blocks = regions.map((region) => {
      const origin = region.origin === "same" ? "" : choiceOf(region);
      const toCheck = region.origin === "overlap" && !isChosen(region);
      const text = origin ? textOf(region, origin) : region.base;
      if (!text) return "";
      const block = element("p", toCheck ? "check" : origin && "taken", element("b", "", toCheck ? "check" : origin), element("span", "", text));
      return block;
    });
    box.querySelector("#blocks").replaceChildren(...blocks.filter(Boolean));
    const unchecked = changes.filter((region) => region.origin === "overlap" && !isChosen(region)).length;
    box.querySelector("#to-check").textContent = unchecked ? `${unchecked} to check` : "nothing left to check";
  }

  function editText() {
    const area = box.querySelector("#merged-text");
    if (!editing) area.value = mergedText();
    editing = true;
    area.hidden = false;
    box.querySelector("#blocks").hidden = true;
    box.querySelector("#edit-merged").hidden = true;
    area.focus();
  }

  async function save() {
    const button = box.querySelector("#save-merged");
    const failed = box.querySelector("#merge-failed");
    const text = editing ? box.querySelector("#merged-text").value : mergedText();
    button.disabled = true;
    failed.replaceChildren();
    try {
      if (await conflict.checkSecrets(text)) await conflict.save(text, editing);
      else button.textContent = "Save without the secrets";
    } catch (error) {
      failed.append(element("p", "note bad", element("span", "", `${error.message} Your text is kept here and in this browser.`)));
    }
    button.disabled = false;
  }

  function button(className, id, label, act) {
    const made = element("button", className, label);
    made.id = id;
    made.addEventListener("click", act);
    return made;
  }

  function place(name, id, className = "") {
    const made = element(name, className);
    made.id = id;
    return made;
  }

  const column = (name, about) => element("div", "", element("b", "", name), element("span", "", about));
  const fit = changes.filter((region) => region.origin !== "overlap").length;
  const area = place("textarea", "merged-text");
  area.hidden = true;
  area.rows = 24;
  area.setAttribute("aria-label", "Merged text");
  const toCheck = place("span", "to-check", "small muted push");
  const failed = place("div", "merge-failed");
  failed.setAttribute("role", "alert");
  const warning = element("div", "", element("b", "", "This memory changed while you were editing. "), `Version ${theirs.version.slice(0, 8)} was saved ${theirs.modified_age}. Your text is not saved yet; it is kept in this browser, and their version is kept in history. Nothing is lost whichever you choose.`);
  const notice = element("div", "note changed", warning);
  notice.setAttribute("role", "status");

  box.replaceChildren(
    notice,
    element("div", "conflict-columns",
      element("div", "",
        element("p", "small muted", `${changes.length} ${changes.length === 1 ? "change" : "changes"}: ${fit} fit together, ${changes.length - fit} ${changes.length - fit === 1 ? "needs" : "need"} you.`),
        element("div", "three conflict-heads", column("Base", `${base.version.slice(0, 8)}, what you both started from`), column("Theirs", `${theirs.version.slice(0, 8)}, ${theirs.modified_age}`), column("Yours", "not saved, kept in this browser")),
        ...changes.map(hunk)),
      element("aside", "merged",
        element("div", "sec-head", element("h2", "", "Merged proposal"), toCheck),
        place("div", "blocks", "blocks"),
        area,
        place("div", "merged-secrets"),
        failed,
        element("div", "row acts",
          button("btn main", "save-merged", "Save merged text", save),
          button("btn", "edit-merged", "Edit text", editText),
          button("btn quiet", "back-to-editor", "Back", conflict.back),
          button("btn quiet danger push", "discard-mine", "Discard mine", conflict.discard)),
        element("p", "small muted", `Saved only if the memory is still at version ${theirs.version.slice(0, 8)}. If somebody writes again before you do, you come back here with your choices.`))));
  box.hidden = false;
  drawMerged();
  mark(0);

  const ifOpen = (act) => () => (box.hidden ? false : act());
  key("ArrowUp", "previous change", ifOpen(() => step(-1)));
  key("ArrowDown", "next change", ifOpen(() => step(1)));
  key("1", "take base", ifOpen(() => take("base")));
  key("2", "take theirs", ifOpen(() => take("theirs")));
  key("3", "take yours", ifOpen(() => take("yours")));
  key("m", "take merged", ifOpen(() => take(optionsOf(changes[current])[0])));
}
