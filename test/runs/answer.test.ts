// Which question an answer reaches (architecture §4): the one that it names, else the oldest that is open at the node.
import { describe, expect, test } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { returnSchemaOf } from '../../activities/decision.ts';
import { jsonBytes, type JsonObject, type JsonValue } from '../../src/rules/json.ts';
import type { ResolveInterruptMessage } from '../../src/rules/messages.ts';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { INLINE_VALUE_BYTES } from '../../src/rules/limits.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { subjectOf, type Subject } from '../../src/rules/subject.ts';
import type { StandingVote } from '../../src/rules/votes.ts';
import type { ApprovalGateConfig } from '../../schemas/types.generated.ts';
import { fold } from '../../src/log/fold.ts';
import { answerInterrupt, answerOpen } from '../../src/runs/answer.ts';
import {
  compileUserSchema,
  USER_SCHEMA_BYTES,
  USER_SCHEMA_DEPTH,
} from '../../src/wire/user-schema.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { ANSWER_LIST, ratificationSchema } from '../../workflows/ratification.ts';
import { runRef } from '../support/run-ref.ts';
import { standingVote } from '../support/votes.ts';

const ADA = subjectOf('api-key', 'default', 'ada');

interface Sent {
  readonly updateId: string;
  readonly interruptId: string;
  readonly resolvedBy: Subject;
  readonly value: JsonValue;
}
type Deps = Parameters<typeof answerInterrupt>[0];
const ROW = runRef('r') as Parameters<typeof answerInterrupt>[1]['row'];

const row = (type: string, key: string, payload: object) => ({
  ...{ runId: 'r', sequence: 0, eventId: `evt-${key}-${type}`, key, type },
  ...{ nodeId: 'gate', timestampMs: 1, payload: JSON.stringify(payload) },
});
const suspended = (id: string) =>
  row('node.suspended', id, { nodeId: 'gate', interruptId: id, kind: 'approval', key: id });
const requested = (id: string, more: object = {}) =>
  row('interrupt.requested', id, { kind: 'approval', key: id, data: {}, ...more });

/** A run whose node asked these, in this order, and waits for all of them; and what goes to it. */
function asking(open: readonly string[]): { readonly deps: Deps; readonly sent: Sent[] } {
  return waiting(open.flatMap((id) => [suspended(id), requested(id)]));
}

function waiting(rows: readonly ReturnType<typeof row>[]): {
  readonly deps: Deps;
  readonly sent: Sent[];
} {
  const head = { snapshot: fold(null, rows), closed: false };
  const sent: Sent[] = [];
  const deps = {
    log: { fresh: async () => ({ head, stale: false }) },
    redactor: createRedactor([{ id: 'vault', value: 'open-sesame' }]),
    engine: {
      async send(_runId: string, updateId: string, message: ResolveInterruptMessage) {
        const { interruptId, resolvedBy, value, bodyDigest } = message;
        sent.push({ updateId, interruptId, resolvedBy, value });
        return { status: 'resolved', bodyDigest };
      },
    },
  } as unknown as Deps;
  return { deps, sent };
}

async function answer(deps: Deps, value: JsonValue, interruptId?: string): Promise<void> {
  await answerInterrupt(
    deps,
    { row: ROW, nodeId: 'gate', interruptId, value, resolvedBy: ADA },
    {
      ...{ updateId: 'k-1', bodyDigest: 'digest', isRepeatable: true },
      binding: { boundTo: undefined, bind: async () => undefined },
    },
  );
}

async function sentTo(open: readonly string[], interruptId?: string): Promise<Sent | undefined> {
  const { deps, sent } = asking(open);
  await answer(deps, {}, interruptId);
  return sent[0];
}

test("the node's address answers the oldest of several that are open, whatever their ids are", async () => {
  expect(await sentTo(['int-9', 'int-1', 'int-5'])).toMatchObject({ interruptId: 'int-9' });
});

