// Agents of tests beside the wire of the example agents in Python and Go: each tool gives a result that is no JSON, or
// ends in a way that its language has and others have not.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exampleFolder } from './examples.ts';

const PYTHON = `
import sys
from wire import Agent, ToolError

def cycle():
    output = {}
    output["self"] = output
    return output

def nested():
    output = {}
    for _ in range(100000):
        output = {"in": output}
    return output

def refused(_):
    raise ToolError("odd.refused", "No.", details={"at": b"bytes"})

def status(call):
    call.status("\\ud800")
    call.status(b"bytes")
    call.status("plain")
    return {"done": True}

RESULTS = {
    "nan": lambda _: {"mean": float("nan")},
    "infinity": lambda _: {"of": [1, {"max": -float("inf")}]},
    "bytes": lambda _: {"raw": b"bytes"},
    "surrogate": lambda _: {"text": "\\ud800"},
    "cycle": lambda _: cycle(),
    "nested": lambda _: nested(),
    "none": lambda _: None,
    "list": lambda _: [1],
    "refused": refused,
    "quits": lambda _: sys.exit(3),
    "status": status,
    "good": lambda _: {"text": "NaN"},
}
def tool(name):
    return {
        "name": name, "description": name, "input_schema": {"type": "object"}, "side_effects": True,
        "run": lambda given, call: RESULTS[name](call),
    }
sys.exit(Agent("com.example.ledger", "1.0.0", [tool(name) for name in RESULTS]).run())
`;

const GO = `package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
)

func main() {
	results := map[string]func(s *stream) any{
		"nan":      func(*stream) any { return object{"mean": math.NaN()} },
		"infinity": func(*stream) any { return object{"of": []any{1, object{"max": math.Inf(-1)}}} },
		"function": func(*stream) any { return object{"run": func() {}} },
		"none":     func(*stream) any { return nil },
		"list":     func(*stream) any { return []int{1} },
		"large":    func(*stream) any { return object{"text": make([]byte, maxFrameBytes)} },
		"panics":   func(*stream) any { panic("no") },
		"status": func(s *stream) any {
			s.partial(object{"mean": math.NaN()})
			s.partial(object{"mean": 1})
			return object{"done": true}
		},
		"good": func(*stream) any { return object{"text": "NaN"} },
	}
	tools := []tool{}
	for name, result := range results {
		result := result
		run := func(_ context.Context, _ json.RawMessage, s *stream) (any, error) { return result(s), nil }
		tools = append(tools, tool{name, name, object{"type": "object"}, []string{}, []string{}, run})
	}
	os.Exit(newAgent("com.example.files", "1.0.0", tools).serve())
}
`;

const FILES = {
  ledger: { copied: ['wire.py'], program: ['agent.py', PYTHON] },
  files: { copied: ['wire.go', 'go.mod', 'run.sh'], program: ['main.go', GO] },
} as const;

/** Writes it into the folder, to be started as the example is. */
export function writeOddAgent(name: keyof typeof FILES, folder: string): void {
  const { copied, program } = FILES[name];
  mkdirSync(folder, { recursive: true });
  for (const file of [...copied, 'opensentience.agent.json'])
    copyFileSync(join(exampleFolder(name), file), join(folder, file));
  const [file, text] = program;
  writeFileSync(join(folder, file), text);
}
