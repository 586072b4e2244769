// A run in one file: whatever is not what was made is refused by name, and never obeyed.
import { describe, expect, it } from 'vitest';
import type { RunBundle } from '../../schemas/types.generated.ts';
import { codeOf } from '../../src/rules/errors.ts';
import { canonicalJson } from '../../src/rules/json.ts';
import { RUN_BUNDLE_BYTES } from '../../src/rules/limits.ts';
import { REDACTION } from '../../src/rules/redaction.ts';
import { bundleText, readRunBundle } from '../../src/wire/run-bundle.ts';

const CONTENT: Omit<RunBundle, 'checksum'> = {
  exportedAt: '2026-11-24T00:00:00.000Z',
  format: 'openwop-temporal.run-bundle',
  formatVersion: 1,
  host: { name: 'openwop-temporal', version: '0.1.0', vendor: 'openwop-temporal' },
  versions: {
    ...{ engine: 1, eventLog: 2, translate: 1, revision: 1 },
    ...{ temporalSdk: '1.24.0', node: 'v20.19.0' },
  },
  redaction: { ...REDACTION, withheld: [] },
  run: { runId: 'run-1', workflowId: 'w', status: 'completed' },
  input: {
    ...{ runId: 'run-1', tenant: 'default', idSeed: 'run-1', translateVersion: 1 },
    ...{ subject: { subjectId: 'ada' }, era: 2, revision: 1 },
    header: { sessionId: 'session-1', correlationId: 'run-1' },
    definition: { id: 'w', nodes: [], edges: [], variables: [], settings: {} },
    ...{ source: 'workflow-node', variables: { tö: '…' }, configurable: {}, agents: {} },
    limits: { maxNodeExecutions: 1, maxRunDurationMs: 1, interruptTimeoutMs: 1 },
    policy: {},
  },
  manifests: [
    { agentId: 'a.b', manifestHash: `sha256:${'0'.repeat(64)}`, resolved: { systemPrompt: 'p' } },
  ],
  recording: {
    batches: [
      {
        ...{ atMs: 1, begins: true, position: 0, began: ['n/1/0/s'] },
        stimuli: [
          {
            ...{ kind: 'step', activityId: 'n/1/0/s' },
            outcome: { kind: 'completed', result: { output: null, events: [] } },
          },
          { kind: 'timer', deadlineMs: 5 },
          { kind: 'message', update: 'cancelRun', updateId: 'u', message: {} },
          { kind: 'child-ended', childRunId: 'run-2' },
          { kind: 'cancel-requested' },
        ],
      },
    ],
    entries: [{ key: 'run.started', type: 'run.started', payload: '{"a":1}', timestampMs: 1 }],
  },
};
const bytesOf = (text: string) => new TextEncoder().encode(text);
const TEXT = bundleText(CONTENT);

function refused(file: Uint8Array): string | undefined {
  try {
    readRunBundle(file);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    return code;
  }
}
/** As somebody would make it who knows how. */
const made = (change: (content: never) => void): Uint8Array => {
  const content = structuredClone(CONTENT);
  change(content as never);
  return bytesOf(bundleText(content));
};

