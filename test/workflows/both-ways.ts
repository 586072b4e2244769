// Runs workflow code plainly and with continue-as-new forced, and holds the two journals against each other
// (architecture §4): the same facts, the same order within a visit, and the same order in all when the run is
// sequential.
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect } from 'vitest';
import { isTerminalEvent } from '../../src/rules/status.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../src/rules/json.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { MESSAGES, type ResolveInterruptMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { patient } from '../support/machine.ts';
import {
  askedInterrupt,
  type FinishedRun,
  type JournalItem,
  type ScriptedActivities,
  type UpdateWithStart,
} from '../support/run-workflow.ts';
import { TESTER } from '../support/definitions.ts';
import { openWorkflowLab, type WorkflowLab } from '../support/workflow-lab.ts';

/** Not there yet, or between two segments: the sender tries again. */
const AGAIN = new Set(['interrupt_not_found', 'interrupt_already_resolved', 'service_unavailable']);
/** gRPC RESOURCE_EXHAUSTED and FAILED_PRECONDITION: the execution is just closing, and took nothing in. */
const CLOSING = new Set([8, 9]);
/** Time in ms between two tries. */
const PAUSE_MS = 50;
/** Longest time of all tries in ms: a server that loses a task which only carries a message gives it out again after 5 s. */
const TRYING_MS = 30_000;
/** A new segment as soon as the first workflow task is done. */
const FORCE_AFTER_EVENTS = 5;

export type Fact = Extract<JournalItem, { type: string }>;

export interface Scenario {
  readonly input: RunInput;
  readonly activities?: ScriptedActivities;
  readonly withStart?: UpdateWithStart;
  readonly script?: (handle: WorkflowHandle) => Promise<void>;
  /** Parallel runs: only the order within a visit is the same. */
  readonly parallel?: boolean;
  /** The border of a segment changes nothing of its path: the model's generated cases end segments anywhere. */
  readonly plainOnly?: boolean | undefined;
}

let lab: WorkflowLab | undefined;

/** A worker of an agent's queue, until the test stops it. */
export function pollQueue(taskQueue: string): Promise<{ stop(): Promise<void> }> {
  if (!lab) throw new Error('useWorkflowRunner() is missing');
  return lab.poll(taskQueue);
}

/** Registers the worker of a test file. */
export function useWorkflowRunner(): void {
  beforeAll(async () => {
    lab = await openWorkflowLab();
  });
  afterAll(() => lab?.close());
}

export function factsOf(run: FinishedRun): Fact[] {
  return run.journal.filter((item): item is Fact => 'type' in item);
}

export function typesOf(run: FinishedRun): string[] {
  return factsOf(run).map((fact) =>
    fact.nodeId === undefined ? fact.type : `${fact.type} ${fact.nodeId}`,
  );
}

export function payloadsOf(run: FinishedRun, type: string): Record<string, JsonValue>[] {
  return factsOf(run)
    .filter((fact) => fact.type === type)
    .map((fact) => fact.payload);
}

/** Every invariant that needs no server but Temporal (architecture §8). */
function checkJournal(run: FinishedRun): void {
  const facts = factsOf(run);
  const keys = facts.map((fact) => fact.key);
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
  expect(facts[0]?.type).toBe('run.started');
  expect(facts.filter((fact) => isTerminalEvent(fact.type))).toHaveLength(1);
  expect(isTerminalEvent(facts.at(-1)?.type ?? '')).toBe(true);
  for (const { causedBy } of facts) {
    if (typeof causedBy === 'string') expect(keys).toContain(causedBy);
  }
  // Each names what it follows from, which stands before it.
  const causes = facts
    .slice(1)
    .map(({ causedBy }) => keys.indexOf(typeof causedBy === 'string' ? causedBy : ''));
  const isCaused = (cause: number, at: number) => cause >= 0 && cause <= at;
  expect(facts.slice(1).filter((_, at) => !isCaused(causes[at] ?? -1, at))).toEqual([]);
}

/**
 * A chunk names its run (stream-modes.md), a write to a channel and a turn of a conversation their times, and the two
 * ways are two runs. The clock of a rehearsal begins at the run's start.
 */
