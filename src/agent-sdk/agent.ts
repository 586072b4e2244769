// An agent's life (seed 004 §4, §5): take the token, connect, register, serve calls, and end with the connection; or,
// where it can get fresh credentials, connect again with growing pauses.
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentHealth } from '../opensentience/messages.ts';
import { AgentError } from './errors.ts';
import { AGENT_LIMITS, type AgentLimits } from './limits.ts';
import type { Registration } from './registration.ts';
import { Session, type Health, type SessionEnd, type SessionSetup } from './session.ts';
import {
  hashOfManifest,
  ownProcess,
  takeCredentials,
  type Credentials,
  type Surroundings,
} from './surroundings.ts';
import type { Tool } from './tool.ts';

/** Pauses between connections: the first, doubled each time up to the last, in ms; and how many in a row may fail. */
export const RECONNECT = { firstMs: 500, mostMs: 30_000, attempts: 60 } as const;
/** Longest wish of Core that is honoured before the next connection. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

export interface AgentOptions {
  readonly id: string;
  /** Semver. */
  readonly version: string;
  readonly tools?: readonly Tool[];
  /** The agent's opensentience.agent.json: its hash tells Core of drift. */
  readonly manifest?: string | URL;
  /** Told with every heartbeat; `ok` where absent, `degraded` where it throws. */
  readonly health?: () => AgentHealth | Health;
  /** For agents that Core did not launch: tokens are single use, so each connection needs a fresh one. */
  readonly reconnect?: Reconnect;
  readonly limits?: Partial<AgentLimits>;
  /** What the process gives; its own where absent. */
  readonly surroundings?: Partial<Surroundings>;
}

/** Where absent, a number is that of RECONNECT. */
export interface Reconnect {
  readonly credentials: () => Promise<Credentials>;
  readonly firstMs?: number;
  readonly mostMs?: number;
  readonly attempts?: number;
}

export interface AgentEnd {
  /** `refused`: there was no session; else as in SessionEnd. */
  readonly how: SessionEnd['how'] | 'refused';
  /** A code or Core's safe reason. */
  readonly reason: string;
}

export interface Agent {
  /**
   * Serves until the connection ends (with `reconnect`: until `stop`, or too many failures in a row). A launched
   * agent's process then ends too, after at most exitMs for clean-up: exit code 0 after a goodbye, else 1.
   */
  run(): Promise<AgentEnd>;
  /**
   * Adds tools, or replaces those of the same names; Core's word when connected, else nothing. `rejected` also names
   * tools that Core had and dropped when others were replaced. A replacement rejected with `protocol.flood` may be
   * tried again later: until then the tool that it would replace serves on.
   */
  register(...tools: readonly Tool[]): Promise<Registration>;
  unregister(...names: readonly string[]): Promise<void>;
  /** Says goodbye and lets calls in flight end. */
  stop(reason?: string): Promise<void>;
}

/** Takes socket and token out of the environment at once. */
export function agent(options: AgentOptions): Agent {
  return new ServingAgent(options);
}

