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
import { childForkOf, type Leaving } from '../../../src/rules/fork-trees.ts';
import { childRunIdOf } from '../../../src/rules/ids.ts';
import type { ActivityEvent, StepResult } from '../../../src/rules/journal.ts';
import type { Agenda } from './agenda.ts';
import { drawsOf, type Draws } from './draws.ts';
import type { ActivityFate, ScheduledActivity } from './execution.ts';
import type { ActivityEnd } from './outcomes.ts';

export const FAMILY_ACTIVITIES = ['startChildren', 'endChild', 'cancelChild'] as const;
export const FORK_CHILDREN = 'forkChildren';
type FamilyActivity = (typeof FAMILY_ACTIVITIES)[number];

export const isOfFamily = (type: string): boolean =>
  [...FAMILY_ACTIVITIES, FORK_CHILDREN].includes(type);

/** The variable that a child gives its parent. */
export const GIVEN = 'given';

type Status = EndChildOutput['status'];

interface Kin {
  readonly request: ChildRequest;
  readonly isDetached: boolean;
  /** A fork of a child that had ended: nothing ends it before its time. */
  readonly isReplay: boolean;
  readonly bornMs: number;
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
  /** As a fork that leaves so has them of this family's run. */
  forked(leaving: Leaving): readonly ForkedKin[];
}

/** A child of a run, as a fork of that run has it. */
export interface ForkedKin {
  readonly request: ChildRequest;
  /** How it ends, being replayed. Absent: it lives on. */
  readonly ended?: Status;
  /** The parent's source had told it to end, and may wait for it no more: the keeper of families ends it. */
  readonly wasTold: boolean;
}

const done = <T>(output: T, events: readonly ActivityEvent[] = []): ActivityEnd => ({
  kind: 'completed',
  result: { output, events: [...events] } satisfies StepResult<T>,
});
const failed = (code: string): ActivityEnd => ({ kind: 'failed', code, message: `it is ${code}` });

/** Whose family it is. */
interface Parent {
  readonly seed: string;
  readonly runId: string;
  /** Of a fork: what it has of its source. */
  readonly forked?: readonly ForkedKin[];
}

/** `tell`: a child's signal to its parent, which may come more than once. */
export function openFamily(
  { seed, runId: parentRunId, forked = [] }: Parent,
  agenda: Agenda,
  tell: (childRunId: string) => void,
): Family {
  const kin = new Map<string, Kin>();
  /** Of a fork: those that it has of its source. */
  const forks = new Set<string>();
  /** Told to end before they began, by a step that nobody waits for any more, or in a source: the keeper of families ends them. */
  const missed = new Set<string>();

  function startOf(request: ChildRequest): ChildStart {
    const { runId } = request;
    const draws = drawsOf(seed, `start ${runId}`);
    if (forks.has(runId)) return { kind: 'started', workflowId: `child-${runId}` };
    if (draws.chance(0.08))
      return { kind: 'refused', code: 'unknown_child_workflow', message: 'nobody knows it' };
    if (draws.chance(0.03)) {
      const breach = { kind: 'child-runs', limit: 2_000 } as const;
      return { kind: 'refused', code: 'child_limit_exceeded', message: 'too many', breach };
    }
    return { kind: 'started', workflowId: `child-${runId}` };
  }

  function born(request: ChildRequest, ended?: Status): void {
    const { runId, isDetached } = request;
    // What a fork has of its source its own steps find there.
    if (kin.has(runId) && forks.has(runId)) return;
    if (kin.has(runId)) throw new Error(`two children are ${runId}`);
    const draws = drawsOf(seed, `life ${runId}`);
    const lifeMs = draws.chance(0.1) ? draws.int(5_000, 90_000) : draws.int(0, 1_500);
    const status = draws.pick<Status>([
      ...(['completed', 'completed', 'completed', 'failed', 'cancelled'] as const),
    ]);
    const child: Kin = {
      request,
      isDetached: isDetached === true,
      isReplay: ended !== undefined,
      bornMs: agenda.nowMs(),
      endMs: agenda.nowMs() + (ended === undefined ? lifeMs : draws.int(0, 300)),
      status: ended ?? status,
      hasEnded: false,
      isTold: false,
      takeOff: () => undefined,
    };
    kin.set(runId, child);
    child.takeOff = agenda.at(child.endMs, () => hasEnded(runId, child, draws));
  }

  /** Its own signal may be lost: the keeper of families tells its parent later. */
  function hasEnded(runId: string, child: Kin, draws: Draws): void {
    child.hasEnded = true;
    const isHeard = draws.chance(0.85);
    if (isHeard) tell(runId);
    if (!isHeard || draws.chance(0.1))
      agenda.at(agenda.nowMs() + draws.int(500, 3_000), () => tell(runId));
  }

  /** It hears of it soon; now and then it is deaf for longer than its parent waits. */
  function toldToEnd(runId: string, child: Kin): void {
    if (child.isTold || child.isReplay) return;
    child.isTold = true;
    const draws = drawsOf(seed, `told ${runId}`);
    const endMs = agenda.nowMs() + (draws.chance(0.05) ? 45_000 : draws.int(0, 2_000));
    if (endMs >= child.endMs) return;
    child.takeOff();
    child.endMs = endMs;
    child.status = draws.chance(0.9) ? 'cancelled' : child.status;
    child.takeOff = agenda.at(endMs, () => hasEnded(runId, child, draws));
  }

  function begin(draws: Draws): ActivityFate {
    for (const { request, ended, wasTold } of forked) {
      const runId = childRunIdOf(parentRunId, request.callId, 0);
      forks.add(runId);
      if (wasTold) missed.add(runId);
      born({ ...request, runId }, ended);
    }
    return { afterMs: draws.int(1, 100), end: done(null) };
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
      if (type === FORK_CHILDREN) return begin(draws);
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
        it.hasEnded || it.isTold || it.isDetached || it.isReplay || missed.has(id) ? [] : [id],
      ),
    forked: (leaving) =>
      [...kin.values()].flatMap((child): ForkedKin[] => {
        const { request, bornMs, status, isReplay } = child;
        const endMs = isReplay ? bornMs : child.endMs;
        const isClosed = isReplay || child.hasEnded;
        const { runId, callId: causationId, startedBy: key } = request;
        const header = { causationId, startedBy: { runId: parentRunId, key } } as never;
        const timesMs = [bornMs, ...(isClosed ? [endMs] : [])];
        const how = childForkOf(leaving, { runId, input: { header }, isClosed, timesMs });
        if (!how) return [];
        const wasTold = child.isTold;
        return [{ request, wasTold, ...(how.mode === 'replay' ? { ended: status } : {}) }];
      }),
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
