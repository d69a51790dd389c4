// Written by `ragdocs install --hooks`; `ragdocs uninstall` removes this file.
// It gives the model what the project knows: when a session starts, for each prompt, and when a
// session is compacted.
import { spawn } from "node:child_process"

const COMMAND = ["/path/to/python", "-E", "-P", "-m", "ragdocs"]
const SECONDS = 15

function run(event, chars, prompt, cwd) {
  return new Promise((resolve) => {
    const options = ["--hook", event, "--max-chars", String(chars), "--project", "/path/to/your-project"]
    const words = [...COMMAND.slice(1), "context", ...options]
    const child = spawn(COMMAND[0], words, { cwd, stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), SECONDS * 1000)
    let text = ""
    child.stdout.on("data", (part) => (text += part))
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(text).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ prompt }))
  })
}

export const Ragdocs = async ({ directory }) => {
  const packs = new Map()
  const atStart = (session) => {
    if (!packs.has(session)) packs.set(session, run("SessionStart", 6000, "", directory))
    return packs.get(session)
  }
  return {
    "chat.message": async (input, output) => {
      const typed = output.parts.find((part) => part.type === "text" && !part.synthetic)
      if (!typed) return
      const pack = await run("UserPromptSubmit", 3000, typed.text, directory)
      if (pack) output.parts.push({ ...typed, id: typed.id + "r", text: pack, synthetic: true })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const pack = await atStart(input.sessionID)
      if (pack) output.system.push(pack)
    },
    "experimental.session.compacting": async (input) => {
      // The next turn has a new pack.
      packs.delete(input.sessionID)
    },
  }
}
