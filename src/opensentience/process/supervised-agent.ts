// One agent of this Core, alive or not (table: agent-life.ts): does what the table says, with a process, a session and
// one timer. An agent that was started by hand takes the place of the process that Core would start.
import type { Redactor } from '../../rules/redaction.ts';
import type { AgentInstance } from '../../ports/agents.ts';
import type { Logger } from '../../ports/logger.ts';
import {
  AGENT_LIFE,
  Restarts,
  type LifeAction,
  type LifeEvent,
  type LifeState,
  type Verdict,
} from './agent-life.ts';
import type { Children } from './children.ts';
import { nowMs } from '../../system/time.ts';
import { launchProcess, type Exit, type LaunchedProcess } from './launch.ts';
import type { LogFile } from './log-file.ts';
import type { AgentFolder } from '../manifest.ts';
import type { MemoryWatch } from './memory-watch.ts';
import { createOutputCapture, type OutputCapture } from './output-capture.ts';
import type { AuditNote, LiveSession } from '../parts.ts';
import type { ProcessLimits } from './limits.ts';
import type { LaunchToken, TokenDesk } from '../tokens.ts';

/** What all agents of a Core share. */
export interface LifeSupport {
  readonly socketPath: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly desk: Pick<TokenDesk, 'mint' | 'redact'>;
  readonly children: Children;
  readonly memory: MemoryWatch;
  readonly limits: ProcessLimits;
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly audit: (note: AuditNote) => void;
  /** State, restarts or last exit changed. */
  readonly onChange: (agentId: string) => void;
}

interface RunningProcess {
  readonly launched: LaunchedProcess;
  readonly token: LaunchToken;
  readonly unwatch?: () => void;
  /** Why Core ends it; absent when it ends by itself. */
  why?: string;
}

type CrashLoop = Extract<Verdict, { kind: 'crash-loop' }>;

export type LifeView = Pick<AgentInstance, 'status' | 'restarts' | 'lastExit'>;

