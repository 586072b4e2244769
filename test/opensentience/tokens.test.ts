// Who may connect: tokens of launched agents and of those started by hand, right and wrong.
import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/rules/redaction.ts';
import type { AgentFolder } from '../../src/opensentience/manifest.ts';
import type { AuditNote, Hello } from '../../src/opensentience/parts.ts';
import {
  createTokenDesk,
  mintToken,
  tokenHash,
  withTokens,
} from '../../src/opensentience/tokens.ts';
import { createMemoryRegistry } from '../support/opensentience/memory-registry.ts';

const AGENT = 'com.example.notes';
const OTHER = 'com.example.other';
const TOKEN_MS = 300_000;

function given() {
  const folder = (id: string, over: Partial<AgentFolder['manifest']> = {}): AgentFolder => ({
    manifest: { id, version: '1', ...over },
    folder: '/agents',
    hash: `sha256:${'ab'.repeat(32)}`,
  });
  const notes: AuditNote[] = [];
  const clock = { nowMs: 1_000_000 };
  const registry = createMemoryRegistry(() => clock.nowMs);
  const desk = createTokenDesk({
    tenant: 'default',
    registry,
    agents: new Map([
      [AGENT, folder(AGENT, { limits: { maxInflightRequests: 3 } })],
      [OTHER, folder(OTHER)],
    ]),
    tokenMs: TOKEN_MS,
    audit: (note) => notes.push(note),
    now: () => clock.nowMs,
  });
  const hello = (sessionToken: string, over: Partial<Hello> = {}): Hello => ({
    agentId: AGENT,
    sessionToken,
    transport: 'unix',
    ...over,
  });
  const refusals = () => notes.filter(({ kind }) => kind === 'token.refused');
  /** The gate's answer and why, as audited. */
  const ask = async (one: Hello) => {
    const before = refusals().length;
    const answer = await desk.gate(one);
    return answer.ok ? 'ok' : (refusals()[before]?.details.reason ?? 'not audited');
  };
  const launched = (pid = process.pid) => {
    const token = desk.mint(AGENT);
    token.bind(pid);
    return token;
  };
  return { registry, desk, notes, clock, hello, ask, launched };
}

describe('seed 004 §5.1: the token of a launched agent', () => {
  it('is 32 random bytes, never the same', () => {
    const tokens = new Set(Array.from({ length: 100 }, mintToken));
    expect(tokens.size).toBe(100);
    for (const token of tokens) expect(Buffer.from(token, 'base64url').length).toBe(32);
  });
  it('opens one connection of its process, with what the manifest says', async () => {
    const { desk, hello, launched } = given();
    expect(await desk.gate(hello(launched().token))).toEqual({
      ok: true,
      attached: false,
      pid: process.pid,
      maxInflightRequests: 3,
    });
  });
  it.each([
    ['wrong', mintToken(), {}, 'token_unknown'],
    ['empty', '', {}, 'token_malformed'],
    ['of another form', 'x'.repeat(10_000), {}, 'token_malformed'],
    ['of another agent', undefined, { agentId: OTHER }, 'token_of_another_agent'],
    ['of an agent that has no manifest', mintToken(), { agentId: 'nobody' }, 'agent_unknown'],
    ['over TCP', undefined, { transport: 'tcp' }, 'transport_not_permitted'],
  ] as const)('%s: refused, audited without it', async (_, made, over, reason) => {
    const { ask, hello, launched, desk, notes } = given();
    const token: string = made ?? launched().token;
    expect(await ask(hello(token, over))).toBe(reason);
    expect(await desk.gate(hello(token, over))).toMatchObject({
      ok: false,
      code: 'protocol.unauthorized',
    });
    if (token) expect(JSON.stringify(notes)).not.toContain(token);
  });
  // [I47]
  it('used twice: refused', async () => {
    const { ask, hello, launched } = given();
    const { token } = launched();
    expect(await ask(hello(token))).toBe('ok');
    expect(await ask(hello(token))).toBe('token_unknown');
  });
  it('tried by another agent: spent', async () => {
    const { ask, hello, launched } = given();
    const { token } = launched();
    expect(await ask(hello(token, { agentId: OTHER }))).toBe('token_of_another_agent');
    expect(await ask(hello(token))).toBe('token_unknown');
  });
  it('after its time: refused', async () => {
    const { ask, hello, launched, clock } = given();
    const { token } = launched();
    clock.nowMs += TOKEN_MS;
    expect(await ask(hello(token))).toBe('token_expired');
  });
  it('before its process runs, and after it ended: refused', async () => {
    const { ask, hello, desk, launched } = given();
    expect(await ask(hello(desk.mint(AGENT).token))).toBe('process_unknown');
    const revoked = launched();
    revoked.revoke();
    expect(await ask(hello(revoked.token))).toBe('token_unknown');
  });
});

