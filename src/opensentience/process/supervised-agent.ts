// One agent of this Core, alive or not (table: agent-life.ts): does what the table says, with a process, a session and
// one timer. An agent that was started by hand takes the place of the process that Core would start.
import type { Redactor } from '../../rules/redaction.ts';
import type { AgentInstance } from '../../ports/agents.ts';
import type { Logger } from '../../ports/logger.ts';
import { AGENT_LIFE, judgeExit, NO_EXITS, type LifeEvent, type LifeState } from './agent-life.ts';
import type { Children } from './children.ts';
import { nowMs } from '../clock.ts';
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
  readonly unwatch: () => void;
  /** Why Core ends it; absent when it ends by itself. */
  why?: string;
}

export type LifeView = Pick<AgentInstance, 'status' | 'restarts' | 'lastExit'>;

export class SupervisedAgent {
  #state: LifeState = 'waiting';
  #session: LiveSession | undefined;
  #process: RunningProcess | undefined;
  #exits = NO_EXITS;
  #launches = 0;
  #lastExit: AgentInstance['lastExit'];
  #lastExitWasClean = false;
  #stopping = false;
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

  constructor(agent: AgentFolder, support: LifeSupport, file: LogFile) {
    this.#agent = agent;
    this.#support = support;
    this.#file = file;

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
    const [state, launches, lastExit] = [this.#state, this.#launches, this.#lastExit];
    return {
      status: state,
      restarts: Math.max(0, launches - 1),
      ...(lastExit ? { lastExit } : {}),
    };
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

  #happen(event: LifeEvent): void {
    const action = AGENT_LIFE[this.#state][event];
    switch (action) {
      case 'connect':
        return this.#connect();
      case 'leave':
        return this.#leave();
      case 'judge':
        return this.#judge();
      case 'kill':
        return this.#end('SIGKILL', `no hello within ${this.#support.limits.startMs} ms`);
      case 'settle':
        this.#exits = NO_EXITS;
        return;
      case 'end':
        return this.#endForGood();
      case 'press':
        return this.#press();
      case 'launch':
        return this.#launch();
      case 'rest':
        return this.#enter('stopped');
      case 'nothing':
        return;
    }
  }

  /** `ms` until the event `late`; absent: never. */
  #enter(state: LifeState, ms?: number): void {
    clearTimeout(this.#timer);
    if (ms !== undefined) this.#timer = setTimeout(() => this.#happen('late'), ms);
    this.#state = state;
    this.#support.onChange(this.#id);
    if (this.#stopping && state === 'stopped' && !this.#process) this.#whenEnded();
  }

  #enterAgain(): void {
    this.#support.onChange(this.#id);
    if (this.#stopping && this.#state === 'stopped') this.#whenEnded();
  }

  #launch(): void {
    const { desk, children, limits, socketPath, environment, memory } = this.#support;
    // A connection that outlived its process would stand in the way of the next.
    this.#session?.close('process_ended');
    const token = desk.mint(this.#id);
    const [agent, output] = [this.#agent, this.#output];
    const launched = launchProcess({
      agent,
      output,
      socketPath,
      environment,
      token: token.token,
    });
    const { record } = launched;
    const maxBytes = agent.manifest.limits?.memoryBytes;
    const running: RunningProcess = {
      launched,
      token,
      unwatch:
        record && maxBytes !== undefined
          ? memory.add(record.pid, {
              maxBytes,
              onOver: (bytes) => this.#overMemory(bytes, maxBytes),
            })
          : () => undefined,
    };
    if (record) {
      token.bind(record.pid);
      children.add(this.#id, record);
      output.note(`started as process ${record.pid}`);
      this.#audit('agent.started', { pid: record.pid });
    }
    this.#process = running;
    this.#pressed = false;
    this.#launches++;
    this.#enter('starting', limits.startMs);
    void launched.exited.then((exit) => this.#exited(running, exit));
  }

  #exited(process: RunningProcess, exit: Exit): void {
    process.token.revoke();
    process.unwatch();
    if (process.launched.record) this.#support.children.remove(process.launched.record);
    if (process !== this.#process) return;
    this.#process = undefined;
    const reason = process.why ?? exit.reason;
    this.#lastExit = { atMs: Date.now(), reason };
    this.#lastExitWasClean = exit.clean && process.why === undefined;
    this.#output.note(`process ended: ${reason}`);
    this.#audit('agent.exited', { reason });
    // A session that was opened by hand goes on without the process.
    if (this.#session?.attached) return this.#enterAgain();
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
    const { manifest } = this.#agent;
    const exit: Exit = { clean: this.#lastExitWasClean, reason: this.#lastExit?.reason ?? '' };
    const verdict = judgeExit(
      manifest.restart,
      { exit, before: this.#exits, nowMs: nowMs() },
      this.#support.limits,
    );
    this.#exits = verdict.exits;
    const fields = { agentId: this.#id, reason: exit.reason, logFile: this.#file.path };
    if (verdict.kind === 'again') {
      this.#support.logger.info('agent process ended, will be started again', {
        ...fields,
        delayMs: verdict.delayMs,
      });
      return this.#enter('backing-off', verdict.delayMs);
    }
    if (verdict.kind === 'stay') {
      this.#support.logger.info('agent process ended, by its policy for good', fields);
      return this.#enter('stopped');
    }
    this.#audit('agent.crash_loop', { exits: verdict.exits.recentMs.length, reason: exit.reason });
    this.#support.logger.error('agent ends again and again: it is not started any more', {
      ...fields,
      exits: verdict.exits.recentMs.length,
    });
    this.#enter('crash-loop');
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
    else if (this.#agent.manifest.restart?.policy === 'never') this.#enter('stopped');
    else {
      // Somebody looked after it by hand: former exits are forgotten.
      this.#exits = NO_EXITS;
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
