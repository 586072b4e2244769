// Children of a generated run: where they are, when they end and how, and what their parent hears of it. They are runs
// of their own, so nothing that a worker of their parent does stops one.
import type {
  CancelChildInput,
  CancelChildOutput,
  EndChildInput,
  EndChildOutput,
  StartChildrenInput,
  StartChildrenOutput,
} from '../../../activities/contract.ts';
import type { ChildRequest, ChildStart } from '../../../src/rules/children.ts';
import type { ActivityEvent, StepResult } from '../../../src/rules/journal.ts';
import type { Agenda } from './agenda.ts';
import { drawsOf, type Draws } from './draws.ts';
import type { ActivityFate, ScheduledActivity } from './execution.ts';
import type { ActivityEnd } from './outcomes.ts';

export const FAMILY_ACTIVITIES = ['startChildren', 'endChild', 'cancelChild'] as const;
type FamilyActivity = (typeof FAMILY_ACTIVITIES)[number];

export const isOfFamily = (type: string): type is FamilyActivity =>
  (FAMILY_ACTIVITIES as readonly string[]).includes(type);

/** The variable that a child gives its parent. */
export const GIVEN = 'given';

type Status = EndChildOutput['status'];

interface Kin {
  readonly isDetached: boolean;
  /** When it ends, and how, unless it is told to end before. */
  endMs: number;
  status: Status;
  hasEnded: boolean;
  isTold: boolean;
  takeOff: () => void;
}

export interface Family {
  fate(activity: ScheduledActivity): ActivityFate;
  /** Children that have begun, and neither ended nor were told to, where their parent could know of them. */
  left(): string[];
}

const done = <T>(output: T, events: readonly ActivityEvent[] = []): ActivityEnd => ({
  kind: 'completed',
  result: { output, events: [...events] } satisfies StepResult<T>,
});
const failed = (code: string): ActivityEnd => ({ kind: 'failed', code, message: `it is ${code}` });

