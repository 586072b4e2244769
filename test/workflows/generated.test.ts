// Generated behaviours through the real workflow code, in a model of Temporal and of time (test/support/model): every
// prefix of every log is legal, whatever models, tools, humans, operators and workers do, and each worker that begins
// anew comes to the same commands.
//
// `npm test` plays fixed cases, in which everything that can happen happens once; `npm run campaign -- generated` plays more.
// OPENWOP_GENERATED_CASES: how many; OPENWOP_GENERATED_SEED: another series of them; OPENWOP_GENERATED_CASE: one alone,
// by the seed that a failure names.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import { playCase, type CaseEnd } from '../support/model/case.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';
import { patient } from '../support/machine.ts';

/** The first cases of the usual series, and two in which a retry runs out and a loop meets its limit. */
const GATE_CASES = [...Array(60).keys(), 109, 125];
/** Of all that a red run shows, the first few are enough. */
const MOST_FAILURES = 5;
const {
  OPENWOP_GENERATED_CASES,
  OPENWOP_GENERATED_SEED = 'openwop',
  OPENWOP_GENERATED_CASE,
} = process.env;
const isGate =
  !OPENWOP_GENERATED_CASE && !OPENWOP_GENERATED_CASES && !process.env.OPENWOP_GENERATED_SEED;
const cases = isGate
  ? GATE_CASES
  : [...Array(Number(OPENWOP_GENERATED_CASES ?? GATE_CASES.length)).keys()];
const seeds = OPENWOP_GENERATED_CASE
  ? [OPENWOP_GENERATED_CASE]
  : cases.map((index) => `${OPENWOP_GENERATED_SEED}-${index}`);
/** One case may take this long, in ms, beside others that use the machine. */
const CASE_LIMIT_MS = 400;

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
});
afterAll(() => isolate.close());

/** What the fixed cases must have met, or they show nothing. */
const MET = [
  ...['agent.decided', 'agent.handoff', 'agent.toolCalled', 'agent.toolReturned', 'cap.breached'],
  ...['node.dispatched', 'runOrchestrator.decided', 'core.workflowChain.event'],
  ...['core.dispatch.fanOut', 'core.dispatch.join'],
  ...['clarification.resolved', 'envelope.retry.exhausted', 'interrupt.resolved', 'node.cancelled'],
  ...[
    'node.resumed',
    'node.retried',
    'node.skipped',
    'run.cancelled',
    'run.completed',
    'run.failed',
  ],
  ...['run.paused', 'run.resumed', 'variable.changed', 'workflow.loopback-limit'],
];

test(
  'of every generated run each prefix is legal, and each replay the same',
  async () => {
    console.info(`${seeds.length} generated cases of the series ${OPENWOP_GENERATED_SEED}`);
    const failures: string[] = [];
    const met = new Set<string>();
    let continued = 0;
    for (const seed of seeds) {
      const end: CaseEnd | undefined = await playCase(isolate, seed).catch((error: Error) => {
        failures.push(error.message);
        return undefined;
      });
      end?.types.forEach((type) => met.add(type));
      continued += (end?.executions ?? 1) - 1;
      if (failures.length >= MOST_FAILURES) break;
    }
    expect(failures).toEqual([]);
    // Another series need not meet everything.
    if (!isGate) return;
    expect(MET.filter((type) => !met.has(type))).toEqual([]);
    expect(continued).toBeGreaterThan(seeds.length / 10);
  },
  patient(60_000 + seeds.length * CASE_LIMIT_MS),
);
