"""A model on loopback that follows a script: search the documentation, remember something, end.

It speaks the four dialects of the agents: Messages (Anthropic), Responses and Chat Completions
(OpenAI), and streamGenerateContent (Gemini). What it is asked is kept, so that one can look what
reached the model. It holds no state: the results of tools in a request say which turn it is.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUERY = "How often are tokens refreshed?"
FACT = "The harbour lights are switched at dusk, because ships arrive then"
SCRIPT = (("search_docs", {"query": QUERY}), ("remember", {"content": FACT}))
ENDING = "All done."
# Claude Code names tools and loads their schemas when asked.
LOADER = "ToolSearch"


@dataclass
class Tool:
    """A tool as an agent offers it; some put those of a server into a namespace."""

    name: str
    namespace: str = ""


@dataclass
class Request:
    """What a model is asked: with which tools, after which results, and in which words."""

    tools: list[Tool]
    results: list[str]
    text: str
    body: dict[str, Any] = field(repr=False)

    def tool(self, name: str) -> Tool | None:
        """Return the tool of ragdocs that has this name, however the agent prefixes it."""
        for tool in self.tools:
            is_of_ragdocs = "ragdocs" in tool.name or "ragdocs" in tool.namespace
            if tool.name.endswith(name) and is_of_ragdocs:
                return tool
        return None

    def names(self, name: str) -> bool:
        """Tell whether a tool is offered, or at least named for loading."""
        return self.tool(name) is not None or f"ragdocs__{name}" in self.text

    @property
    def is_early(self) -> bool:
        """Whether the agent says that a server is not connected yet."""
        return "still connecting" in self.text


Reply = str | tuple[Tool, dict[str, Any]]


def reply_to(request: Request) -> Reply:
    """Return the next step of the script."""
    loader = next((tool for tool in request.tools if tool.name == LOADER), None)
    ours = [result for result in request.results if "ragdocs__" not in result]
    done = len(ours)
    if not request.tools or done >= len(SCRIPT):
        return ENDING
    name, arguments = SCRIPT[done]
    tool = request.tool(name)
    if tool is not None:
        return tool, dict(arguments)
    may_be_loaded = request.names(name) or request.is_early
    if loader is not None and may_be_loaded and len(request.results) == done:
        names = []
        for each, _ in SCRIPT:
            names += re.findall(rf"mcp__\w*ragdocs__{each}\b", request.text)[:1]
        query = f"select:{','.join(names)}"
        if not names:
            # The names are not known before the server is connected; searching waits for it.
            query = "+ragdocs search_docs remember"
        return loader, {"query": query, "max_results": 20}
    return ENDING


# --- the dialects: how a request is read and a reply is written ---


class Messages:
    """Anthropic's Messages."""

    @staticmethod
    def read(body: dict[str, Any]) -> Request:
        results = []
        for message in body.get("messages", []):
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                if part.get("type") == "tool_result":
                    results.append(json.dumps(part.get("content")))
        tools = [Tool(tool["name"]) for tool in body.get("tools", []) if "name" in tool]
        return Request(tools, results, json.dumps(body, ensure_ascii=False), body)

    @staticmethod
    def write(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        message: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        yield "message_start", {"type": "message_start", "message": message}
        if isinstance(reply, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": reply}
            reason = "end_turn"
        else:
            tool, arguments = reply
            block = {"type": "tool_use", "id": f"toolu_{id(reply)}", "name": tool.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            reason = "tool_use"
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        yield "content_block_start", start
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": reason, "stop_sequence": None}
        yield (
            "message_delta",
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        )
        yield "message_stop", {"type": "message_stop"}


class Responses:
    """OpenAI's Responses."""

    @staticmethod
    def read(body: dict[str, Any]) -> Request:
        tools = []
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                tools += [Tool(each["name"], tool["name"]) for each in tool["tools"]]
            elif "name" in tool:
                tools.append(Tool(tool["name"]))
        results = []
        for item in body.get("input", []):
            if isinstance(item, dict) and item.get("type") == "function_call_output":
                results.append(json.dumps(item.get("output")))
        return Request(tools, results, json.dumps(body, ensure_ascii=False), body)

    @staticmethod
    def write(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        del body
        yield "response.created", {"type": "response.created", "response": {"id": "resp_1"}}
        item: dict[str, Any]
        if isinstance(reply, str):
            content = [{"type": "output_text", "text": reply, "annotations": []}]
            item = {"type": "message", "role": "assistant", "id": "msg_1", "content": content}
        else:
            tool, arguments = reply
            item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{id(reply)}"}
            item |= {"name": tool.name, "arguments": json.dumps(arguments)}
            if tool.namespace:
                item["namespace"] = tool.namespace
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield "response.output_item.done", done
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": "resp_1", "status": "completed", "output": [item], "usage": usage}
        yield "response.completed", {"type": "response.completed", "response": response}


class Chat:
    """OpenAI's Chat Completions."""

    @staticmethod
    def read(body: dict[str, Any]) -> Request:
        tools = [Tool(tool["function"]["name"]) for tool in body.get("tools", [])]
        results = []
        for message in body.get("messages", []):
            if message.get("role") == "tool":
                results.append(json.dumps(message.get("content")))
        return Request(tools, results, json.dumps(body, ensure_ascii=False), body)

    @staticmethod
    def write(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1}
        head["model"] = body.get("model", "scripted")
        reason = "stop"
        delta: dict[str, Any] = {"role": "assistant", "content": reply}
        if not isinstance(reply, str):
            tool, arguments = reply
            function = {"name": tool.name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call_{id(reply)}", "type": "function", "function": function}
            delta = {"role": "assistant", "content": None, "tool_calls": [call]}
            reason = "tool_calls"
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        end = {"index": 0, "delta": {}, "finish_reason": reason}
        yield "", {**head, "choices": [end], "usage": usage}
        yield "", "[DONE]"


class Gemini:
    """Gemini's generateContent."""

    @staticmethod
    def read(body: dict[str, Any]) -> Request:
        tools = []
        for group in body.get("tools", []):
            tools += [Tool(tool["name"]) for tool in group.get("functionDeclarations", [])]
        results = []
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    results.append(json.dumps(part["functionResponse"]))
        return Request(tools, results, json.dumps(body, ensure_ascii=False), body)

    @staticmethod
    def write(reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        del body
        part: dict[str, Any] = {"text": reply}
        if not isinstance(reply, str):
            tool, arguments = reply
            part = {"functionCall": {"name": tool.name, "args": arguments}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        yield "", {"candidates": [{**candidate, "index": 0}], "usageMetadata": usage}


DIALECTS = {
    "/messages": Messages,
    "/responses": Responses,
    "/chat/completions": Chat,
    "streamGenerateContent": Gemini,
    "generateContent": Gemini,
}


class Model:
    """The server; `requests` is what it was asked since the last `clear`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.paths: list[str] = []
        model = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(length)
                model.answer(self, data)

            def do_GET(self) -> None:
                model.paths.append(self.path)
                send(self, 200, "application/json", b'{"data": [], "models": []}')

            def do_HEAD(self) -> None:
                send(self, 200, "application/json", b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def clear(self) -> None:
        """Forget what was asked."""
        self.requests.clear()
        self.paths.clear()

    def answer(self, exchange: BaseHTTPRequestHandler, data: bytes) -> None:
        """Answer one request in its dialect."""
        path = exchange.path.partition("?")[0]
        self.paths.append(exchange.path)
        dialect: Any = None
        for ending, candidate in DIALECTS.items():
            if path.endswith(ending):
                dialect = candidate
        if dialect is None:
            answer = b'{"input_tokens": 1, "totalTokens": 1}'
            send(exchange, 200, "application/json", answer)
            return
        body = json.loads(data)
        request = dialect.read(body)
        self.requests.append(request)
        reply = reply_to(request)
        events = list(dialect.write(reply, body))
        is_stream = body.get("stream", False) or path.endswith("streamGenerateContent")
        if is_stream:
            lines = []
            for name, event in events:
                if name:
                    lines.append(f"event: {name}\n")
                text = event if isinstance(event, str) else json.dumps(event)
                lines.append(f"data: {text}\n\n")
            send(exchange, 200, "text/event-stream", "".join(lines).encode())
            return
        send(exchange, 200, "application/json", json.dumps(whole(dialect, reply, events)).encode())


def whole(dialect: Any, reply: Reply, events: list[tuple[str, Any]]) -> Any:
    """Return the answer to a request that wants no stream; agents ask such for titles only."""
    text = reply if isinstance(reply, str) else ENDING
    if dialect is Messages:
        message: dict[str, Any] = events[0][1]["message"]
        return {
            **message,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
        }
    if dialect is Chat:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**events[-2][1], "object": "chat.completion", "choices": [choice]}
    if dialect is Gemini:
        return events[0][1]
    return events[-1][1]["response"]


def send(exchange: BaseHTTPRequestHandler, code: int, kind: str, data: bytes) -> None:
    """Send a whole answer."""
    exchange.send_response(code)
    exchange.send_header("Content-Type", kind)
    exchange.send_header("Content-Length", str(len(data)))
    exchange.end_headers()
    exchange.wfile.write(data)
