// What never stands in an exported file (architecture §6), wherever it stood, and what an export may cost the host.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Head } from '../../src/ports/log.ts';
import type { RunRow } from '../../src/ports/runs.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { createRedactor, WITHHELD } from '../../src/rules/redaction.ts';
import type { RecordedEntry, Recording } from '../../src/rules/recording.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { runBundle } from '../../src/runs/bundle.ts';
import { readRunBundle } from '../../src/wire/run-bundle.ts';
import type { WorkflowVariable } from '../../schemas/types.generated.ts';
import { node } from '../support/definitions.ts';
import { runRow } from '../support/log-parts.ts';

const SECRET = 'the-word-that-opens-doors';
const SENSITIVE: WorkflowVariable = { name: 'word', type: 'string', sensitive: true };

interface Given {
  readonly nodes?: RunInput['definition']['nodes'];
  readonly input?: Partial<RunInput>;
  readonly variables?: readonly WorkflowVariable[];
  readonly channels?: RunInput['definition']['channels'];
  readonly recording?: Partial<Recording>;
}

function rowOf({ input = {}, variables = [SENSITIVE], channels, nodes }: Given): RunRow {
  const row = runRow('run-a');
  const { definition: before } = row.input;
  const definition = { ...before, variables: [...variables], nodes: nodes ?? before.nodes };
  return {
    ...row,
    input: {
      ...row.input,
      variables: { word: SECRET },
      ...{ definition: { ...definition, ...(channels ? { channels } : {}) }, ...input },
    },
  };
}

async function textOf(given: Given): Promise<string> {
  const head = { status: 'completed', nextSequence: 0 } as unknown as Head;
  const shown: JsonObject = {
    ...{ runId: 'run-a', workflowId: 'w', status: 'completed' },
    ...{ currentNodeId: null, startedAt: new Date(0).toISOString() },
  };
  return runBundle(
    {
      log: {
        fresh: async () => ({ head, stale: false }),
        recording: async () => ({ batches: [], entries: [], ...given.recording }),
      },
      stores: { content: { get: async () => new Uint8Array() } as never },
      redactor: createRedactor([]),
    },
    rowOf(given),
    { host: { name: 'h', version: '1' }, temporalSdk: '1', shown: () => shown },
  );
}

const bundleOf = async (given: Given) => readRunBundle(Buffer.from(await textOf(given)));

function chunk(at: number, text: string, channel: string): RecordedEntry {
  const payload = JSON.stringify({ nodeId: 'n', chunk: text, channel, sequence: at });
  return { key: `n.0#d${at}`, type: 'output.chunk', nodeId: 'n', payload, timestampMs: at };
}

