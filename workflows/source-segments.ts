// Where a segment of its source began, a fork that plays the record begins one as well (architecture §6): the frames that were
// under way are dropped, and entered again from the run's state, as a segment enters them from what was carried on. So both
// go on in the same order, and do without the same steps.
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
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
  const before = run.state.frames;
  carryOn(run.state);
  if (run.clock) run.state.clock = run.clock.state;
  run.heldBytes = heldBytesOf(run.state);
  restoreKin(run, before);
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

/**
 * A fork that leaves its source renames them in the frames that go on. One whose frame has left it is in none. `before`: the
 * frames that were carried on.
 */
function restoreKin(run: Run, before: RunState['frames']): void {
  const former = [...run.kin];
  run.kin.clear();
  for (const kin of former)
    run.kin.add({ ...(restored(run, before, kin) ?? kin), isEarlier: true });
}

function restored(run: Run, before: RunState['frames'], { visit, child }: Kin): Kin | undefined {
  const { nodeId } = visit.frame;
  const [was, frame, node] = [before[nodeId], run.state.frames[nodeId], run.nodes.get(nodeId)];
  const carried = was && frame && carriedAs(child, was.data, frame.data);
  return carried && node && { visit: { run, node, frame }, child: carried as Child };
}

/** What stands in `after` where `one` itself stands in `before`: whatever is only equal to it is something else, a text for one. */
export function carriedAs(
  one: object,
  before: JsonValue,
  after: JsonValue | undefined,
): JsonObject | undefined {
  if (before === null || typeof before !== 'object') return undefined;
  if (before === one) return isJsonObject(after) ? after : undefined;
  for (const [name, value] of Object.entries(before)) {
    const found = carriedAs(one, value, (after as JsonObject | undefined)?.[name]);
    if (found) return found;
  }
  return undefined;
}