describe('an agent that is started by hand attaches with a minted token', () => {
  const minted = async ({ registry }: ReturnType<typeof given>, agentId = AGENT) => {
    const token = mintToken();
    const row = { tenant: 'default', agentId, tokenHash: tokenHash(token) };
    await registry.mintToken(row, TOKEN_MS);
    return token;
  };
  it('once, over either transport', async () => {
    const parts = given();
    const token = await minted(parts);
    expect(await parts.desk.gate(parts.hello(token))).toMatchObject({ ok: true, attached: true });
    expect(await parts.ask(parts.hello(token))).toBe('token_unknown');
    const tcp = { transport: 'tcp' } as const;
    expect(await parts.ask(parts.hello(await minted(parts), tcp))).toBe('ok');
  });
  it('not for another agent, not after its time', async () => {
    const parts = given();
    const { ask, hello, clock } = parts;
    expect(await ask(hello(await minted(parts, OTHER)))).toBe('token_unknown');
    const token = await minted(parts);
    clock.nowMs += TOKEN_MS;
    expect(await ask(hello(token))).toBe('token_unknown');
  });
  it('not while the registry does not answer', async () => {
    const parts = given();
    const token = await minted(parts);
    parts.registry.away = true;
    expect(await parts.ask(parts.hello(token))).toBe('registry_unavailable');
  });
});

describe('seed 004 §4.1.1: manifest_hash tells drift', () => {
  it.each([
    [undefined, undefined],
    [`sha256:${'ab'.repeat(32)}`, true],
    ['AB'.repeat(32), true],
    ['sha256:00', false],
  ])('%s: %s', async (manifestHash, matches) => {
    const { desk, hello, launched, notes } = given();
    const one = hello(launched().token, manifestHash === undefined ? {} : { manifestHash });
    const admission = await desk.gate(one);
    expect(admission.ok && admission.manifestMatches).toBe(matches);
    const kinds = notes.map(({ kind }) => kind);
    expect(kinds).toEqual(matches === false ? ['manifest.drift'] : []);
  });
});

describe('seed 004 §7.2: redaction', () => {
  it('takes tokens, spent ones too, and secrets out of text and JSON', async () => {
    const { desk, ask, hello, launched, registry } = given();
    const { token } = launched();
    await ask(hello(token));
    const foreign = mintToken();
    const minted = { tenant: 'default', agentId: AGENT, tokenHash: tokenHash(foreign) };
    await registry.mintToken(minted, TOKEN_MS);
    await ask(hello(foreign));
    const redactor = withTokens(createRedactor([{ id: 'key', value: 'very-secret' }]), desk);
    const shown = redactor.json({ [`a${token}`]: [`b ${foreign} very-secret`, 1, null] });
    expect(shown).toEqual({
      'a[REDACTED:session_token]': ['b [REDACTED:session_token] [REDACTED:key]', 1, null],
    });
    expect(redactor.text(`${token}${foreign}`)).toBe('[REDACTED:session_token]'.repeat(2));
    expect(redactor.text('plain')).toBe('plain');
  });
});