class ServingAgent implements Agent {
  readonly #options: AgentOptions;
  readonly #limits: AgentLimits;
  readonly #surroundings: Surroundings;
  readonly #setup: SessionSetup;
  readonly #tools: Map<string, Tool>;
  readonly #stopping = new AbortController();
  #given: Credentials | undefined;
  #session: Session | undefined;
  #failures = 0;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#limits = { ...AGENT_LIMITS, ...options.limits };
    this.#surroundings = { ...ownProcess, ...options.surroundings };
    this.#given = takeCredentials(this.#surroundings.env);
    this.#tools = new Map((options.tools ?? []).map((one) => [one.name, one]));
    const { id, version, manifest, health = () => 'ok' as const } = options;
    this.#setup = {
      ...{ id, version, health, tools: this.#tools, limits: this.#limits },
      startedAtMs: performance.now(),
      ...(manifest !== undefined && { manifestHash: hashOfManifest(manifest) }),
    };
  }

  async run(): Promise<AgentEnd> {
    const launched = this.#given !== undefined && this.#options.reconnect === undefined;
    let signalled = false;
    const unsubscribe = this.#surroundings.onStop((signal) => {
      signalled = true;
      void this.stop(signal);
    });
    try {
      const end = await this.#serve();
      this.#log(`ended: ${end.how} (${end.reason})`);
      const clean = end.how === 'goodbye' || end.how === 'stopped';
      if (launched || signalled || !clean)
        this.#surroundings.exit(clean ? 0 : 1, this.#limits.exitMs);
      return end;
    } finally {
      unsubscribe();
    }
  }

  async register(...tools: readonly Tool[]): Promise<Registration> {
    const asked = new Map(tools.map((one) => [`${this.#setup.id}/${one.name}`, one]));
    const stood = [...asked.values()].flatMap(({ name }) => this.#tools.get(name) ?? []);
    for (const one of asked.values()) this.#tools.set(one.name, one);
    // Core refuses a name that it knows: it gets the whole set anew. What is asked for goes first, into the message
    // that forgets, so that Core can keep what it does not replace yet.
    const told = await (stood.length > 0
      ? this.#session?.register([...new Set([...asked.values(), ...this.#tools.values()])], true)
      : this.#session?.register([...asked.values()]));
    const { registered = [], rejected = [] } = told ?? {};
    for (const { toolId, code } of rejected) {
      const old = stood.find(({ name }) => `${this.#setup.id}/${name}` === toolId);
      const isNewest = old && this.#tools.get(old.name) === asked.get(toolId);
      if (isNewest && code === 'protocol.flood') this.#tools.set(old.name, old);
    }
    return { registered: registered.filter((toolId) => asked.has(toolId)), rejected };
  }

  async unregister(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#tools.delete(name);
    await this.#session?.unregister(names);
  }

  async stop(reason = 'stopped'): Promise<void> {
    this.#stopping.abort(reason);
    await this.#session?.drain(reason);
  }

  async #serve(): Promise<AgentEnd> {
    const { reconnect } = this.#options;
    for (;;) {
      const end = await this.#connectOnce();
      if (this.#stopping.signal.aborted) return { how: 'stopped', reason: this.#stopReason };
      const final = !reconnect || end.reason === 'protocol.unsupported_version';
      if (final) return { how: end.how, reason: end.reason };
      if (end.how === 'refused') this.#failures += 1;
      if (this.#failures >= (reconnect.attempts ?? RECONNECT.attempts)) return end;
      this.#log(`connects again after: ${end.how} (${end.reason})`);
      await this.#pause('retryAfterMs' in end ? end.retryAfterMs : undefined);
      if (this.#stopping.signal.aborted) return { how: 'stopped', reason: this.#stopReason };
    }
  }

  /** One session from its credentials to its end. */
  async #connectOnce(): Promise<SessionEnd | AgentEnd> {
    try {
      const credentials = await this.#credentials();
      const session = await Session.open(credentials, this.#setup);
      this.#session = session;
      this.#failures = 0;
      if (this.#stopping.signal.aborted) await session.drain(this.#stopReason);
      else await this.#registerAll(session);
      return await session.ended;
    } catch (error) {
      const reason = error instanceof AgentError ? error.code : 'agent.no_credentials';
      return { how: 'refused', reason };
    } finally {
      this.#session = undefined;
    }
  }

  /** A token is used once, whatever comes of it. */
  async #credentials(): Promise<Credentials> {
    const given = this.#given;
    this.#given = undefined;
    const credentials = given ?? (await this.#options.reconnect?.credentials());
    if (credentials) return credentials;
    throw new AgentError('agent.no_credentials', 'Neither environment nor reconnect gives any.');
  }

  /** A tool that Core does not take leaves the others at work. */
  async #registerAll(session: Session): Promise<void> {
    try {
      const { rejected } = await session.register([...this.#tools.values()]);
      for (const { toolId, code } of rejected) this.#log(`${toolId} was rejected: ${code}`);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      this.#log(`registration failed: ${error.code}`);
      await session.drain(error.code);
    }
  }

  async #pause(retryAfterMs = 0): Promise<void> {
    const { firstMs = RECONNECT.firstMs, mostMs = RECONNECT.mostMs } =
      this.#options.reconnect ?? {};
    // The SDK leaves the house (architecture §1.1): its rests and its pace are its own.
    const grown = Math.min(mostMs, firstMs * 2 ** Math.min(this.#failures, 16));
    // Agents of one Core shall not come back all at once.
    const ownMs = grown * (0.5 + Math.random() / 2);
    const wait = Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    await sleep(wait, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  get #stopReason(): string {
    return String(this.#stopping.signal.reason);
  }

  /** Codes and ids only. */
  #log(line: string): void {
    this.#surroundings.log(`[${this.#options.id}] ${line}`);
  }
}
