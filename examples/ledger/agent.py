"""A small double-entry ledger as an OpenSentience agent (seed 004): entries in a JSON-lines file, one line per entry,
written and synced before the result is sent. Amounts are whole cents."""

import json
import os
import sys
import threading

from wire import Agent, ToolError, now

FOLDER = os.environ.get("LEDGER_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), ".data")
FILE = os.path.join(FOLDER, "entries.jsonl")
REPORT_STEP_SECONDS = 0.2
LOCK = threading.Lock()

ACCOUNT = {"type": "string", "minLength": 1, "maxLength": 80}


def entries():
    """Every whole line; a last one that a killed process left half written is not an entry."""
    try:
        with open(FILE, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


def append(entry):
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)
    with open(FILE, "ab+") as file:
        # A half line is cut off, so that it does not spoil the next.
        file.seek(0)
        whole = file.read()
        file.truncate(whole.rfind(b"\n") + 1)
        file.write(json.dumps(entry).encode("utf-8") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def balances():
    sums = {}
    for entry in entries():
        for line in entry["lines"]:
            sums[line["account"]] = sums.get(line["account"], 0) + line["cents"]
    return sums


def post_entry(given, call):
    if sum(line["cents"] for line in given["lines"]) != 0:
        raise ToolError("ledger.unbalanced", "The lines of an entry add up to zero.")
    with LOCK:
        call.check()
        number = len(entries()) + 1
        append({"number": number, "text": given["text"], "lines": given["lines"], "posted_at": now()})
    return {"number": number}


def balance(given, call):
    with LOCK:
        sums = balances()
    if given["account"] not in sums:
        raise ToolError("ledger.unknown_account", "There is no such account.")
    return {"account": given["account"], "cents": sums[given["account"]]}


def slow_report(given, call):
    with LOCK:
        accounts = sorted(balances().items())
    steps = given.get("steps", 3)
    for step in range(1, steps + 1):
        call.status(f"step {step} of {steps}")
        call.sleep(REPORT_STEP_SECONDS)
    return {"accounts": [{"account": name, "cents": cents} for name, cents in accounts]}


LINE = {
    "type": "object",
    "properties": {"account": ACCOUNT, "cents": {"type": "integer"}},
    "required": ["account", "cents"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "name": "post_entry",
        "description": "Posts an entry whose lines add up to zero. A repeat posts another.",
        "input_schema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": 200},
                "lines": {"type": "array", "items": LINE, "minItems": 2, "maxItems": 50},
            },
            "required": ["text", "lines"],
            "additionalProperties": False,
        },
        "output_schema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
        "capabilities": ["cancellation"],
        "side_effects": True,
        "tags": ["ledger"],
        "run": post_entry,
    },
    {
        "name": "balance",
        "description": "The balance of an account in cents.",
        "input_schema": {
            "type": "object",
            "properties": {"account": ACCOUNT},
            "required": ["account"],
            "additionalProperties": False,
        },
        "capabilities": ["cancellation"],
        "side_effects": False,
        "tags": ["ledger"],
        "run": balance,
    },
    {
        "name": "slow_report",
        "description": "The balances of all accounts, with a word on each step; it can be canceled.",
        "input_schema": {
            "type": "object",
            "properties": {"steps": {"type": "integer", "minimum": 1, "maximum": 1000}},
            "additionalProperties": False,
        },
        "capabilities": ["streaming", "cancellation"],
        "side_effects": False,
        "tags": ["ledger"],
        "run": slow_report,
    },
]

if __name__ == "__main__":
    sys.exit(Agent("com.example.ledger", "1.0.0", TOOLS).run())
