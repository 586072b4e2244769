"""The agent's side of the OpenSentience runtime protocol v1 (seed 004) with the standard library only: frames, session,
calls on threads, streams, cancellation, heartbeats. What it is told is Core's; what it tells holds no secret."""

import hashlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

MAX_FRAME_BYTES = 4 * 1024 * 1024
MAX_INFLIGHT = 256
MAX_THREADS = 16
MAX_STREAM_MESSAGES = 2048
REPLY_SECONDS = 10
DRAIN_SECONDS = 10
REMEMBERED_CALLS = 2048


class ToolError(Exception):
    """What Core may know of a failure."""

    def __init__(self, code, message, retryable=False, details=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, "retryable": retryable, "where": "agent.tool"}
        if details:
            self.error["details"] = details


class Canceled(Exception):
    """Raised inside a tool once Core wants no more of it."""


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def error(code, message, retryable=False):
    return {"code": code, "message": message, "retryable": retryable, "where": "agent.runtime"}


def matches(schema, value):
    """The keywords that this agent's schemas use; None when valid, else the path that is not."""
    kinds = {"string": str, "integer": int, "object": dict, "array": list, "boolean": bool}
    kind = kinds[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return ""
    if kind is dict:
        properties = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", [])):
            return ""
        for name, member in value.items():
            if name not in properties:
                if schema.get("additionalProperties", True) is False:
                    return ""
                continue
            fault = matches(properties[name], member)
            if fault is not None:
                return f"/{name}{fault}"
    if kind is list:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1000):
            return ""
        for index, item in enumerate(value):
            fault = matches(schema["items"], item)
            if fault is not None:
                return f"/{index}{fault}"
    if kind is str and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 20000):
        return ""
    if kind is int and not schema.get("minimum", -(2**53)) <= value <= schema.get("maximum", 2**53):
        return ""
    return None


class Call:
    """What a tool sees of its call."""

    def __init__(self, agent, message):
        payload = message["payload"]
        self.agent = agent
        self.id = payload["call_id"]
        self.idempotency_key = payload.get("idempotency_key")
        self.echo = echo_of(message)
        self.timeout_ms = payload.get("timeout_ms")
        self.stop = threading.Event()
        self.stop_code = "tool.canceled"
        self.future = None
        self.timer = None
        self.seq = 0

    def check(self):
        if self.stop.is_set():
            raise Canceled()

    def sleep(self, seconds):
        self.stop.wait(seconds)
        self.check()

    def status(self, text):
        if self.seq >= MAX_STREAM_MESSAGES or not isinstance(text, str):
            return
        payload = {"call_id": self.id, "seq": self.seq + 1, "channel": "status", "data": {"text": text}}
        try:
            self.agent.send("agent.tool.stream", payload, self.echo)
            self.seq += 1
        except ToolError:
            pass  # What cannot be shown is left out: the tool goes on.


def stopped(call):
    if call.stop_code == "tool.timeout":
        late = error("tool.timeout", "The call took longer than permitted.", True)
        return {"status": "failed", "error": late}
    return {"status": "canceled", "error": error("tool.canceled", "The call was canceled.")}


def echo_of(message):
    names = ("request_id", "correlation_id", "causation_id")
    return {name: message[name] for name in names if isinstance(message.get(name), str)}