export class SupervisedAgent {
  #state: LifeState = 'waiting';
  #session: LiveSession | undefined;
  #process: RunningProcess | undefined;
  #launches = 0;
  #lastExit: (Exit & { readonly atMs: number }) | undefined;
  /** Why it is not started any more; absent while it runs, or may. */
  #givenUp: string | undefined;
  /** Why its policy left it as it ended: true again when an agent goes that somebody started by hand. */
  #leftBecause: string | undefined;
  #stopping = false;
  /** A tool was accepted since the last start. */
  #hadTool = false;
  /** SIGTERM was sent to the process that has to end. */
  #pressed = false;
  #timer: NodeJS.Timeout | undefined;
  #unhealthyTimer: NodeJS.Timeout | undefined;
  #lingerTimer: NodeJS.Timeout | undefined;
  readonly #output: OutputCapture;
  #whenEnded: () => void = () => undefined;
  /** No process and nothing to do any more. */
  readonly ended = new Promise<void>((resolve) => (this.#whenEnded = resolve));

  readonly #agent: AgentFolder;
  readonly #support: LifeSupport;
  readonly #file: LogFile;
  readonly #restarts: Restarts;

  constructor(agent: AgentFolder, support: LifeSupport, file: LogFile) {
    this.#agent = agent;
    this.#support = support;
    this.#file = file;
    this.#restarts = new Restarts(agent.manifest.restart, support.limits);
    const { redactor, desk, logger } = support;
    this.#output = createOutputCapture({
      redactor,
      withoutTokens: desk.redact,
      file,
      onLine: (stream, line) => logger.debug('agent output', { agentId: this.#id, stream, line }),
    });
  }

  get #id(): string {
    return this.#agent.manifest.id;
  }

  /** An agent that was started by hand may have come first. */
  start(): void {
    if (this.#agent.manifest.launch && this.#state === 'waiting') this.#launch();
  }

  view(): LifeView {
    const { atMs, reason } = this.#lastExit ?? {};
    return {
      status: this.#state,
      restarts: Math.max(0, this.#launches - 1),
      ...(atMs !== undefined && reason !== undefined && { lastExit: { atMs, reason } }),
    };
  }

  /** Why nothing will start it again: sentences. */
  get givenUp(): string | undefined {
    return this.#givenUp;
  }

  opened(session: LiveSession): void {
    this.#session = session;
    this.#happen('opened');
  }

  closed(session: LiveSession): void {
    if (session !== this.#session) return;
    this.#session = undefined;
    clearTimeout(this.#lingerTimer);
    this.#watchHealth(false);
    this.#happen('closed');
  }

  toolsChanged(session: LiveSession): void {
    if (session === this.#session && session.tools().length > 0) this.#hadTool = true;
  }

  healthChanged(session: LiveSession): void {
    if (session !== this.#session) return;
    this.#watchHealth(session.view().health === 'unhealthy');
  }

  /** Starts nothing from now on; what runs is asked to end, and made to within the limits. */
  stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#happen('stop');
  }

  /** The last word, when the time for ending is over. */
  kill(): void {
    this.#process?.launched.signal('SIGKILL');
    clearTimeout(this.#timer);
    clearTimeout(this.#lingerTimer);
    this.#watchHealth(false);
    this.#file.close();
  }

  readonly #actions: Readonly<Record<LifeAction, () => void>> = {
    connect: () => this.#connect(),
    leave: () => this.#leave(),
    judge: () => this.#judge(),
    kill: () => this.#end('SIGKILL', `no hello within ${this.#support.limits.startMs} ms`),
    settle: () => this.#restarts.forget(),
    end: () => this.#endForGood(),
    press: () => this.#press(),
    launch: () => this.#launch(),
    rest: () => this.#enter('stopped'),
    nothing: () => undefined,
  };

  #happen(event: LifeEvent): void {
    this.#actions[AGENT_LIFE[this.#state][event]]();
  }

  /** `ms` until the event `late`; absent: never. `givenUp`: why nothing leads out of the state but somebody's hand. */
  #enter(state: LifeState, ms?: number, givenUp?: string): void {
    clearTimeout(this.#timer);
    this.#givenUp = givenUp;
    if (ms !== undefined) this.#timer = setTimeout(() => this.#happen('late'), ms);
    this.#state = state;
    this.#tell();
  }

  #tell(): void {
    this.#support.onChange(this.#id);
    if (this.#stopping && this.#state === 'stopped' && !this.#process) this.#whenEnded();
  }

  #launch(): void {
    const { desk, children, limits, socketPath, environment, memory } = this.#support;
    // A connection that outlived its process would stand in the way of the next.
    this.#session?.close('process_ended');
    const token = desk.mint(this.#id);
    const [agent, output] = [this.#agent, this.#output];
    const launched = launchProcess({ agent, output, socketPath, environment, token: token.token });
    const { record } = launched;
    const maxBytes = agent.manifest.limits?.memoryBytes;
    const unwatch =
      record &&
      maxBytes !== undefined &&
      memory.add(record.pid, { maxBytes, onOver: (bytes) => this.#overMemory(bytes, maxBytes) });
    const running: RunningProcess = { launched, token, ...(unwatch && { unwatch }) };
    if (record) {
      token.bind(record.pid);
      children.add(this.#id, record);
      output.note(`started as process ${record.pid}`);
      this.#audit('agent.started', { pid: record.pid });
    }
    this.#process = running;
    this.#pressed = false;
    this.#hadTool = false;
    this.#launches++;
    this.#enter('starting', limits.startMs);
    void launched.exited.then((exit) => this.#exited(running, exit));
  }

  #exited(process: RunningProcess, exit: Exit): void {
    process.token.revoke();
    process.unwatch?.();
    if (process.launched.record) this.#support.children.remove(process.launched.record);
    if (process !== this.#process) return;
    this.#process = undefined;
    const reason = process.why ?? exit.reason;
    this.#lastExit = { atMs: Date.now(), reason, clean: exit.clean && process.why === undefined };
    this.#output.note(`process ended: ${reason}`);
    this.#audit('agent.exited', { reason });
    // A session that was opened by hand goes on without the process.
    if (this.#session?.attached) return this.#tell();
    this.#linger();
    this.#happen('exited');
  }

  /** What the process wrote last is still read, for a while. */
  #linger(): void {
    const session = this.#session;
    if (!session) return;
    clearTimeout(this.#lingerTimer);
    this.#lingerTimer = setTimeout(
      () => session.close('process_ended'),
      this.#support.limits.lingerMs,
    );
  }

  #judge(): void {
    if (this.#stopping) return this.#enter('stopped');
    const { clean = false, reason = '' } = this.#lastExit ?? {};
    const verdict = this.#restarts.judge({ clean, hadTool: this.#hadTool }, nowMs());
    const { logger } = this.#support;
    const fields = { agentId: this.#id, reason, logFile: this.#file.path };
    switch (verdict.kind) {
      case 'again': {
        const { delayMs } = verdict;
        logger.info('agent process ended, will be started again', { ...fields, delayMs });
        return this.#enter('backing-off', delayMs);
      }
      case 'stay':
        logger.info('agent process ended, by its policy for good', fields);
        // One that ended by itself may be wanted so: somebody starts it by hand.
        this.#leftBecause = clean ? undefined : byPolicy(reason);
        return this.#enter('stopped', undefined, this.#leftBecause);
      case 'crash-loop': {
        const { exits } = verdict;
        this.#audit('agent.crash_loop', { exits, reason });
        logger.error('agent ends again and again: it is not started any more', {
          ...fields,
          exits,
        });
        return this.#enter('crash-loop', undefined, inCrashLoop(verdict, reason));
      }
    }
  }

  #connect(): void {
    if (this.#session?.attached && this.#process) {
      const process = this.#process;
      this.#end('SIGTERM', 'replaced by an agent that was started by hand');
      setTimeout(() => {
        if (this.#process === process) process.launched.signal('SIGKILL');
      }, this.#support.limits.terminateMs).unref();
    }
    this.#enter('connected', this.#support.limits.stableMs);
  }

  #leave(): void {
    const { limits } = this.#support;
    if (this.#process) {
      // Once SIGTERM is sent, its limit holds.
      if (!this.#pressed) this.#enter('draining', limits.leaveMs);
    } else if (this.#stopping) this.#enter('stopped');
    else if (!this.#agent.manifest.launch) this.#enter('waiting');
    else if (this.#agent.manifest.restart?.policy === 'never')
      this.#enter('stopped', undefined, this.#leftBecause);
    else {
      // Somebody looked after it by hand: former exits are forgotten.
      this.#restarts.forget();
      this.#launch();
    }
  }

  #endForGood(): void {
    const { limits } = this.#support;
    if (this.#session) return this.#enter('draining', limits.drainMs + limits.leaveMs);
    this.#enter('draining');
    if (this.#process) this.#press();
    else this.#enter('stopped');
  }

  #press(): void {
    if (!this.#process) return this.#enter(this.#stopping ? 'stopped' : 'waiting');
    this.#end(this.#pressed ? 'SIGKILL' : 'SIGTERM', this.#process.why);
    this.#pressed = true;
    this.#enter('draining', this.#support.limits.terminateMs);
  }

  #end(signal: NodeJS.Signals, why: string | undefined): void {
    if (!this.#process) return;
    if (why !== undefined) this.#process.why = why;
    this.#process.launched.signal(signal);
  }

  #overMemory(bytes: number, maxBytes: number): void {
    this.#audit('agent.over_memory', { bytes, maxBytes });
    this.#end('SIGKILL', `more than ${maxBytes} bytes of memory`);
  }

  #watchHealth(isUnhealthy: boolean): void {
    const { unhealthyMs } = this.#support.limits;
    if (!isUnhealthy) {
      clearTimeout(this.#unhealthyTimer);
      this.#unhealthyTimer = undefined;
      return;
    }
    this.#unhealthyTimer ??= setTimeout(() => {
      this.#audit('agent.unhealthy', { afterMs: unhealthyMs });
      if (this.#process && !this.#session?.attached) this.#process.why = 'unhealthy';
      this.#session?.close('unhealthy');
    }, unhealthyMs);
  }

  #audit(kind: string, details: AuditNote['details']): void {
    this.#support.audit({ agentId: this.#id, kind, details });
  }
}

function byPolicy(lastExit: string): string {
  return `The agent's process ended and is, by its restart policy, not started again. Its last exit: ${lastExit}.`;
}

function inCrashLoop({ exits, withinMs }: CrashLoop, lastExit: string): string {
  const how =
    withinMs === undefined
      ? 'in a row without an accepted tool'
      : `within ${Math.ceil(withinMs / 1_000)} s`;
  return `The agent's process ended ${exits} times ${how} and is not started any more. Its last exit: ${lastExit}.`;
}