test('one that the log does not tell yet is answered later, and nothing is sent', async () => {
  const { deps, sent } = waiting([suspended('int-1')]);
  for (const interruptId of [undefined, 'int-1'])
    await expect(answer(deps, {}, interruptId)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
  expect(sent).toEqual([]);
});

test.each([
  ['service_unavailable', { resumeSchema: { type: 'object', required: [] } }],
  ['interrupt_gone', {}],
])(
  'where the run refuses it and the log says that it is open: %s, asked with %j',
  async (code, more) => {
    const before = waiting([suspended('int-1'), requested('int-1')]).deps;
    const { deps } = waiting([suspended('int-1'), requested('int-1', more)]);
    let reads = 0;
    const log = {
      fresh: (run: never) => (++reads > 1 ? deps : before).log.fresh(run),
      async *questions() {
        yield [suspended('int-1')];
      },
    };
    const engine = { send: () => Promise.reject(new HostError('interrupt_already_resolved')) };
    await expect(answer({ ...deps, log, engine } as never, {})).rejects.toMatchObject({ code });
  },
);

test('one that is named is answered, though an older one is open', async () => {
  expect(await sentTo(['int-9', 'int-1'], 'int-1')).toMatchObject({ interruptId: 'int-1' });
});

test('a key that nothing holds any more is another answer for another question of the node', async () => {
  const [first, again, other] = [
    await sentTo(['int-1']),
    await sentTo(['int-1']),
    await sentTo(['int-2']),
  ];
  expect(again?.updateId).toBe(first?.updateId);
  expect(other?.updateId).not.toBe(first?.updateId);
});

test('architecture §9: who answers is told to the run whole', async () => {
  expect((await sentTo(['int-1']))?.resolvedBy).toEqual(ADA);
});

describe('an answer reaches the run as it was given', () => {
  const TOKEN = 'sk-kosice-warehouse-02';
  const open = { nodeId: 'gate', interruptId: 'int-1', data: {} } as Parameters<
    typeof answerOpen
  >[1];

  // [I116]
  test.each<[string, JsonValue, string]>([
    ['a choice', { answers: { house: TOKEN } }, '/answers/house'],
    ['a part of a text', { action: 'accept', feedback: `see ${TOKEN}` }, '/feedback'],
    ['a known secret in a list', [1, { 'a/b': ['open-sesame'] }], '/1/a~1b/0'],
    ['the name of a member', { edited: { [TOKEN]: 1 } }, '/edited'],
    ['a plain value', TOKEN, ''],
  ])('%s that would be stored otherwise is refused at its place', async (_, value, pointer) => {
    const { deps, sent } = asking(['int-1']);
    const refused = {
      code: 'validation_error',
      details: {
        field: `/resumeValue${pointer}`,
        reason: `The answer looks like it holds a secret (${pointer === '' ? 'as a whole' : `at ${pointer}`}). Secrets are never stored, so it was not taken.`,
      },
    };
    const bySender = answer(deps, value);
    await expect(bySender).rejects.toMatchObject(refused);
    await expect(
      answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard: 0 }),
    ).rejects.toMatchObject(refused);
    expect(sent).toEqual([]);
    await bySender.catch((error: unknown) =>
      expect(JSON.stringify(error)).not.toMatch(/warehouse|sesame/),
    );
  });

  test('any other is sent unchanged, also one that holds a mask', async () => {
    const { deps, sent } = asking(['int-1']);
    const value = {
      action: 'edit-accept',
      editedArtifactData: { key: '[REDACTED:vault]', sk: 'sk-1' },
    };
    await answer(deps, value);
    await answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard: 0 });
    expect(sent.map((one) => one.value)).toEqual([value, value]);
  });
});