/** `tell`: a child's signal to its parent, which may come more than once. */
export function openFamily(
  seed: string,
  agenda: Agenda,
  tell: (childRunId: string) => void,
): Family {
  const kin = new Map<string, Kin>();
  /** Told to end before they began: a step that nobody waits for any more started them. The keeper of families ends them. */
  const missed = new Set<string>();

  function startOf(request: ChildRequest): ChildStart {
    const { runId } = request;
    const draws = drawsOf(seed, `start ${runId}`);
    if (draws.chance(0.08))
      return { kind: 'refused', code: 'unknown_child_workflow', message: 'nobody knows it' };
    if (draws.chance(0.03)) {
      const breach = { kind: 'child-runs', limit: 2_000 } as const;
      return { kind: 'refused', code: 'child_limit_exceeded', message: 'too many', breach };
    }
    return { kind: 'started', workflowId: `child-${runId}` };
  }

  function born({ runId, isDetached }: ChildRequest): void {
    if (kin.has(runId)) throw new Error(`two children are ${runId}`);
    const draws = drawsOf(seed, `life ${runId}`);
    const lifeMs = draws.chance(0.1) ? draws.int(5_000, 90_000) : draws.int(0, 1_500);
    const child: Kin = {
      isDetached: isDetached === true,
      endMs: agenda.nowMs() + lifeMs,
      status: draws.pick<Status>(['completed', 'completed', 'completed', 'failed', 'cancelled']),
      hasEnded: false,
      isTold: false,
      takeOff: () => undefined,
    };
    kin.set(runId, child);
    child.takeOff = agenda.at(child.endMs, () => ended(runId, child, draws));
  }

  /** Its own signal may be lost: the keeper of families tells its parent later. */
  function ended(runId: string, child: Kin, draws: Draws): void {
    child.hasEnded = true;
    const isHeard = draws.chance(0.85);
    if (isHeard) tell(runId);
    if (!isHeard || draws.chance(0.1))
      agenda.at(agenda.nowMs() + draws.int(500, 3_000), () => tell(runId));
  }

  /** It hears of it soon; now and then it is deaf for longer than its parent waits. */
  function toldToEnd(runId: string, child: Kin): void {
    if (child.isTold) return;
    child.isTold = true;
    const draws = drawsOf(seed, `told ${runId}`);
    const endMs = agenda.nowMs() + (draws.chance(0.05) ? 45_000 : draws.int(0, 2_000));
    if (endMs >= child.endMs) return;
    child.takeOff();
    child.endMs = endMs;
    child.status = draws.chance(0.9) ? 'cancelled' : child.status;
    child.takeOff = agenda.at(endMs, () => ended(runId, child, draws));
  }

  function starting({ requests }: StartChildrenInput, draws: Draws): ActivityFate {
    const afterMs = draws.chance(0.05) ? draws.int(2_500, 8_000) : draws.int(1, 400);
    const starts = requests.map(startOf);
    const isLost = draws.chance(0.03);
    requests.forEach((request, index) => {
      if (starts[index]?.kind !== 'started') return;
      // A step that comes to nothing may have started some all the same.
      if (!isLost || draws.chance(0.5))
        agenda.at(agenda.nowMs() + draws.int(0, afterMs), () => born(request));
    });
    const output: StartChildrenOutput = { starts };
    return { afterMs, end: isLost ? failed('service_unavailable') : done(output) };
  }

  function ending(
    { childRunId, refused, tool, context }: EndChildInput,
    draws: Draws,
  ): ActivityFate {
    const afterMs = draws.int(1, 300);
    const child = kin.get(childRunId);
    if (!refused && !child) throw new Error(`the end of ${childRunId} is asked, which is none`);
    const waitMs = child && !child.hasEnded ? child.endMs - agenda.nowMs() : 0;
    const status = refused ? 'failed' : (child?.status ?? 'failed');
    const error =
      refused ?? (status === 'failed' ? { code: 'made_to_fail', message: 'no' } : undefined);
    const output: EndChildOutput = {
      status,
      ...(status === 'completed' ? { variables: { [GIVEN]: 1 } } : {}),
      ...(error ? { error } : {}),
      ...(tool ? { resultHash: `h:${tool.callId}` } : {}),
    };
    return {
      afterMs: afterMs + waitMs,
      end: done(output, tool ? [returned(tool, context, output)] : []),
    };
  }

  function stopping({ childRunId }: CancelChildInput, draws: Draws): ActivityFate {
    const child = kin.get(childRunId);
    const found: CancelChildOutput['found'] = !child ? 'none' : child.hasEnded ? 'ended' : 'open';
    if (child && found === 'open') toldToEnd(childRunId, child);
    if (!child) missed.add(childRunId);
    return { afterMs: draws.int(1, 200), end: done<CancelChildOutput>({ found }) };
  }

  return {
    fate({ activityId, type, input }) {
      const draws = drawsOf(seed, activityId);
      switch (type as FamilyActivity) {
        case 'startChildren':
          return starting(input as StartChildrenInput, draws);
        case 'endChild':
          return ending(input as EndChildInput, draws);
        case 'cancelChild':
          return stopping(input as CancelChildInput, draws);
      }
    },
    left: () =>
      [...kin].flatMap(([id, it]) =>
        it.hasEnded || it.isTold || it.isDetached || missed.has(id) ? [] : [id],
      ),
  };
}

function returned(
  { agentId, callId, toolId, calledKey }: NonNullable<EndChildInput['tool']>,
  { nodeId }: EndChildInput['context'],
  { status }: EndChildOutput,
): ActivityEvent {
  const payload = { agentId, toolName: toolId, callId };
  return {
    type: 'agent.toolReturned',
    nodeId,
    ...(calledKey === undefined ? {} : { causedBy: calledKey }),
    payload:
      status === 'completed'
        ? { ...payload, outcome: 1, status: 'ok' }
        : { ...payload, error: { code: 'child_failed', message: 'no' }, status: 'error' },
  };
}