describe('a sensitive text', () => {
  it('that came in pieces stands in none of them', async () => {
    // The pieces of two channels come between each other.
    const pieces = ['so the-wo', 'rd-that-o', 'pens-doors.'];
    const entries = [
      ...pieces.flatMap((piece, k) => [chunk(2 * k, piece, 'a'), chunk(2 * k + 1, 'x', 'b')]),
    ];
    const { recording } = await bundleOf({ recording: { entries } });
    const texts = recording.entries.map(({ payload }) => (JSON.parse(payload) as JsonObject).chunk);
    expect(texts).toEqual(['so [REDACTED:word].', 'x', '', 'x', '', 'x']);
  });

  it('that is a default is masked as what a run was given: of variables, of channels, and in the log', async () => {
    const entry = { key: 'k', type: 'x.note', payload: JSON.stringify({ said: `<${SECRET}>` }) };
    const { input, recording } = await bundleOf({
      input: { variables: {} },
      variables: [
        { ...SENSITIVE, defaultValue: SECRET },
        { name: 'pin', type: 'number', sensitive: true, defaultValue: 470_811 },
        { name: 'shown', type: 'string', defaultValue: 'a default' },
      ],
      channels: { door: { reducer: 'replace', sensitive: true, default: { code: 'abc' } } },
      recording: { entries: [{ ...entry, timestampMs: 1 }] },
    });
    expect(input.definition).toMatchObject({
      variables: [
        { defaultValue: '[REDACTED:default]' },
        { defaultValue: WITHHELD },
        { defaultValue: 'a default' },
      ],
      channels: { door: { default: WITHHELD } },
    });
    expect(recording.entries[0]?.payload).toBe('{"said":"<[REDACTED:default]>"}');
  });

  it('that a node writes is masked as one that it began with, and in the log', async () => {
    const literal = 'the-word-of-a-node';
    const nodes: Given['nodes'] = [
      node('set', 'core.setVariable', { config: { variableName: 'word', value: literal } }),
      node('shown', 'core.setVariable', {
        config: { variableName: 'shown', value: 'told to all' },
      }),
      node('write', 'core.channelWrite', {
        config: { channelName: 'door' },
        inputs: { value: { type: 'static', value: { deep: `${literal}-2` } } },
      }),
    ];
    const entry = { key: 'k', type: 'x.note', payload: JSON.stringify({ said: `<${literal}>` }) };
    const text = await textOf({
      nodes,
      variables: [SENSITIVE, { name: 'shown', type: 'string' }],
      channels: { door: { reducer: 'replace', sensitive: true } },
      recording: { entries: [{ ...entry, timestampMs: 1 }] },
    });
    expect(text).not.toContain(literal);
    expect(text).toContain('told to all');
  });

  it('that is a name of the run: no file is made that nobody can read', async () => {
    await expect(textOf({ input: { variables: { word: 'completed' } } })).rejects.toMatchObject({
      ...{ code: 'capability_not_provided' },
      details: { capability: 'bundle: a sensitive value that is a name of the run' },
    });
  });

  it('one more than are searched for: the file is refused by name', async () => {
    const words = (count: number) => ({
      input: { variables: { word: Array.from({ length: count }, (_, at) => `secret-word-${at}`) } },
      variables: [{ ...SENSITIVE, type: 'array' as const }],
    });
    await expect(textOf(words(200))).resolves.toContain('"withheld":["word"]');
    await expect(textOf(words(201))).rejects.toMatchObject({
      details: { capability: 'bundle: more than 200 sensitive texts' },
    });
    // The same text is searched for once.
    const same = { input: { variables: { word: Array<string>(500).fill(SECRET) } } };
    await expect(textOf({ ...words(1), ...same })).resolves.toBeTypeOf('string');
  });
});

describe('digests', () => {
  const digest = (of: string) => `sha256:${createHash('sha256').update(of).digest('hex')}`;
  const OF_SECRET = digest(`known, but for ${SECRET}`);
  const OF_SCHEMA = digest('{}');
  const GIVEN = digest('a document');
  const given = (withSecret: boolean): Given => {
    const payload = JSON.stringify({ hash: OF_SECRET, of: GIVEN });
    const events = [{ type: 'prompt.composed', payload: { hash: OF_SECRET } }];
    return {
      input: { variables: { ...(withSecret ? { word: SECRET } : {}), document: GIVEN } },
      recording: {
        batches: [
          {
            ...{ atMs: 1, position: 0, began: [] },
            stimuli: [
              {
                ...{ kind: 'step', activityId: 'n/1/0/s' },
                outcome: { kind: 'completed', result: { output: OF_SECRET, events } },
              },
              {
                ...{ kind: 'message', update: 'resolveInterrupt', updateId: 'u' },
                message: { schemaDigest: OF_SCHEMA, bodyDigest: OF_SECRET },
              },
            ],
          },
        ],
        entries: [{ key: 'n.0#0', type: 'prompt.composed', payload, timestampMs: 1 }],
      },
    };
  };

  it('of a run that works with a sensitive value tell nobody whether a guess is right', async () => {
    const text = await textOf(given(true));
    expect(text).not.toContain(OF_SECRET);
    // The same stands in its place wherever it stood; others in each file.
    const found = new Set(text.match(/sha256:[0-9a-f]{64}/g));
    expect(found.size).toBe(4);
    expect([found.has(OF_SCHEMA), found.has(GIVEN)]).toEqual([true, true]);
    const other = new Set((await textOf(given(true))).match(/sha256:[0-9a-f]{64}/g));
    expect([...other].filter((each) => found.has(each))).toHaveLength(2);
  });

  it('of another run stay', async () => {
    expect(await textOf(given(false))).toContain(OF_SECRET);
  });
});