function ofAnyRun(payload: JsonObject): JsonObject {
  const text = JSON.stringify(payload)
    .replace(/"(runId|childRunId|parentRunId)":"[^"]*"/g, '"$1":"run"')
    .replace(/"(_ts|ts)":\d+/g, '"$1":0')
    .replace(/"(writtenAt|timestamp|now)":"[^"]*"/g, '"$1":"then"');
  return JSON.parse(text) as JsonObject;
}

const setOf = (run: FinishedRun): string[] =>
  factsOf(run)
    .map(({ key, type, payload }) => `${key} ${type} ${canonicalJson(ofAnyRun(payload))}`)
    .sort();

const causesOf = (run: FinishedRun): string[] =>
  factsOf(run).map(({ key, causedBy }) => `${key} by ${JSON.stringify(causedBy)}`);

/** What a node said, in order; what was said of one call of a turn apart, since the calls of a turn go side by side. */
function byVisit(run: FinishedRun): Record<string, string[]> {
  const visits: Record<string, string[]> = {};
  for (const { nodeId, key } of factsOf(run)) {
    const call = /\/i\d+\.t\d+\.c\d+/.exec(key)?.[0] ?? '';
    (visits[`${nodeId ?? ''}${call}`] ??= []).push(key);
  }
  return visits;
}

/** Runs the scenario both ways; returns the plain run. */
export async function runBothWays(scenario: Scenario): Promise<FinishedRun> {
  const plain = await runOnce(scenario);
  if (scenario.plainOnly) return plain;
  const forced = await runOnce(
    { ...scenario, input: { ...scenario.input, forceContinueAsNewAfter: FORCE_AFTER_EVENTS } },
    '-can',
  );
  expect(setOf(forced)).toEqual(setOf(plain));
  if (!scenario.parallel) expect(causesOf(forced)).toEqual(causesOf(plain));
  expect(byVisit(forced)).toEqual(byVisit(plain));
  if (!scenario.parallel)
    expect(factsOf(forced).map(({ key }) => key)).toEqual(factsOf(plain).map(({ key }) => key));
  return plain;
}

export async function runOnce(
  { input, activities, withStart, script }: Scenario,
  suffix = '',
): Promise<FinishedRun> {
  if (!lab) throw new Error('useWorkflowRunner() is missing');
  // The id seed stays: ids inside payloads must be equal both ways.
  const runId = `${input.runId}${suffix}`;
  const run = await lab.run({ input: { ...input, runId }, activities, withStart, script });
  checkJournal(run);
  await run.replay();
  return run;
}

class NotYet extends Error {}

/** Sends until the run takes it: it may not be there yet, or stand between two segments. Bounded. */
export async function taken<T>(
  send: () => Promise<T>,
  again: ReadonlySet<string> = AGAIN,
): Promise<T> {
  const until = performance.now() + patient(TRYING_MS);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const { type, code } = (error as { cause?: { type?: string; code?: number } }).cause ?? {};
      const isAgain = error instanceof NotYet || CLOSING.has(code ?? 0) || again.has(type ?? '');
      if (!isAgain || performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/**
 * Answers the node's open interrupt, once it is asked: in a run's first task a message is refused for good, and a later one of
 * the same id with it.
 */
export async function answer(
  handle: WorkflowHandle,
  nodeId: string,
  value: JsonValue,
  schema: JsonValue,
  meant: { updateId?: string; interruptId?: string } = {},
): Promise<unknown> {
  return taken(async () => {
    const interruptId = meant.interruptId ?? (await askedInterrupt(handle, nodeId));
    if (interruptId === '') throw new NotYet(`${nodeId} has not asked.`);
    const message: ResolveInterruptMessage = {
      kind: 'resolve-interrupt',
      nodeId,
      interruptId,
      value,
      schemaDigest: digestOf(canonicalJson(schema)),
      bodyDigest: 'test',
      resolvedBy: TESTER,
    };
    return handle.executeUpdate(MESSAGES['resolve-interrupt'].update, {
      args: [message],
      updateId: meant.updateId ?? randomUUID(),
    });
  });
}
