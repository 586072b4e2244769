// What the log of a branch has from its source, as the ledger of the branch is told (architecture §5, §6, I91): a call that
// happened is not performed again, and one that did not is.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CallToolInput } from '../../activities/contract.ts';
import { inheritAll } from '../../activities/former-effects.ts';
import { shownValue } from '../../activities/shown-value.ts';
import { HostError } from '../../src/rules/errors.ts';
import type { ChildRequest } from '../../src/rules/children.ts';
import { digestOf, emissionKey } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonObject } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { batchAfter, entry, headOf } from '../contract/given.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { AGENT_ID, bytesOf, contentJson, createRig, runActivity, type Rig } from './rig.ts';

const TOOL_ID = 'tests:pay';
const ARGUMENTS = { order: 'A-1' };
let performed = 0;
const tool = (more: Partial<Tool>): Tool => ({
  ...{ toolId: TOOL_ID, description: 'Pays.', inputSchema: { type: 'object' } },
  ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
  call: async () => ({ performed: ++performed }),
  ...more,
});

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());
beforeEach(() => {
  performed = 0;
});

interface Prefix {
  /** What the call of the attempt came to; absent: it has no answer. */
  readonly answer?: JsonObject;
  /** The code of the node closed it. */
  readonly isClosing?: boolean;
  /** Of the node; 0 unless told otherwise. */
  readonly attempt?: number;
  readonly visit?: number;
  /** What its entry says beside its ids. */
  readonly says?: JsonObject;
  readonly toolId?: string;
  /** Of the attempt; 0 unless told otherwise. */
  readonly place?: number;
  /** A human was asked whether it may be made, and said so. */
  readonly approval?: 'asked' | 'accept' | 'reject';
}

/** Returns what a call of `attempt` comes to in a branch whose log is `logWith`. */
async function callIn(rig: Rig, prefix: Prefix, attempt: number): Promise<unknown> {
  await logWith(rig, prefix);
  return callAgain(rig, { visit: prefix.visit ?? 1, attempt });
}

/** The log has one call of the node's attempt. */
async function logWith(
  rig: Rig,
  { answer, isClosing, says = {}, approval, attempt = 0, toolId = TOOL_ID, place = 0 }: Prefix,
): Promise<void> {
  const { runId } = rig;
  await stores.runs.markStarted(stores.runs.ref('default', runId), 'T1');
  const at = { nodeId: 'n', visit: 1, attempt, step: `i0.t0.c${place}` };
  const called = { agentId: AGENT_ID, toolName: toolId, callId: `call-of-${attempt}.${place}` };
  const told = (type: string, key: string, payload: object) =>
    entry(runId, key, { type, nodeId: 'n', payload: JSON.stringify(payload) });
  const key = isClosing
    ? emissionKey('agent.toolReturned', at)
    : `n/1/${attempt}/${at.step}.call#0`;
  const rows = [
    ...(place === 0
      ? [told('node.started', emissionKey('node.started', { ...at, step: 'node' }), { attempt })]
      : []),
    told('agent.toolCalled', emissionKey('agent.toolCalled', at), {
      ...{ ...called, inputs: ARGUMENTS },
      ...says,
    }),
    ...(approval
      ? [told('node.suspended', 'asked', { interruptId: 'i-1', callId: called.callId })]
      : []),
    ...(approval && approval !== 'asked'
      ? [
          told('interrupt.resolved', 'resolved', {
            ...{ interruptId: 'i-1', resumeValue: { action: approval } },
          }),
        ]
      : []),
    ...(answer ? [told('agent.toolReturned', key, { ...called, ...answer })] : []),
  ];
  await stores.log.append(batchAfter(await headOf(stores, runId), rows));
}