class Agent:
    def __init__(self, agent_id, version, tools):
        self.id = agent_id
        self.version = version
        # Out of the environment at once: neither children nor dumps shall have the token.
        self.address = os.environ.pop("OPENSENTIENCE_SOCKET", None)
        self.token = os.environ.pop("OPENSENTIENCE_SESSION_TOKEN", None)
        self.tools = {f"{agent_id}/{one['name']}": one for one in tools}
        self.lock = threading.Lock()
        self.book = threading.Lock()
        self.calls = {}
        self.ended = {}
        self.draining = False
        self.session_id = ""
        self.max_frame = MAX_FRAME_BYTES
        self.started = time.monotonic()
        self.pool = ThreadPoolExecutor(MAX_THREADS)
        self.closed = threading.Event()

    def run(self):
        """Serves until the connection ends; the exit code of the process."""
        if not self.address or not self.token:
            print("OPENSENTIENCE_SOCKET and OPENSENTIENCE_SESSION_TOKEN are not set.", file=sys.stderr)
            return 1
        self.socket = self.connect()
        self.socket.settimeout(REPLY_SECONDS)
        self.hello()
        welcome = self.receive()
        if welcome is None or "error" in welcome or welcome["payload"].get("accepted_version") != 1:
            code = ((welcome or {}).get("error") or {}).get("code", "connection_lost")
            print(f"Core refused: {code}", file=sys.stderr)
            return 1
        self.socket.settimeout(None)
        self.session_id = welcome["payload"]["session_id"]
        self.max_frame = welcome["payload"].get("max_frame_bytes", MAX_FRAME_BYTES)
        interval = min(max(welcome["payload"]["heartbeat_interval_ms"], 50), 300_000) / 1000
        signal.signal(signal.SIGTERM, lambda *_: self.goodbye("SIGTERM"))
        threading.Thread(target=self.heartbeats, args=(interval,), daemon=True).start()
        self.register()
        while (message := self.receive()) is not None:
            self.take(message)
        clean = self.draining
        self.closed.set()
        for call in list(self.calls.values()):
            call.stop.set()
        sys.stdout.flush()
        # Tools that do not hear are left: the process ends with its connection.
        os._exit(0 if clean else 1)

    def connect(self):
        if not self.address.startswith("tcp:"):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(REPLY_SECONDS)
            connection.connect(self.address)
            return connection
        host, port = self.address[4:].rsplit(":", 1)
        if host.strip("[]") not in ("127.0.0.1", "::1", "localhost"):
            raise SystemExit("Over TCP an agent connects to loopback only.")
        return socket.create_connection((host.strip("[]"), int(port)), REPLY_SECONDS)

    def hello(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "opensentience.agent.json"), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        token, self.token = self.token, None
        self.send("agent.hello", {
            "session_token": token,
            "agent_id": self.id,
            "agent_version": self.version,
            "manifest_hash": f"sha256:{digest}",
            "protocol": {"supported_versions": [1], "capabilities": ["tools", "streaming", "cancellation"]},
        })

    def register(self):
        tools = []
        for tool_id, one in self.tools.items():
            declared = {name: member for name, member in one.items() if name != "run"}
            tools.append({"tool_id": tool_id, **declared})
        self.send("agent.tools.register", {"tools": tools})

    def send(self, kind, payload, extras=None):
        message = {"v": 1, "type": kind, "id": str(uuid.uuid4()), "ts": now(), **(extras or {}), "payload": payload}
        try:
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            body = text.encode("utf-8")
        except (TypeError, ValueError, RecursionError):  # Bytes, NaN, a cycle, half of a character, too deep.
            raise ToolError("tool.invalid_output", "The output cannot be written as JSON.") from None
        if len(body) > self.max_frame:
            raise ToolError("tool.output_too_large", "The output is larger than permitted.")
        try:
            with self.lock:
                self.socket.sendall(struct.pack(">I", len(body)) + body)
        except OSError:
            pass  # The reader sees the end of the connection.

    def receive(self):
        """The next message, or None at the end of the connection or at a frame that cannot be read."""
        try:
            header = self.read(4)
            length = struct.unpack(">I", header)[0] if header else 0
            if length == 0 or length > self.max_frame:
                return None
            message = json.loads(self.read(length).decode("utf-8"))
            return message if isinstance(message, dict) else None
        except (OSError, ValueError, AttributeError):
            return None

    def read(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(65536, size - len(parts)))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def take(self, message):
        kind, payload = message.get("type"), message.get("payload")
        if message.get("v") != 1 or not isinstance(message.get("id"), str) or not isinstance(payload, dict):
            return
        if kind == "core.tool.call":
            self.begin(message)
        elif kind == "core.tool.cancel":
            self.cancel(message)
        elif kind == "core.ping":
            self.send("agent.pong", {}, {"in_reply_to": message["id"], **echo_of(message)})
        elif kind == "core.goodbye":
            # Noted here: Core may close before the thread has begun.
            self.draining = True
            threading.Thread(target=self.drain, daemon=True).start()
        elif kind in ("core.tools.registered", "core.tools.unregistered", "core.welcome", "core.error"):
            for one in payload.get("rejected", []):
                print(f"{one['tool_id']} was rejected: {one['error']['code']}", file=sys.stderr)
        elif isinstance(message.get("request_id"), str) and "in_reply_to" not in message:
            self.refuse(message, "protocol.unknown_type", "The type of the message is not known.")

    def refuse(self, message, code, text):
        extras = {"in_reply_to": message["id"], **echo_of(message), "error": error(code, text)}
        self.send("agent.error", {}, extras)

    def begin(self, message):
        payload = message["payload"]
        call_id = payload.get("call_id")
        if not isinstance(call_id, str):
            return self.refuse(message, "protocol.invalid_message", "The message is not valid.")
        if call_id in self.calls or call_id in self.ended:
            return self.refuse(message, "protocol.unexpected_message", "The message is not expected now.")
        call, given = Call(self, message), payload.get("input")
        tool = self.tools.get(payload.get("tool_id"))
        if self.draining:
            refusal = error("protocol.draining", "The session takes no new calls.", True)
        elif tool is None:
            refusal = error("tool.not_found", "There is no such tool.")
        elif len(self.calls) >= MAX_INFLIGHT:
            refusal = error("tool.overloaded", "More calls wait than permitted.", True)
        elif (fault := matches(tool["input_schema"], given)) is not None:
            refusal = error("tool.invalid_input", "The input does not match the tool's schema.")
            refusal["details"] = {"path": fault}
        else:
            self.calls[call_id] = call
            call.future = self.pool.submit(self.perform, tool, call, given)
            if isinstance(call.timeout_ms, (int, float)) and call.timeout_ms > 0:
                call.timer = threading.Timer(call.timeout_ms / 1000, self.end, (call, "tool.timeout"))
                call.timer.daemon = True
                call.timer.start()
            return
        self.finish(call, now(), {"status": "failed", "error": refusal})

    def perform(self, tool, call, given):
        started = now()
        try:
            call.check()
            output = tool["run"](given, call)
            outcome = {"status": "succeeded", "output": output}
            if not isinstance(output, dict):
                outcome = {"status": "failed", "error": error("tool.invalid_output", "The output is no object.")}
        except Canceled:
            outcome = stopped(call)
        except ToolError as failure:
            outcome = {"status": "failed", "error": failure.error}
        except BaseException as failure:  # sys.exit() too, or nobody hears. Its name only: no stack, no text.
            safe = error("tool.failed", "The tool failed.")
            outcome = {"status": "failed", "error": {**safe, "details": {"error": type(failure).__name__}}}
        self.finish(call, started, outcome)

    def end(self, call, code):
        """A tool at work hears of it; a call that still waits for a thread ends here."""
        if not call.stop.is_set():
            call.stop_code = code
            call.stop.set()
        if call.future.cancel():
            self.finish(call, now(), stopped(call))

    def finish(self, call, started, outcome):
        if call.timer:
            call.timer.cancel()
        with self.book:
            self.ended[call.id] = True
            self.calls.pop(call.id, None)
            while len(self.ended) > REMEMBERED_CALLS:
                self.ended.pop(next(iter(self.ended)))
        times = {"started_at": started, "finished_at": now()}
        try:
            self.send("agent.tool.result", {"call_id": call.id, **outcome, **times}, call.echo)
        except ToolError as failure:
            # A tool that failed has failed with its own code, though what it says of that cannot be sent.
            said = outcome.get("error")
            instead = error(said["code"], "The tool failed.", said["retryable"]) if said else failure.error
            failed = {"call_id": call.id, "status": "failed", "error": instead, **times}
            self.send("agent.tool.result", failed, call.echo)

    def cancel(self, message):
        call_id = message["payload"].get("call_id")
        call = self.calls.get(call_id)
        payload = {"call_id": str(call_id), "accepted": call is not None}
        self.send("agent.tool.cancel_ack", payload, call.echo if call else echo_of(message))
        if call:
            self.end(call, "tool.canceled")

    def heartbeats(self, interval):
        while not self.closed.wait(interval):
            self.send("agent.heartbeat", {
                "session_id": self.session_id,
                "uptime_ms": int((time.monotonic() - self.started) * 1000),
                "inflight_calls": len(self.calls),
                "status": "ok",
            })

    def goodbye(self, reason):
        def leave():
            self.draining = True
            self.send("agent.goodbye", {"reason": reason})
            self.drain()

        # Not in the signal's handler: the lock may be held by the very thread that it interrupts.
        threading.Thread(target=leave, daemon=True).start()

    def drain(self):
        self.draining = True
        until = time.monotonic() + DRAIN_SECONDS
        while self.calls and time.monotonic() < until:
            time.sleep(0.02)
        for call in list(self.calls.values()):
            self.end(call, "tool.canceled")
        until = time.monotonic() + 1
        while self.calls and time.monotonic() < until:
            time.sleep(0.02)
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
