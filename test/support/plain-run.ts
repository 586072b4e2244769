// A run of workflow code on plain Node, without a server: the test holds the clock, the activities and the way in of
// messages. For rules that one function decides; how runs behave is asked on real servers (workflow-lab.ts).
import './plain-sandbox.ts';
import type { CancellationScope } from '@temporalio/workflow';
import { graphOf } from '../../src/rules/definition-graph.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import type { MessageOutcome, RunMessage } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import type { Activities } from '../../activities/contract.ts';
import type { Run, Visit } from '../../workflows/context.ts';
import { newFrame, newRunState } from '../../workflows/frames.ts';
import { drainOutbox } from '../../workflows/journal.ts';
import { answerMessages } from '../../workflows/messages.ts';
import type { Inbox, Steps } from '../../workflows/steps.ts';

export const START_MS = 1_000_000;

/** Answers a step by its activity's name; `request` as workflow code gave it. */
export type PlainActivities = (name: keyof Activities, input: object) => JsonValue;

export interface PlainRun {
  readonly run: Run;
  nowMs: number;
  /** A visit of the node, as its node kind gets it. */
  visit(nodeId: string): Visit;
  /** Every wait, in order; `end(false)`: its time is over. */
  readonly waits: {
    readonly key: string;
    readonly deadlineMs?: number;
    end(ready: boolean): void;
  }[];
  /** As Temporal delivers an Update: refused by the code, or taken. */
  send(updateId: string, message: RunMessage): string | MessageOutcome;
  /** Types and payloads stated since the last call. */
  stated(): { readonly type: string; readonly payload: unknown }[];
}

export function plainRun(input: RunInput, activities: PlainActivities = () => null): PlainRun {
  let inbox: Inbox | undefined;
  const waits: PlainRun['waits'][number][] = [];
  const steps = {
    run: async (_place: unknown, name: keyof Activities, request: { input: object }) =>
      activities(name, request.input),
    wait: (key: string, deadlineMs: number | undefined) =>
      new Promise<boolean>((end) => waits.push({ key, deadlineMs, end })),
    now: () => plain.nowMs,
    receive: (taking: Inbox) => {
      inbox = taking;
    },
    nextTask: async () => undefined,
    isReplay: () => false,
    isUnstated: () => false,
    waitForSource: () => undefined,
    until: async () => undefined,
  } as unknown as Steps;
  const run: Run = {
    input,
    state: newRunState(START_MS, input),
    steps,
    graph: graphOf(input.definition),
    nodes: new Map(input.definition.nodes.map((node) => [node.id, node])),
    scope: {} as CancellationScope,
    active: new Map(),
    scopes: new Map(),
    inFlight: 0,
    queued: new Set(),
    atRest: new Map(),
    heldBytes: 0,
    holding: new Set(),
    livedAs: input.runId,
    kin: new Set(),
    progress: 0,
  };
  const plain: PlainRun = {
    run,
    nowMs: START_MS,
    waits,
    visit(nodeId) {
      const frame = newFrame(nodeId, 1);
      run.state.frames[nodeId] = frame;
      const node = run.nodes.get(nodeId);
      if (!node) throw new Error(`no node ${nodeId}`);
      return { run, node, frame };
    },
    send(updateId, message) {
      const entered = { updateId, message, atMs: plain.nowMs };
      try {
        inbox?.check(entered);
      } catch (refusal) {
        return (refusal as { type: string }).type;
      }
      if (!inbox) throw new Error('the run takes no messages');
      return inbox.take(entered);
    },
    stated: () =>
      drainOutbox().flatMap(({ entry }) =>
        entry.kind === 'emit' ? [{ type: entry.type, payload: entry.payload }] : [],
      ),
  };
  answerMessages(run);
  plain.stated();
  return plain;
}
