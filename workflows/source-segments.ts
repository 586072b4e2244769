// Where a segment of its source began, a fork that plays the record begins one as well (architecture §6): the frames that were
// under way are dropped, and entered again from the run's state, as a segment enters them from what was carried on. So both
// go on in the same order, and do without the same steps.
import { isJsonObject, type JsonValue } from '../src/rules/json.ts';
import type { Child } from './child-runs.ts';
import { startClocks } from './clocks.ts';
import { newScope, type Kin, type Run } from './context.ts';
import type { RunState } from './frames.ts';
import { restorePause } from './pause.ts';
import { enterFrames } from './schedule.ts';
import { heldBytesOf } from './values.ts';

/** Before the stimuli that came with the beginning: nothing of the segment before goes on. */
export function leaveSegment(run: Run): void {
  run.scope = newScope();
  for (const held of [run.active, run.scopes, run.atRest, run.queued, run.holding]) held.clear();
  run.inFlight = 0;
  run.clock?.waits.clear();
  if (run.clock) run.clock.lapsing = 0;
  carryOn(run.state);
  if (run.clock) run.state.clock = run.clock.state;
  run.heldBytes = heldBytesOf(run.state);
  restoreKin(run);
  restorePause(run);
}

/** After them. */
export function enterSegment(run: Run): void {
  enterFrames(run);
  startClocks(run);
}

/** What coroutines of the segment before hold of the state is not the run's any more. */
function carryOn(state: RunState): void {
  const carried = JSON.parse(JSON.stringify(state)) as RunState;
  for (const name of Object.keys(state) as (keyof RunState)[])
    delete (state as Partial<RunState>)[name];
  Object.assign(state, carried);
}

/** A fork that leaves its source renames them in the frames that go on. One whose frame has left it is in none. */
function restoreKin(run: Run): void {
  const former = [...run.kin];
  const names = new Set(former.map(({ child }) => child.runId));
  const restored = new Map<string, Kin>();
  for (const frame of Object.values(run.state.frames)) {
    const node = run.nodes.get(frame.nodeId);
    if (!node) continue;
    for (const child of childrenIn(frame.data, names))
      restored.set(child.runId, { visit: { run, node, frame }, child });
  }
  run.kin.clear();
  for (const kin of former)
    run.kin.add({ ...(restored.get(kin.child.runId) ?? kin), isEarlier: true });
}

function childrenIn(data: JsonValue, names: ReadonlySet<string>): Child[] {
  if (Array.isArray(data)) return data.flatMap((item) => childrenIn(item, names));
  if (!isJsonObject(data)) return [];
  const { runId, callId, phase } = data;
  const isChild = callId !== undefined && phase !== undefined;
  if (isChild && typeof runId === 'string' && names.has(runId)) return [data as Child];
  return Object.values(data).flatMap((item) => childrenIn(item, names));
}
