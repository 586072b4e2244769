// `openwop start` with inputs: text typed by the workflow's variables, JSON as it is written, and what is refused before
// anything is sent.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inputsOf } from '../../src/cli/input-values.ts';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';
import { scriptedHost, type Scripted, type ScriptedHost } from './scripted-host.ts';

const lost: Scripted = (response) => void response.destroy();

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

describe('openwop start --input', () => {
  const declared = (['string', 'number', 'boolean', 'object', 'array'] as const).map((type) => ({
    ...{ name: type, type },
  }));
  it.each([
    ['string=12', { string: '12' }],
    ['string=a=b', { string: 'a=b' }],
    ['string=', { string: '' }],
    ['number=12.5', { number: 12.5 }],
    ['boolean=true', { boolean: true }],
    ['object={"a":1}', { object: { a: 1 } }],
    ['array=[1]', { array: [1] }],
    ['string:="12"', { string: '12' }],
    ['number:=null', { number: null }],
  ])('%s', (text, inputs) => {
    expect(inputsOf([text], declared)).toEqual(inputs);
  });
  it.each([
    ...['number=many', 'number="1"', 'number=', 'boolean=yes', 'boolean=1', 'object=[1]'],
    ...['object={', 'array={}', 'string:=12', 'string:=x', 'nothing=1', 'string', '=1'],
  ])('%s is told before anything is sent', (text) => {
    expect(() => inputsOf([text], declared)).toThrow(/input/);
  });

  it('one name twice is refused before anything is sent', () => {
    for (const second of ['number=2', 'number:=2'])
      expect(() => inputsOf(['number=1', 'string=a', second], declared)).toThrow(/"number" twice/);
  });

  it('from a file, the input, and over it one by one; a lost answer starts no second run', async () => {
    const body = { runId: 'run-1', status: 'pending', eventsUrl: 'x' };
    host.script({
      'GET /v1/workflows/w': { body: { variables: declared } },
      'POST /v1/runs': [lost, { status: 201, body }],
    });
    const input = Readable.from(['{"string":"a",', '"number":1}']);
    const args = ['start', 'w', '--inputs', '-', '--input', 'number=2', '--tag', 't', '--json'];
    const { code, out } = await host.run(args, { input });
    expect([code, JSON.parse(out)]).toEqual([0, body]);
    const [first, second] = host.asked.slice(1);
    expect(second?.body).toEqual({
      ...{ workflowId: 'w', inputs: { string: 'a', number: 2 }, tags: ['t'] },
    });
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    const wrong = await host.run(['start', 'w', '--inputs', '@/nothing/here']);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('/nothing/here')]);
    expect((await host.run(['start', 'w', '--inputs', '[1]'])).code).toBe(2);
  });

  describe('from a file and from the input', () => {
    const folder = mkdtempSync(join(tmpdir(), 'openwop-inputs-'));
    afterAll(() => rmSync(folder, { recursive: true }));
    /** Of the file, and of the input one byte at a time, as a pipe may cut it. */
    const started = async (bytes: Buffer) => {
      const file = join(folder, 'inputs.json');
      writeFileSync(file, bytes);
      const input = Readable.from([...bytes].map((byte) => Buffer.from([byte])));
      const body = { runId: 'run-1', status: 'pending', eventsUrl: 'x' };
      host.script({
        'GET /v1/workflows/w': { body: { variables: declared } },
        'POST /v1/runs': [
          { status: 201, body },
          { status: 201, body },
        ],
      });
      const ends = [
        await host.run(['start', 'w', '--inputs', `@${file}`]),
        await host.run(['start', 'w', '--inputs', '-'], { input }),
      ];
      const posts = host.asked.filter(({ line }) => line.startsWith('POST'));
      return { ends, file, inputs: posts.map(({ body }) => (body as { inputs: unknown }).inputs) };
    };
    it.each(Object.entries(EDITORS))('read as an editor saved it: %s', async (_, saved) => {
      const inputs = { string: 'Grüße, 世界 𝄞', number: 1 };
      const done = await started(saved(`${JSON.stringify(inputs, undefined, 2)}\n`));
      expect(done.ends.map(({ code }) => code)).toEqual([0, 0]);
      expect(done.inputs).toEqual([inputs, inputs]);
    });
    it.each(Object.entries(NO_TEXT))('what is no text is refused: %s', async (_, bytes) => {
      const { ends, file, inputs } = await started(bytes);
      expect(ends.map(({ code, err }) => [code, err])).toEqual([
        [2, expect.stringMatching(/^openwop: The file .* is no.*; save it as UTF-8\.\n$/)],
        [
          2,
          expect.stringMatching(/^openwop: The input of --inputs is no.*; save it as UTF-8\.\n$/),
        ],
      ]);
      expect(ends[0]?.err).toContain(file);
      expect(inputs).toEqual([]);
    });
  });

  it.each([
    ['--inputs', '{"order":9007199254740993}', '--inputs cannot be accepted: /order is a number'],
    ['--inputs', '{"order":1,"order":2}', '--inputs cannot be accepted: /order is a name that'],
    ['--inputs', '{"order":{"__proto__":1}}', '--inputs cannot be accepted: /order/__proto__ is a'],
    ['--input', 'number=9007199254740993', 'The input "number" is a number that cannot be kept'],
    ['--input', 'number:=1e400', 'The input "number" is a number that cannot be kept'],
    ['--input', 'object={"a":[1e400]}', 'The input "object" cannot be accepted: /a/0 is a number'],
  ])('[I103] %s %s is refused before anything is sent', async (flag, text, words) => {
    host.script({ 'GET /v1/workflows/w': { body: { variables: declared } } });
    const { code, err } = await host.run(['start', 'w', flag, text]);
    expect([code, err]).toEqual([2, expect.stringContaining(words)]);
    expect(host.asked.filter(({ line }) => line.startsWith('POST'))).toEqual([]);
  });
});
