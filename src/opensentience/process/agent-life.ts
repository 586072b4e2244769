// The life of one agent in one Core as a table (seed 004 §4.5, §5; restart policy with back-off and a crash-loop
// stop): what happened and where we are give what to do; supervised-agent.ts does it.
import type { AgentInstance } from '../../ports/agents.ts';
import type { OpensentienceAgent } from '../../../schemas/types.generated.ts';
import { BackOff } from '../../system/time.ts';
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

export type Verdict =
  | { readonly kind: 'again'; readonly delayMs: number }
  /** Without `withinMs`: in so many starts in a row no tool was accepted. */
  | { readonly kind: 'crash-loop'; readonly exits: number; readonly withinMs?: number }
  | { readonly kind: 'stay' };

type Ended = Pick<Exit, 'clean'> & { readonly hadTool: boolean };

/** What follows an exit, by the manifest's restart policy (default `always`) and the exits since it was last stable. */
export class Restarts {
  readonly #policy: NonNullable<OpensentienceAgent['restart']>['policy'];
  readonly #crash: { readonly exits: number; readonly withinMs: number };
  readonly #pauses: BackOff;
  /** Starts in a row without a tool that are one too many: where the manifest says what a crash loop is, that alone is one. */
  readonly #mostWithoutTool: number;
  /** Times in ms of exits within the crash loop's window, oldest first. */
  #recentMs: readonly number[] = [];
  #withoutTool = 0;

  constructor(restart: OpensentienceAgent['restart'] = {}, limits: ProcessLimits) {
    const { policy, crashLoop, firstDelayMs = limits.firstDelayMs } = restart;
    const { maxDelayMs = limits.maxDelayMs } = restart;
    this.#policy = policy;
    this.#crash = crashLoop ?? { exits: limits.crashExits, withinMs: limits.crashWithinMs };
    this.#mostWithoutTool = crashLoop ? Infinity : limits.startsWithoutTool;
    this.#pauses = new BackOff(firstDelayMs, Math.max(firstDelayMs, maxDelayMs));
  }

  /** `hadTool`: a tool of the process was accepted. */
  judge({ clean, hadTool }: Ended, nowMs: number): Verdict {
    const { exits, withinMs } = this.#crash;
    const recentMs = this.#recentMs.filter((atMs) => nowMs - atMs < withinMs);
    this.#recentMs = [...recentMs, nowMs].slice(-exits);
    this.#withoutTool = hadTool ? 0 : this.#withoutTool + 1;
    const delayMs = this.#pauses.next();
    if (this.#policy === 'never' || (this.#policy === 'on-failure' && clean))
      return { kind: 'stay' };
    if (this.#recentMs.length >= exits) return { kind: 'crash-loop', exits, withinMs };
    return this.#withoutTool >= this.#mostWithoutTool
      ? { kind: 'crash-loop', exits: this.#withoutTool }
      : { kind: 'again', delayMs };
  }

  /** It was stable, or somebody looked after it by hand. */
  forget(): void {
    this.#recentMs = [];
    this.#withoutTool = 0;
    this.#pauses.reset();
  }
}