/** The call of `attempt` of a branch whose log has its prefix. */
async function callAgain(
  rig: Rig,
  {
    visit = 1,
    attempt = 1,
    ...more
  }: { visit?: number; attempt?: number } & Partial<CallToolInput> = {},
): Promise<unknown> {
  const { runId } = rig;
  const input: CallToolInput = {
    context: { ...rig.context, visit, attempt, activityId: `n/${visit}/${attempt}/i0.t0.c0.call` },
    agentId: AGENT_ID,
    call: {
      ...{ callId: 'call-1', toolId: TOOL_ID, arguments: ARGUMENTS, occurrence: 0 },
      argsHash: digestOf(canonicalJson(ARGUMENTS)),
    },
    tools: [TOOL_ID],
    calledKey: `agent.toolCalled|n/${visit}/${attempt}/i0.t0.c0`,
    sourceLength: (await headOf(stores, runId)).nextSequence,
    ...more,
  };
  const { output } = await runActivity(rig, 'callTool', { input });
  return output;
}

const rigOf = (more: Partial<Tool> = {}) => createRig(stores, { tools: [tool(more)] });
const READS = { idempotent: true, safetyTier: 'read' } as const;
const RETURNED = { kind: 'returned', status: 'ok' };
const error = (code: string) => ({ status: 'error', error: { code, message: 'no' } });