// [I103]
test('a list of answers has each id once, or is refused at the place of the second', async () => {
  const { deps, sent } = asking(['int-1']);
  const open = {
    ...{ nodeId: 'gate', interruptId: 'int-1', data: {} },
    resumeSchema: ratificationSchema(undefined, [ANSWER_LIST]),
  } as unknown as Parameters<typeof answerOpen>[1];
  const send = (...ids: string[]) => {
    const answers = ids.map((id, answer) => ({ id, answer }));
    return answerOpen(deps, open, { row: ROW, value: { answers }, resolvedBy: ADA, heard: 0 });
  };
  await expect(send('why', 'guidance', 'guidance')).rejects.toMatchObject({
    code: 'validation_error',
    details: { field: '/resumeValue/answers/2/id' },
  });
  await expect(send('__proto__')).rejects.toMatchObject({
    details: { field: '/resumeValue/answers/0/id' },
  });
  await send('why', 'guidance');
  expect(sent).toHaveLength(1);
});

describe('a decision of an agent with a return schema', () => {
  const own: JsonObject = { type: 'object', required: ['kind'] };
  const nested = (levels: number): JsonObject => (levels === 0 ? {} : { not: nested(levels - 1) });
  const many = Object.fromEntries(
    Array.from({ length: 1_335 }, (_, at) => [`p${at}`, { type: 'string' }]),
  );
  const large = 'a'.repeat(USER_SCHEMA_BYTES - jsonBytes({ ...own, description: '' }));

  // [I117]
  test.each<[string, JsonObject]>([
    ['as large as it may be', { ...own, description: large }],
    ['of as many parts as it may have', { ...own, properties: many }],
    ['as deep as it may be', { ...own, contentSchema: nested(USER_SCHEMA_DEPTH - 1) }],
    [
      'of an older dialect',
      {
        ...{ ...own, $schema: 'http://json-schema.org/draft-07/schema#' },
        properties: { list: { items: [{ type: 'string' }] } },
      },
    ],
  ])('can be answered, and is held to it: %s', async (_, returnSchema) => {
    expect(compileUserSchema(returnSchema).ok).toBe(true);
    for (const orchestrates of [undefined, { workerIds: ['a'] }]) {
      const schema = returnSchemaOf({ returnSchema }, orchestrates);
      const open = {
        ...{ nodeId: 'gate', interruptId: 'int-1', data: {} },
        resumeSchema: ratificationSchema(schema, [ANSWER_LIST]),
      } as unknown as Parameters<typeof answerOpen>[1];
      const { deps, sent } = asking(['int-1']);
      const send = (value: JsonValue) =>
        answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard: 0 });
      const decided = (decision: JsonValue) => send({ action: 'edit-accept', decision });
      await expect(decided({})).rejects.toMatchObject({ code: 'validation_error' });
      await send({ action: 'accept' });
      await decided({ kind: 'terminate' });
      expect(sent).toHaveLength(2);
    }
  });
});

describe('why somebody answers so', () => {
  const open = {
    ...{ nodeId: 'gate', interruptId: 'int-1', data: {} },
    resumeSchema: approvalSchema(['accept', 'reject']),
  } as unknown as Parameters<typeof answerOpen>[1];
  const send = async (value: JsonValue) => {
    const { deps, sent } = asking(['int-1']);
    await answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard: 0 });
    return sent.map((one) => one.value);
  };

  // [I117]
  test('one reason is told: another one beside it is refused by its name', async () => {
    const value = { action: 'reject', feedback: 'Too dear.' };
    await expect(send({ ...value, reason: 'Too late.' })).rejects.toMatchObject({
      code: 'validation_error',
      details: {
        field: '/resumeValue/reason',
        reason: expect.stringMatching(/feedback/) as string,
      },
    });
    for (const reason of ['', 'Too dear.'])
      expect(await send({ ...value, reason })).toEqual([{ ...value, reason }]);
  });
});