describe('a run in one file', () => {
  it('is read as it was made, and is canonical JSON', () => {
    const bundle = readRunBundle(bytesOf(TEXT));
    expect(bundle).toMatchObject(CONTENT);
    expect(canonicalJson(bundle)).toBe(TEXT);
  });

  it('may be written in another way, as long as it says the same', () => {
    const pretty = JSON.stringify(JSON.parse(TEXT), null, 2);
    expect(readRunBundle(bytesOf(pretty))).toMatchObject(CONTENT);
  });

  it('[I103] with a number that would change is refused at its place', () => {
    const file = bytesOf(TEXT.replace('{', '{"a":9007199254740993,'));
    expect(() => readRunBundle(file)).toThrow('/a is a number that cannot be kept exactly');
  });

  it('with any byte changed is refused', () => {
    const file = bytesOf(TEXT);
    const taken = [...file.keys()].flatMap((at) =>
      [1, 0x20, 0x80].flatMap((bit) => {
        const other = Uint8Array.from(file);
        other[at] = (file[at] ?? 0) ^ bit;
        return refused(other) === undefined ? [`${at}^${bit}`] : [];
      }),
    );
    expect(taken).toEqual([]);
  });

  it.each<[string, Uint8Array, string]>([
    ['another value', bytesOf(TEXT.replace('"p"', '"q"')), 'bundle_changed'],
    ['another checksum', bytesOf(TEXT.replace(/sha256:./, 'sha256:x')), 'bundle_changed'],
    ['no checksum', bytesOf(canonicalJson(CONTENT)), 'bundle_changed'],
    ['nothing', new Uint8Array(), 'bundle_invalid'],
    ['no JSON', bytesOf(TEXT.slice(0, -1)), 'bundle_invalid'],
    ['no UTF-8', Uint8Array.from([0xff, 0xfe, 0x7b]), 'bundle_invalid'],
    ['no object', bytesOf('[1]'), 'bundle_invalid'],
    ['another kind of file', bytesOf('{"format":"zip"}'), 'bundle_invalid'],
    [
      'depth without end',
      bytesOf(TEXT.replace('{', `{"a":${'['.repeat(99_999)}${']'.repeat(99_999)},`)),
      'bundle_invalid',
    ],
    // Whoever reads it must not open them first: that takes gigabytes.
    ['depth that is never left', bytesOf('['.repeat(RUN_BUNDLE_BYTES)), 'bundle_invalid'],
    ['more bytes than it may have', new Uint8Array(RUN_BUNDLE_BYTES + 1), 'payload_too_large'],
  ])('%s is refused', (_what, file, code) => {
    expect(refused(file)).toBe(code);
  });

  it.each<[string, (content: never) => void, string]>([
    [
      'a run that is a path',
      ({ run, input }: RunBundle) => void (run.runId = input.runId = '../x'),
      'bundle_invalid',
    ],
    [
      'an agent that is a path',
      ({ manifests }: RunBundle) =>
        void ((manifests[0] ?? { agentId: '' }).agentId = '/etc/passwd'),
      'bundle_invalid',
    ],
    [
      'a session that is a path',
      ({ input }: RunBundle) => void (input.header.sessionId = '..'),
      'bundle_invalid',
    ],
    [
      'a child that is a path',
      ({ recording }: RunBundle) =>
        void recording.batches[0]?.stimuli.push({ kind: 'child-ended', childRunId: 'a/b' }),
      'bundle_invalid',
    ],
    [
      'a member that is none',
      (content: RunBundle) => void Object.assign(content, { x: 1 }),
      'bundle_invalid',
    ],
    ['a fork', ({ input }: RunBundle) => void Object.assign(input, { fork: {} }), 'bundle_invalid'],
    [
      'state carried along',
      ({ input }: RunBundle) => void Object.assign(input, { carried: {} }),
      'bundle_invalid',
    ],
    [
      'another stimulus',
      ({ recording }: RunBundle) =>
        void recording.batches[0]?.stimuli.push({ kind: 'shell' } as never),
      'bundle_invalid',
    ],
    [
      'a payload that is no JSON',
      ({ recording }: RunBundle) => void (recording.entries[0]!.payload = '{'),
      'bundle_invalid',
    ],
    [
      '[I103] a payload with a number that would change',
      ({ recording }: RunBundle) => void (recording.entries[0]!.payload = '{"a":1e400}'),
      'bundle_invalid',
    ],
    [
      'a payload that is no object',
      ({ recording }: RunBundle) => void (recording.entries[0]!.payload = '1'),
      'bundle_invalid',
    ],
    [
      'a run that nobody started',
      ({ input }: RunBundle) => void Object.assign(input, { subject: {} }),
      'bundle_invalid',
    ],
    [
      'questions that stand for ever',
      ({ input }: RunBundle) => void Object.assign(input.limits, { interruptTimeoutMs: undefined }),
      'bundle_invalid',
    ],
    ['parts of two runs', ({ run }: RunBundle) => void (run.runId = 'run-2'), 'bundle_invalid'],
    [
      'a newer form',
      (content: RunBundle) => void Object.assign(content, { formatVersion: 2 }),
      'bundle_unsupported',
    ],
    [
      'newer rules of translation',
      ({ input }: RunBundle) => void (input.translateVersion = 2),
      'bundle_unsupported',
    ],
    ['another era', ({ input }: RunBundle) => void (input.era = 3), 'bundle_unsupported'],
    [
      'a newer revision',
      ({ input }: RunBundle) => void (input.revision = 99),
      'bundle_unsupported',
    ],
  ])('that somebody made with %s is refused', (_what, change, code) => {
    expect(refused(made(change))).toBe(code);
  });

  it('that would be larger than it may be is not made', () => {
    const payload = JSON.stringify({ text: 'x'.repeat(RUN_BUNDLE_BYTES) });
    const entry = { key: 'k', type: 't', payload, timestampMs: 1 };
    const recording = { batches: [], entries: [entry] };
    expect(() => bundleText({ ...CONTENT, recording })).toThrow('at most');
  });
});