describe('architecture §5: of a later attempt of a branch', () => {
  test.each<[string, Prefix, object, number]>([
    ['one that happened', { answer: { outcome: { paid: 1 }, status: 'ok' } }, RETURNED, 0],
    [
      'one that happened in vain',
      { answer: error('tool_invalid_output') },
      { kind: 'returned', status: 'error' },
      0,
    ],
    ['one that a human left', { answer: error('effect_skipped') }, { kind: 'in-doubt' }, 0],
    [
      'one that a human would not have made',
      { answer: error('effect_skipped'), approval: 'reject' },
      RETURNED,
      1,
    ],
    ['one without an answer', {}, { kind: 'in-doubt' }, 0],
    [
      'one that the end of its node closed',
      { answer: error('node_timeout'), isClosing: true },
      { kind: 'in-doubt' },
      0,
    ],
    [
      'one that the end of its node closed while a human was asked whether it may be made',
      { answer: error('node_timeout'), isClosing: true, approval: 'asked' },
      RETURNED,
      1,
    ],
    ['one that did not happen', { answer: error('tool_failed') }, RETURNED, 1],
    ['one of an earlier visit', { answer: { outcome: 1, status: 'ok' }, visit: 2 }, RETURNED, 1],
  ])('%s', async (_what, prefix, output, count) => {
    expect(await callIn(await rigOf(), prefix, 1)).toMatchObject(output);
    expect(performed).toBe(count);
  });

  // [I91]
  test.each([
    ['an idempotent tool that writes', { idempotent: true }, {}, { kind: 'in-doubt' }, 0],
    ['one that reads', READS, {}, RETURNED, 1],
    ['one that reads now, and wrote then', READS, { sideEffects: true }, { kind: 'in-doubt' }, 0],
  ] as const)('in doubt, %s', async (_what, more, says, output, count) => {
    expect(await callIn(await rigOf(more), { says }, 1)).toMatchObject(output);
    expect(performed).toBe(count);
  });

  // [I91]
  test.each([
    ['it may have been made', { says: { sideEffects: true } }, { kind: 'in-doubt' }],
    ['it changes nothing, or was rehearsed', {}, RETURNED],
    [
      'a human is asked whether it may be made',
      { says: { sideEffects: true }, approval: 'asked' },
      RETURNED,
    ],
    [
      'a human has let it be made',
      { says: { sideEffects: true }, approval: 'accept' },
      { kind: 'in-doubt' },
    ],
  ] as const)('one that was under way in this very attempt: %s', async (_what, prefix, output) => {
    expect(await callIn(await rigOf(), prefix, 0)).toMatchObject(output);
    expect(performed).toBe(output === RETURNED ? 1 : 0);
  });

  // [I91]
  test.each([
    ['that was cut off elsewhere', { isClosing: true }],
    ['that a human left elsewhere', { answer: error('effect_skipped') }],
  ])('a call of another node is asked about for the sake of one %s', async (_what, prefix) => {
    const rig = await rigOf();
    const says = { sideEffects: true };
    await logWith(rig, { says, answer: error('effect_in_doubt'), ...prefix });
    const context = { ...rig.context, nodeId: 'plan-b', activityId: 'plan-b/1/0/i0.t0.c0.call' };
    const output = await callAgain(rig, { context, hasLeftCalls: true });
    expect([output, performed]).toMatchObject([{ kind: 'in-doubt' }, 0]);
    expect(await callAgain(rig, { context })).toMatchObject(RETURNED);
  });

  // [I91]
  test.each([
    ['a human would not have made', { approval: 'reject', answer: error('effect_skipped') }],
    [
      'was cut off while a human was asked whether it may be made',
      { approval: 'asked', isClosing: true, answer: error('node_timeout') },
    ],
  ] as const)('a call that %s is nobody’s doubt elsewhere', async (_what, prefix) => {
    const rig = await rigOf();
    await logWith(rig, { says: { sideEffects: true }, ...prefix });
    const context = { ...rig.context, nodeId: 'plan-b', activityId: 'plan-b/1/0/i0.t0.c0.call' };
    expect(await callAgain(rig, { context, hasLeftCalls: true })).toMatchObject(RETURNED);
  });

  // [I91]
  test('a child run is started when what was left of its tools is noted for it', async () => {
    const rig = await rigOf();
    const other = 'tests:refund';
    const left = { says: { sideEffects: true }, isClosing: true, answer: error('effect_in_doubt') };
    // With equal arguments, in their order, and one that was not left.
    for (const [place, toolId] of [TOOL_ID, other, 'tests:mail'].entries())
      await logWith(rig, { ...left, place, toolId });
    const request: ChildRequest = {
      ...{
        runId: 'run-child',
        callId: 'call-2',
        nodeId: 'sub',
        place: 'here',
        inputs: {},
        harvest: [],
      },
      ...{ target: { workflowId: 'desk' }, cause: 'core.subWorkflow', startedBy: 'it' },
      leftTools: [TOOL_ID, other],
    };
    const { context } = rig;
    const sourceLength = (await headOf(stores, rig.runId)).nextSequence;
    const input = { context, requests: [request], sourceLength };
    await runActivity(rig, 'startChildren', { input });
    const noted = await stores.effects.ofRun(runRef(rig.runId));
    const toolOf = ({ identity }: (typeof noted)[number]) => identity.toolId;
    expect(noted.toSorted((a, b) => toolOf(a).localeCompare(toolOf(b)))).toMatchObject(
      [TOOL_ID, other].map((toolId) => ({
        ...{ state: 'in-doubt', attempt: 0 },
        identity: { nodeId: 'n', visit: 1, toolId, occurrence: 0 },
      })),
    );
  });

  describe('a question that its source asked', () => {
    const words = { order: 'A-2' };
    const callOther = (rig: Rig, more: object = {}, occurrence = 0) =>
      callAgain(rig, {
        call: {
          ...{ callId: 'call-2', toolId: TOOL_ID, arguments: words, occurrence },
          argsHash: digestOf(canonicalJson(words)),
        },
        ...more,
      });
    const wordOn = (asked: string, askedAbout: number) => ({
      resolution: { kind: 'perform', asked, askedAbout } as const,
    });
    const reasonOf = async (output: Promise<unknown>) =>
      ((await output) as { reason: string }).reason;
    const doubtAt = (rig: Rig, place: number) =>
      logWith(rig, { place, says: { sideEffects: true } });

    // [I91]
    test('a word on what its source asked permits the call where the branch asks the same, and no other', async () => {
      const rig = await rigOf();
      await logWith(rig, { answer: { outcome: { paid: 1 }, status: 'ok' } });
      const reason = await reasonOf(callOther(rig));
      const other = wordOn('Something else.', 1);
      expect(await callOther(rig, other)).toMatchObject({ kind: 'in-doubt', reason });
      expect(performed).toBe(0);
      expect(await callOther(rig, wordOn(reason, 1))).toMatchObject(RETURNED);
      expect(performed).toBe(1);
      // What stands there now was made by the branch: no source has asked about that.
      const attempt = { context: { ...rig.context, visit: 1, attempt: 2 } };
      const both = await reasonOf(callOther(rig, attempt, 1));
      const again = { ...attempt, ...wordOn(both, 2) };
      expect(await callOther(rig, again, 1)).toMatchObject({ kind: 'in-doubt', reason: both });
      expect(performed).toBe(1);
    });

    // [I91]
    test('a word on fewer calls, or on more, permits nothing', async () => {
      const rig = await rigOf();
      await doubtAt(rig, 0);
      const alone = await reasonOf(callOther(rig));
      expect(await callOther(rig, wordOn(alone, 2))).toMatchObject({ kind: 'in-doubt' });
      await doubtAt(rig, 1);
      expect(await callOther(rig, wordOn(alone, 1))).toMatchObject({ kind: 'in-doubt' });
      expect(performed).toBe(0);
      const both = await reasonOf(callOther(rig));
      expect(await callOther(rig, wordOn(both, 2))).toMatchObject(RETURNED);
    });

    // [I91]
    test('a word on as many calls at other nodes permits nothing', async () => {
      const rig = await rigOf();
      for (const place of [0, 1]) await doubtAt(rig, place);
      const reason = await reasonOf(callOther(rig));
      expect(reason).toContain('node n of this run (2 calls)');
      const asked = reason.replace(' (2 calls)', '');
      expect(await callOther(rig, wordOn(asked, 2))).toMatchObject({ kind: 'in-doubt', reason });
      expect(performed).toBe(0);
    });

    // [I91]
    test('about more than five calls is gone by, and the next one is about all of them', async () => {
      const rig = await rigOf();
      for (const place of [0, 1, 2, 3, 4, 5]) await doubtAt(rig, place);
      const first = (await callOther(rig)) as { reason: string; shown: object[] };
      expect(first.shown).toHaveLength(5);
      const next = (await callOther(rig, wordOn(first.reason, 5))) as typeof first;
      expect(next).toMatchObject({ kind: 'in-doubt' });
      expect(next.reason).not.toContain('calls)');
      expect(next.shown).toHaveLength(6);
      expect(next.shown).toEqual(expect.arrayContaining(first.shown) as unknown);
      const resolution = { kind: 'perform', shown: next.shown };
      expect(await callOther(rig, { resolution })).toMatchObject(RETURNED);
      expect(performed).toBe(1);
    });
  });

  // [I91]
  test('a fork of a child run notes what its source’s log has, for those that come in its place', async () => {
    const source = await rigOf();
    const absent = { contentRef: `sha256:${'0'.repeat(64)}`, bytes: 40_000, preview: '{' };
    const says = { sideEffects: true };
    const calls: (Prefix & { readonly toolId: string })[] = [
      { toolId: 'a:done', answer: { outcome: { paid: 1 }, status: 'ok' } },
      { toolId: 'b:in-vain', answer: error('tool_invalid_output') },
      { toolId: 'c:cut-off', says },
      { toolId: 'd:left', says, answer: error('effect_skipped') },
      { toolId: 'e:gone', says, answer: { outcome: absent, status: 'ok' } },
      { toolId: 'f:harmless' },
      { toolId: 'g:not-happened', says, answer: error('tool_failed') },
      { toolId: 'agent:other', answer: { outcome: 1, status: 'ok' } },
    ];
    for (const [place, call] of calls.entries()) await logWith(source, { ...call, place });
    const { ports, runId, context } = await rigOf();
    const header = { ...context.header, series: 'the-series' };
    const rows = await stores.log.read(runRef(source.runId), { after: -1, limit: 100 });
    async function* all() {
      yield* rows;
    }
    await inheritAll(ports, { tenant: context.tenant, runId, header }, all());
    const noted = await stores.effects.ofRun(runRef(runId));
    expect(
      noted.map(({ identity, state }) => [identity.toolId, identity.series, state]).toSorted(),
    ).toEqual([
      ['a:done', 'the-series', 'done'],
      ['b:in-vain', 'the-series', 'done-without-result'],
      ...['c:cut-off', 'd:left', 'e:gone'].map((toolId) => [toolId, 'the-series', 'in-doubt']),
    ]);
  });

  // [I91]
  test('a doubt elsewhere that a later attempt settled is none, and what others got is not read', async () => {
    const rig = await rigOf();
    const says = { sideEffects: true };
    await logWith(rig, { says, isClosing: true, answer: error('effect_in_doubt') });
    const absent = { contentRef: `sha256:${'0'.repeat(64)}`, bytes: 40_000, preview: '{' };
    await logWith(rig, { says, attempt: 1, answer: { outcome: absent, status: 'ok' } });
    const context = { ...rig.context, nodeId: 'plan-b', activityId: 'plan-b/1/0/i0.t0.c0.call' };
    expect(await callAgain(rig, { context, hasLeftCalls: true })).toMatchObject(RETURNED);
  });

  describe('whose result the log shows by reference', () => {
    const large = { rows: Array.from({ length: 4_000 }, (_, at) => `row ${at}`) };
    const absent = `sha256:${'0'.repeat(64)}`;

    /** A rig whose content store fails to read these so often, and a value that it has. */
    async function storing(fails: { readonly hash: () => string; times: number }) {
      const get: Stores['content']['get'] = async (tenant, hash) => {
        if (hash === fails.hash() && fails.times-- > 0) throw new HostError('service_unavailable');
        return stores.content.get(tenant, hash);
      };
      const rig = await createRig(
        { ...stores, runs: stores.runs, content: { ...stores.content, get } },
        { tools: [tool({})] },
      );
      const holder = { tenant: 'default', runId: rig.runId };
      return { rig, hash: await stores.content.put(holder, bytesOf(large)) };
    }

    test('[I98] it is the result itself, and no pointer to it, also where the store was away at first', async () => {
      const fails = { hash: (): string => known, times: 1 };
      const { rig, hash: known } = await storing(fails);
      const answer = { outcome: shownValue(large, known), status: 'ok' };
      await expect(callIn(rig, { answer }, 1)).rejects.toMatchObject({
        ...{ type: 'service_unavailable', nonRetryable: false },
      });
      expect(await stores.effects.ofRun(runRef(rig.runId))).toEqual([]);
      expect(await callAgain(rig)).toMatchObject({ ...RETURNED, resultHash: known });
      expect(performed).toBe(0);
    });

    test('one that is not there any more fails by name: it is not known what the source got', async () => {
      const { rig } = await storing({ hash: () => '', times: 0 });
      const answer = { outcome: shownValue(large, absent), status: 'ok' };
      await expect(callIn(rig, { answer }, 1)).rejects.toMatchObject({ type: 'content_missing' });
      expect(performed).toBe(0);
    });

    test.each([
      ['names no content', { contentRef: 'elsewhere', bytes: 40_000, preview: '{' }],
      ['is smaller than what is referred to', { contentRef: absent, bytes: 2, preview: '{}' }],
      ['says more', { contentRef: absent, bytes: 40_000, preview: '{', more: true }],
    ])('a value that only looks so, since it %s, is itself', async (_what, outcome) => {
      const { rig } = await storing({ hash: () => '', times: 0 });
      const output = await callIn(rig, { answer: { outcome, status: 'ok' } }, 1);
      const { resultHash } = output as { resultHash: string };
      expect(await contentJson(rig, resultHash)).toEqual(outcome);
    });
  });
});