// [I117]
test('an answer is as large as the outputs of its gate may be, which have why twice', async () => {
  const actions: ApprovalGateConfig['actions'] = ['accept', 'edit', 'reject'];
  const open = {
    ...{ nodeId: 'gate', interruptId: 'int-1' },
    data: { artifactType: 'approval', choices: offeredActions({ actions }) },
    resumeSchema: approvalSchema(['accept', 'edit-accept', 'reject']),
  } as unknown as Parameters<typeof answerOpen>[1];
  const { deps, sent } = asking(['int-1']);
  const given = (more: number): JsonObject => {
    const value = { action: 'edit-accept', feedback: 'f'.repeat(8000), editedArtifactData: '' };
    const left = INLINE_VALUE_BYTES - jsonBytes({ ...value, reason: value.feedback });
    return { ...value, editedArtifactData: 'a'.repeat(left + more) };
  };
  const send = (value: JsonValue) =>
    answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard: 0 });
  await expect(send(given(1))).rejects.toMatchObject({ code: 'payload_too_large' });
  await send(given(0));
  expect(sent).toHaveLength(1);
  // A no has no outputs.
  const no = { action: 'reject', reason: '\u754c'.repeat(8000) };
  expect(jsonBytes({ ...no, feedback: no.reason })).toBeGreaterThan(INLINE_VALUE_BYTES);
  await send(no);
  expect(sent).toHaveLength(2);
  // Nor has a question of the host's own, as whether a call is made.
  const own = { ...open, data: { ...open.data, artifactType: 'tool-call' } };
  await answerOpen(deps, own, { row: ROW, value: given(1), resolvedBy: ADA, heard: 0 });
  expect(sent).toHaveLength(3);
});

describe('interrupt-profiles.md §quorum: a vote by a form', () => {
  const choices = offeredActions({ actions: ['accept', 'reject', 'ask'] });
  /** To a question with these votes, by who saw it when it had `heard` of them. */
  const sent = async (
    given: string | (JsonObject & { action: string }),
    heard: number,
    votes: readonly StandingVote[] = [],
  ) => {
    const value = typeof given === 'string' ? { action: given } : given;
    const open = {
      ...{ nodeId: 'gate', interruptId: 'int-1', data: { choices, votes, requiredApprovals: 2 } },
      resumeSchema: approvalSchema(['accept', 'reject', 'ask']),
    } as unknown as Parameters<typeof answerOpen>[1];
    const { deps, sent: all } = asking(['int-1']);
    await answerOpen(deps, open, { row: ROW, value, resolvedBy: ADA, heard });
    return all[0]?.updateId;
  };
  const vote = (voter: string, action: string, heard: number) =>
    standingVote(voter, { action }, { heard });

  // [I94]
  test('sent twice is one vote, and the same answer after a change is another one', async () => {
    const first = await sent('reject', 0);
    expect(await sent('reject', 0, [vote('ada', 'reject', 1)])).toBe(first);
    const second = await sent('accept', 1, [vote('ada', 'reject', 1)]);
    const third = await sent('reject', 2, [vote('ada', 'accept', 2)]);
    expect(new Set([first, second, third]).size).toBe(3);
  });

  // [I94]
  test('a form from before another vote of its sender is refused, and one of the same vote is a repeat', async () => {
    const changed = [vote('ada', 'accept', 2)];
    await expect(sent('reject', 0, changed)).rejects.toMatchObject({
      code: 'validation_error',
      details: { reason: expect.stringMatching(/voted again since/) as string },
    });
    expect(await sent('accept', 1, changed)).toBeDefined();
    // What others have said meanwhile, and a question back, stand in nobody's way.
    expect(await sent('reject', 0, [vote('bob', 'accept', 2)])).toBeDefined();
    expect(await sent('ask', 0, changed)).toBeDefined();
    // One for the same, with a reason that a later one has replaced, is not lost without a word.
    const why = { action: 'accept', feedback: 'Fair.' };
    const said = [standingVote('ada', why, { heard: 2 })];
    expect(await sent(why, 0, said)).toBeDefined();
    await expect(sent({ ...why, feedback: 'Cheap.' }, 0, said)).rejects.toMatchObject({
      code: 'validation_error',
    });
    expect(await sent({ ...why, feedback: 'Cheap.' }, 2, said)).toBeDefined();
  });
});
