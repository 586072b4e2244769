// The life of one agent in one Core as a table (seed 004 §4.5, §5; restart policy with back-off and a crash-loop
// stop). Pure: what happened and where we are give what to do; supervisor.ts does it.
//
// in \ event     opened        closed   exited    late       stop
// starting       connect       –        judge     kill       end
// connected      connect       leave    judge     settle     end
// backing-off    connect       –        –         launch     rest
// crash-loop     connect       –        –         –          rest
// waiting        connect       –        –         –          rest
// draining       connect       leave    judge     press      –
// stopped        connect       –        –         –          rest
import type { AgentInstance } from '../../ports/agents.ts';
import type { OpensentienceAgent } from '../../../schemas/types.generated.ts';
import type { Exit } from './launch.ts';
import type { ProcessLimits } from './limits.ts';

/** An agent that is refused has no life. */
export type LifeState = Exclude<AgentInstance['status'], 'refused'>;

/** `late`: the time that the state allows is over. `closed`, `exited`: of the session and the process that we have now. */
export type LifeEvent = 'opened' | 'closed' | 'exited' | 'late' | 'stop';

/**
 * connect: it is here. leave: its connection is gone; its process, if it has one, has to end. judge: by the restart
 * policy. kill: SIGKILL. settle: it is stable, former exits are forgotten. end: ask it to end. press: SIGTERM, next time
 * SIGKILL. launch: start a process. rest: nothing is to be done any more.
 */
export type LifeAction =
  | 'connect'
  | 'leave'
  | 'judge'
  | 'kill'
  | 'settle'
  | 'end'
  | 'press'
  | 'launch'
  | 'rest'
  | 'nothing';

type Row = Readonly<Record<LifeEvent, LifeAction>>;

/** Neither process nor session. */
const AT_REST: Row = {
  opened: 'connect',
  closed: 'nothing',
  exited: 'nothing',
  late: 'nothing',
  stop: 'rest',
};

export const AGENT_LIFE: Readonly<Record<LifeState, Row>> = {
  starting: { opened: 'connect', closed: 'nothing', exited: 'judge', late: 'kill', stop: 'end' },
  connected: { opened: 'connect', closed: 'leave', exited: 'judge', late: 'settle', stop: 'end' },
  'backing-off': { ...AT_REST, late: 'launch' },
  'crash-loop': AT_REST,
  waiting: AT_REST,
  draining: { opened: 'connect', closed: 'leave', exited: 'judge', late: 'press', stop: 'nothing' },
  stopped: AT_REST,
};

/** Exits since the process was last stable. */
export interface ExitRecord {
  readonly count: number;
  /** Times in ms of those within the crash loop's window, oldest first. */
  readonly recentMs: readonly number[];
}

export const NO_EXITS: ExitRecord = { count: 0, recentMs: [] };

export type Verdict =
  | { readonly kind: 'again'; readonly delayMs: number; readonly exits: ExitRecord }
  | { readonly kind: 'crash-loop'; readonly exits: ExitRecord }
  | { readonly kind: 'stay'; readonly exits: ExitRecord };

/** What follows an exit, by the manifest's restart policy (default `always`). */
export function judgeExit(
  restart: OpensentienceAgent['restart'],
  { exit, before, nowMs }: { exit: Exit; before: ExitRecord; nowMs: number },
  limits: ProcessLimits,
): Verdict {
  const { policy = 'always', firstDelayMs = limits.firstDelayMs } = restart ?? {};
  const crash = restart?.crashLoop ?? { exits: limits.crashExits, withinMs: limits.crashWithinMs };
  const recentMs = [...before.recentMs, nowMs]
    .filter((atMs) => nowMs - atMs < crash.withinMs)
    .slice(-crash.exits);
  const exits = { count: before.count + 1, recentMs };
  if (policy === 'never' || (policy === 'on-failure' && exit.clean)) return { kind: 'stay', exits };
  if (recentMs.length >= crash.exits) return { kind: 'crash-loop', exits };
  const longest = Math.max(firstDelayMs, restart?.maxDelayMs ?? limits.maxDelayMs);
  // Past 30 doublings the longest delay is reached for any first one.
  const delayMs = Math.min(longest, firstDelayMs * 2 ** Math.min(before.count, 30));
  return { kind: 'again', delayMs, exits };
}
