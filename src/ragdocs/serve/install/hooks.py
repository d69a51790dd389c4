"""The hooks of clients: what each runs when a session starts, a prompt is sent, or it compacts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.serve.install import command
from ragdocs.text import jsonc

# By this the hooks of any installation are recognised. A person would not type the first two words.
MARK = "-m ragdocs context --hook"
START_CHARS = 6000
PROMPT_CHARS = 3000
START_SECONDS = 60
PROMPT_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a client, how large the pack for it is, and how long it may take."""

    name: str
    max_chars: int
    seconds: int
    matcher: str = ""


START = Event("SessionStart", START_CHARS, START_SECONDS)
PROMPT = Event("UserPromptSubmit", PROMPT_CHARS, PROMPT_SECONDS)
EVENTS = {
    "claude-code": (
        Event("SessionStart", START_CHARS, START_SECONDS, "startup|resume|clear|compact"),
        PROMPT,
        Event("PreCompact", START_CHARS, PROMPT_SECONDS),
    ),
    "codex": (
        Event("SessionStart", START_CHARS, START_SECONDS, "startup|resume|clear|compact"),
        PROMPT,
    ),
    "gemini": (START, Event("BeforeAgent", PROMPT_CHARS, PROMPT_SECONDS)),
    "cursor": (Event("sessionStart", START_CHARS, START_SECONDS),),
}
# Gemini CLI counts in milliseconds.
MILLISECONDS = {"gemini": 1000}


def items(client: str, python: Sequence[str], project: str) -> dict[str, dict[str, Any]]:
    """Return what is added to the list of each event."""
    added: dict[str, dict[str, Any]] = {}
    for event in EVENTS[client]:
        line = command.hook(python, event.name, event.max_chars, project)
        hook: dict[str, Any] = {"type": "command", "command": line}
        hook["timeout"] = event.seconds * MILLISECONDS.get(client, 1)
        if client == "cursor":
            del hook["type"]
            added[event.name] = hook
            continue
        added[event.name] = {"hooks": [hook]}
        if event.matcher:
            added[event.name] = {"matcher": event.matcher, "hooks": [hook]}
    return added


def put(text: str, client: str, added: dict[str, dict[str, Any]]) -> str:
    """Return the settings with these hooks and no older ones of ours."""
    for event in [event for event, item in _ours(text) if item != added.get(event)]:
        text = _without(text, event, keep=added.get(event))
    if client == "cursor" and jsonc.existing(text, ("version",)) == 0:
        text = jsonc.put(text, ("version",), 1)
    there = {event for event, _ in _ours(text)}
    for event, item in added.items():
        if event not in there:
            text = jsonc.append(text, ("hooks", event), item)
    return text


def take(text: str) -> str:
    """Return the settings without our hooks."""
    for event in dict.fromkeys(event for event, _ in _ours(text)):
        text = _without(text, event)
    return text


def _ours(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the items that run a hook of ours, each with its event."""
    settings = jsonc.loads(text)
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    if hooks is None:
        return
    if not isinstance(hooks, dict):
        raise ParseError("hooks is not an object")
    for event, listed in hooks.items():
        for item in listed if isinstance(listed, list) else ():
            if _is_ours(item):
                yield event, item


def _is_ours(item: Any) -> bool:
    return MARK in json.dumps(item)


def _without(text: str, event: str, keep: dict[str, Any] | None = None) -> str:
    """Take our hooks out of an event; other hooks of the same group stay."""
    listed = jsonc.loads(text)["hooks"][event]
    for position in range(len(listed) - 1, -1, -1):
        item = listed[position]
        if not _is_ours(item) or item == keep:
            continue
        path = ("hooks", event, position)
        group = item.get("hooks", [])
        if all(map(_is_ours, group)):
            text = jsonc.remove(text, path)
            continue
        for inner in range(len(group) - 1, -1, -1):
            if _is_ours(group[inner]):
                text = jsonc.remove(text, (*path, "hooks", inner))
    return text


# --- opencode, whose hooks are a module ---

PLUGIN_MARK = "// Written by `ragdocs install --hooks`; `ragdocs uninstall` removes this file."
_PLUGIN = """\
{mark}
// It gives the model what the project knows: when a session starts, for each prompt, and when a
// session is compacted.
import {{ spawn }} from "node:child_process"

const COMMAND = {command}
const SECONDS = {seconds}

function run(event, chars, prompt, cwd) {{
  return new Promise((resolve) => {{
    const options = ["--hook", event, "--max-chars", String(chars){project}]
    const words = [...COMMAND.slice(1), "context", ...options]
    const child = spawn(COMMAND[0], words, {{ cwd, stdio: ["pipe", "pipe", "ignore"] }})
    const timer = setTimeout(() => child.kill(), SECONDS * 1000)
    let text = ""
    child.stdout.on("data", (part) => (text += part))
    child.on("error", () => resolve(""))
    child.on("close", () => {{
      clearTimeout(timer)
      try {{
        resolve(JSON.parse(text).hookSpecificOutput.additionalContext)
      }} catch {{
        resolve("")
      }}
    }})
    child.stdin.on("error", () => {{}})
    child.stdin.end(JSON.stringify({{ prompt }}))
  }})
}}

export const Ragdocs = async ({{ directory }}) => {{
  const packs = new Map()
  const atStart = (session) => {{
    if (!packs.has(session)) packs.set(session, run("SessionStart", {start_chars}, "", directory))
    return packs.get(session)
  }}
  return {{
    "chat.message": async (input, output) => {{
      const typed = output.parts.find((part) => part.type === "text" && !part.synthetic)
      if (!typed) return
      const pack = await run("UserPromptSubmit", {prompt_chars}, typed.text, directory)
      if (pack) output.parts.push({{ ...typed, id: typed.id + "r", text: pack, synthetic: true }})
    }},
    "experimental.chat.system.transform": async (input, output) => {{
      const pack = await atStart(input.sessionID)
      if (pack) output.system.push(pack)
    }},
    "experimental.session.compacting": async (input) => {{
      // The next turn has a new pack.
      packs.delete(input.sessionID)
    }},
  }}
}}
"""


def plugin(python: Sequence[str], project: str) -> str:
    """Return the module that opencode loads."""
    project_words = ""
    if project:
        project_words = f', "--project", {json.dumps(project)}'
    return _PLUGIN.format(
        mark=PLUGIN_MARK,
        command=json.dumps([*python, "-m", "ragdocs"]),
        seconds=PROMPT_SECONDS,
        project=project_words,
        start_chars=START_CHARS,
        prompt_chars=PROMPT_CHARS,
    )
