// Who may connect (seed 004 §5): a launched process with the token that it was started with, while it runs, or an
// agent started by hand with a token that the operator minted. Each token opens one connection, within minutes. Core
// keeps launch tokens in memory only; no refusal tells why to the other side, the audit tells the operator.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { mask, type Redactor } from '../rules/redaction.ts';
import { nowMs, within } from '../system/time.ts';
import type { AgentRegistry } from '../ports/agents.ts';
import { isRefused, type AgentFolder } from './manifest.ts';
import type { Admission, AuditNote, Gate, Hello } from './parts.ts';

const TOKEN_BYTES = 32;
/** Longest wait in ms for the registry's word on a minted token: less than the time for a hello. */
const REGISTRY_MS = 4_000;
/** Tokens of one agent, spent ones too, that output is still searched for. */
const REMEMBERED_TOKENS = 2;

export interface LaunchToken {
  readonly token: string;
  /** The process that has it runs: nobody may use it before. */
  bind(pid: number): void;
  revoke(): void;
}

interface Outstanding {
  readonly agentId: string;
  readonly hash: Buffer;
  readonly expiresAtMs: number;
  pid?: number;
}

export interface GateOptions {
  readonly tenant: string;
  readonly registry: Pick<AgentRegistry, 'consumeToken'>;
  readonly agents: ReadonlyMap<string, AgentFolder>;
  readonly tokenMs: number;
  readonly audit: (note: AuditNote) => void;
  readonly now?: () => number;
}

/** Why an agent was refused: for the audit, never for the other side. */
export type Refusal =
  | 'token_malformed'
  | 'token_unknown'
  | 'token_expired'
  | 'token_of_another_agent'
  | 'process_unknown'
  | 'transport_not_permitted'
  | 'agent_unknown'
  | 'permission_not_acknowledged'
  | 'registry_unavailable';

export interface TokenDesk {
  /** A token for a process that is about to be started. */
  mint(agentId: string): LaunchToken;
  readonly gate: Gate;
  /** The text without the tokens that opened, or are to open, connections of this Core. */
  redact(text: string): string;
}

/** Hex SHA-256 of a token, as AgentRegistry keeps it. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export function mintToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const TOKEN_RUN = /[A-Za-z0-9_-]{43,}/;

export function createTokenDesk(options: GateOptions): TokenDesk {
  const { agents, audit, tokenMs, now = nowMs } = options;
  const outstanding = new Set<Outstanding>();
  const remembered = new Map<string, readonly string[]>();

  function remember(agentId: string, token: string): void {
    const known = remembered.get(agentId) ?? [];
    remembered.set(agentId, [token, ...known].slice(0, REMEMBERED_TOKENS));
  }

  function mint(agentId: string): LaunchToken {
    const token = mintToken();
    remember(agentId, token);
    const entry: Outstanding = {
      agentId,
      hash: Buffer.from(tokenHash(token), 'hex'),
      expiresAtMs: now() + tokenMs,
    };
    outstanding.add(entry);
    return {
      token,
      bind: (pid) => void (entry.pid = pid),
      revoke: () => void outstanding.delete(entry),
    };
  }

  async function admit(hello: Hello): Promise<Refusal | { attached: boolean; pid?: number }> {
    if (!TOKEN.test(hello.sessionToken)) return 'token_malformed';
    const launch = take(outstanding, hello.sessionToken, now());
    if (launch) return launchRefusal(launch, hello, now()) ?? { attached: false, pid: launch.pid };
    const agent = agents.get(hello.agentId);
    if (!agent) return 'agent_unknown';
    if (isRefused(agent.manifest)) return 'permission_not_acknowledged';
    const consumed = await consume(options, hello);
    if (consumed !== true) return consumed === false ? 'token_unknown' : 'registry_unavailable';
    remember(hello.agentId, hello.sessionToken);
    return { attached: true };
  }

  async function gate(hello: Hello): Promise<Admission> {
    const answer = await admit(hello);
    const { agentId, transport } = hello;
    if (typeof answer === 'string') {
      // The name is the other side's claim: kept only where it is one of ours.
      const known = agents.has(agentId) ? { agentId } : {};
      audit({ ...known, kind: 'token.refused', details: { reason: answer, transport } });
      return { ok: false, code: 'protocol.unauthorized', reason: answer };
    }
    const agent = agents.get(agentId);
    const manifestMatches = agent && matches(agent.hash, hello.manifestHash);
    if (manifestMatches === false) audit({ agentId, kind: 'manifest.drift', details: {} });
    const maxInflightRequests = agent?.manifest.limits?.maxInflightRequests;
    return {
      ok: true,
      ...answer,
      ...(manifestMatches === undefined ? {} : { manifestMatches }),
      ...(maxInflightRequests === undefined ? {} : { maxInflightRequests }),
    };
  }

  return { mint, gate, redact: (text) => withoutTokens(text, remembered.values()) };
}

/** Removes it. Compares with every token outstanding, so that the time taken tells nothing. */
function take(outstanding: Set<Outstanding>, token: string, atMs: number): Outstanding | undefined {
  const hash = Buffer.from(tokenHash(token), 'hex');
  let found: Outstanding | undefined;
  for (const entry of outstanding) if (timingSafeEqual(entry.hash, hash)) found = entry;
  if (found) outstanding.delete(found);
  for (const entry of outstanding) if (entry.expiresAtMs <= atMs) outstanding.delete(entry);
  return found;
}

/** The token is spent by now, whatever the answer. */
function launchRefusal(launch: Outstanding, hello: Hello, atMs: number): Refusal | undefined {
  if (launch.agentId !== hello.agentId) return 'token_of_another_agent';
  if (launch.expiresAtMs <= atMs) return 'token_expired';
  // A launched agent was given the Unix socket, which no other user can reach.
  if (hello.transport !== 'unix') return 'transport_not_permitted';
  return launch.pid === undefined ? 'process_unknown' : undefined;
}

async function consume(
  { registry, tenant }: GateOptions,
  { agentId, sessionToken }: Hello,
): Promise<boolean | undefined> {
  const token = { tenant, agentId, tokenHash: tokenHash(sessionToken) };
  const consumed = registry.consumeToken(token).catch(() => undefined);
  return within(REGISTRY_MS, consumed, () => undefined);
}

/** Undefined when the agent did not say. */
function matches(hash: string, said: string | undefined): boolean | undefined {
  if (said === undefined) return undefined;
  const [, hex = hash] = hash.split(':');
  return [hash, hex].includes(said.toLowerCase());
}

/** Looks closely only at text that has room for a token. */
function withoutTokens(text: string, remembered: Iterable<readonly string[]>): string {
  if (!TOKEN_RUN.test(text)) return text;
  let clean = text;
  for (const token of [...remembered].flat())
    clean = clean.replaceAll(token, mask('session_token'));
  return clean;
}

/** Takes known secrets and every token of this Core out of what agents say. */
export function withTokens(redactor: Redactor, desk: TokenDesk): Pick<Redactor, 'text' | 'json'> {
  return {
    text: (text) => redactor.text(desk.redact(text)),
    json<Value>(value: Value): Value {
      const clean = redactor.json(value);
      // A token needs no escape: it stands in the text of JSON as it is.
      const text = JSON.stringify(clean) ?? '';
      const safe = desk.redact(text);
      return safe === text ? clean : (JSON.parse(safe) as Value);
    },
  };
}
