// `openwop runs …` and `openwop start` against a server that answers as each test says: what is printed, for humans and
// for programs, what is sent, and every way to fail.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANSWER_NOTICES, OVER } from '../../src/words/outcome.ts';
import {
  frames,
  KEY,
  refusal,
  scriptedHost,
  type Scripted,
  type ScriptedHost,
} from './scripted-host.ts';

const OVERVIEW = 'GET /v1/host/openwop-temporal/runs';
const RUN = 'GET /v1/runs/run-1';
const EVENTS = 'GET /v1/runs/run-1/events';
const QUESTIONS = `${OVERVIEW}/run-1/questions`;
const ANSWER = 'POST /v1/runs/run-1/interrupts/gate';
const HOSTILE = 'a\u001b[2Jb\u0007\u202ed\u009be';
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}]/u;

const overview = (more: object = {}): object => ({
  ...{ runId: `run-${'a'.repeat(27)}`, workflowId: 'refund', workflowName: 'Refund' },
  ...{ status: 'waiting-approval', createdAt: '2026-01-02T03:04:05.000Z', tags: [] },
  waiting: [
    {
      ...{ nodeId: 'gate', nodeName: 'Gate', interruptId: 'int-1', kind: 'approval' },
      ...{ title: 'Pay 64.90 EUR to the customer of order A-1007?', forPerson: true },
      ...{ requestedAt: '2026-01-02T03:04:06.000Z', deadline: '2026-01-09T03:04:06.000Z' },
    },
  ],
  ...more,
});
const question = (more: object = {}): object => ({
  ...{ nodeId: 'gate', interruptId: 'int-1', kind: 'approval', key: 'k' },
  ...{ title: 'Pay?', requestedAt: '2026-01-02T03:04:06.000Z' },
  actions: ['accept', 'reject', 'edit-accept', 'refine'],
  ...more,
});
const asking = (...questions: object[]): Scripted => ({ body: { questions } });
const snapshot = (status: string, atSeq = 9): Scripted => ({
  body: { runId: 'run-1', workflowId: 'refund', status, atSeq },
});
const event = (sequence: number, type: string, payload: object = {}) => ({
  ...{ sequence, type, payload, eventId: `evt-${sequence}`, runId: 'run-1', nodeId: 'gate' },
});
const STARTED = event(0, 'run.started');
const SUSPENDED = event(1, 'node.suspended', { interruptId: 'int-1', kind: 'approval' });
const REQUESTED = event(2, 'interrupt.requested', { kind: 'approval' });
const COMPLETED = event(3, 'run.completed');
/** A stream of these; `breaks`: its connection is lost behind them. */
const streaming =
  (events: Parameters<typeof frames>[0], breaks = false): Scripted =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(`:keepalive\n\n${frames(events)}`, () =>
      breaks ? response.destroy() : response.end(),
    );
  };
const lost: Scripted = (response) => void response.destroy();

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());
const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('openwop runs lists', () => {
  it('status in words, what each waits for, and until when', async () => {
    host.script({ [OVERVIEW]: { body: { runs: [overview()] } } });
    const { code, out, err } = await host.run(['runs', '--waiting', '--workflow', 'refund']);
    expect([code, err]).toEqual([0, '']);
    const cells = lines(out).map((line) => line.split(/ {2,}/));
    expect(cells[0]).toEqual(['RUN', 'STATUS', 'WORKFLOW', 'AGE', 'WAITS FOR']);
    expect(cells[1]?.filter((_, at) => at !== 3)).toEqual([
      ...[`run-${'a'.repeat(27)}`, 'Waiting for you', 'refund'],
      'you: Pay 64.90 EUR to the customer of order A-1007? (until 2026-01-09 03:04 UTC)',
    ]);
    expect(host.asked[0]?.line).toContain('?limit=50&workflowId=refund&waiting=true');
  });

  it('in 40 columns blocks, no line wider, an id whole', async () => {
    host.script({ [OVERVIEW]: { body: { runs: [overview(), overview()] } } });
    const { out } = await host.run(['runs'], { screen: { columns: 40, colour: false } });
    expect(lines(out).filter((line) => line.length > 40)).toEqual([]);
    expect(out.match(/^ {2}run-a{27}$/gm)).toHaveLength(2);
    expect(out).toContain('Waiting for you');
  });

  it('colour on a terminal alone, and nothing that the host says is obeyed', async () => {
    const waiting = [{ title: HOSTILE, forPerson: false }];
    host.script({ [OVERVIEW]: { body: { runs: [overview({ workflowId: HOSTILE, waiting })] } } });
    const plain = await host.run(['runs']);
    expect(plain.out.replaceAll('\n', '')).not.toMatch(OBEYED);
    const { out } = await host.run(['runs'], { screen: { columns: 200, colour: true } });
    expect(out).toContain('\u001b[33mWaiting for you\u001b[0m');
    expect(
      out.replaceAll('\u001b[33m', '').replaceAll('\u001b[0m', '').replaceAll('\n', ''),
    ).not.toMatch(OBEYED);
    const json = await host.run(['runs', '--json']);
    expect(json.out.replaceAll('\n', '')).not.toMatch(OBEYED);
    expect((JSON.parse(json.out) as { runs: object[] }).runs[0]).toMatchObject({ waiting });
  });

  it('page after page up to --limit, and says when there are more', async () => {
    const runs = (size: number) => Array.from({ length: size }, () => overview());
    host.script({
      [OVERVIEW]: [
        { body: { runs: runs(200), nextCursor: 'c1' } },
        { body: { runs: runs(20), nextCursor: 'c2' } },
      ],
    });
    const { out, err } = await host.run(['runs', '--limit', '220']);
    expect(host.asked.map(({ line }) => line.split('?')[1])).toEqual([
      'limit=200',
      'limit=20&cursor=c1',
    ]);
    expect(lines(out)).toHaveLength(221);
    expect(err).toContain('There are more');
  });

  it('an empty list is said in words', async () => {
    host.script({ [OVERVIEW]: { body: { runs: [] } } });
    expect((await host.run(['runs', '--waiting'])).out).toBe('Nothing waits for a human.\n');
    expect((await host.run(['runs', '--status', 'failed'])).out).toBe('No such runs.\n');
    expect((await host.run(['runs'])).out).toContain('No runs yet.');
  });
});

describe('what goes wrong', () => {
  it('faults of a request are told with their places', async () => {
    const errors = [
      { pointer: '/inputs/a', message: 'is required' },
      { pointer: '/inputs/b', message: 'must be of type number' },
    ];
    host.script({
      'GET /v1/workflows/w': { body: { variables: [] } },
      'POST /v1/runs': refusal(400, 'validation_error', { details: { errors } }),
    });
    const { code, err } = await host.run(['start', 'w']);
    expect(code).toBe(1);
    expect(lines(err).slice(1)).toEqual([
      '  /inputs/a is required',
      '  /inputs/b must be of type number',
    ]);
  });

  it.each<[string, string[], number]>([
    ['a run that is not there', ['runs', 'show', 'no'], 1],
    ['an option that is none', ['runs', '--nothing'], 2],
    ['a status that is none', ['runs', '--status', 'sleeping'], 2],
    ['a command that is none', ['runs', 'shwo'], 2],
  ])('%s: words, and with --json a document on the error output', async (_, args, code) => {
    host.script({ 'GET /v1/runs/no': refusal(404, 'run_not_found') });
    const words = await host.run(args);
    expect([words.code, words.out]).toEqual([code, '']);
    expect(() => void JSON.parse(words.err)).toThrow();
    const json = await host.run([...args, '--json']);
    expect([json.code, json.out]).toEqual([code, '']);
    expect(JSON.parse(json.err)).toMatchObject({
      error: {
        code: code === 1 ? 'run_not_found' : 'usage',
        message: expect.any(String) as string,
      },
    });
  });

  it('the key goes to the host that was named, and nowhere that it points to', async () => {
    const other = await scriptedHost();
    host.script({
      [OVERVIEW]: (response) => void response.writeHead(307, { location: `${other.url}/x` }).end(),
    });
    const { code, out, err } = await host.run(['runs', '--json']);
    await other.close();
    expect([code, out, other.asked]).toEqual([1, '', []]);
    expect(err).not.toContain(KEY);
  });

  it.each<[string[]]>([
    [['runs']],
    [['runs', 'show', 'run-1']],
    [['runs', 'answer', 'run-1']],
    [['workflows']],
    [['start', 'w']],
  ])('%j: JSON that is no answer of a host is said in words, not by a stack', async (args) => {
    for (const body of [{}, null, [], 'words']) {
      const strange = { body };
      host.script({
        ...{ [OVERVIEW]: strange, [RUN]: strange, [QUESTIONS]: strange },
        ...{ 'GET /v1/host/openwop-temporal/workflows': strange, 'GET /v1/workflows/w': strange },
        'POST /v1/runs': strange,
      });
      const { code, out, err } = await host.run(args);
      expect([code, out, lines(err).length]).toEqual([1, '', 1]);
    }
  });

  it('a deadline that is no time is said in words', async () => {
    host.script({
      [RUN]: snapshot('running'),
      [QUESTIONS]: asking(question({ deadline: 'soon' })),
    });
    const { code, err } = await host.run(['runs', 'show', 'run-1']);
    expect([code, lines(err)]).toEqual([1, [expect.stringContaining('no OpenWOP host')]]);
  });

  it('an answer without an end is not waited for, and one that is too long not read', async () => {
    const piece = ' '.repeat(8 * 1024 * 1024);
    host.script({
      [OVERVIEW]: (response) => {
        const more = (): void => void response.write(piece, (error) => error ?? more());
        more();
      },
    });
    const { code, err } = await host.run(['runs']);
    expect([code, err]).toEqual([1, expect.stringContaining('no OpenWOP host')]);
  });

  it.each([
    ['http://user:hunter2@127.0.0.1:1', KEY, 'bad_url'],
    ['http://127.0.0.1:1', 'k\u2019ey', 'bad_key'],
    ['http://127.0.0.1:1', 'k\ney', 'bad_key'],
  ])('an address or a key that no request can have: %s, %j', async (url, apiKey, code) => {
    const { err } = await host.run(['runs', '--json'], { url, apiKey });
    expect(JSON.parse(err)).toMatchObject({ error: { code } });
    expect(err).not.toContain('hunter2');
  });

  it('nothing that the host says of what was done is obeyed', async () => {
    host.script({
      'GET /v1/workflows/w': { body: { variables: [] } },
      'POST /v1/runs': { body: { runId: HOSTILE, status: HOSTILE } },
      'POST /v1/runs/run-1/cancel': { body: { status: HOSTILE } },
      'POST /v1/host/openwop-temporal/opensentience/agents/a/attach': {
        body: { agentId: HOSTILE, socket: 's', token: 't', expiresAt: HOSTILE },
      },
    });
    for (const args of [
      ['start', 'w'],
      ['runs', 'cancel', 'run-1'],
      ['agents', 'attach', 'a'],
    ]) {
      const { out, err } = await host.run(args);
      expect(out).toContain(String.raw`a\u001b[2Jb`);
      expect((out + err).replaceAll('\n', '')).not.toMatch(OBEYED);
    }
  });

  it('a pipe that closes is no fault', async () => {
    host.script({
      [OVERVIEW]: { body: { runs: Array.from({ length: 2_000 }, () => overview()) } },
    });
    const program = `"${process.execPath}" src/app/launch.js openwop runs | head -c 10 >/dev/null; exit \${PIPESTATUS[0]}`;
    const child = spawn('bash', ['-c', program], {
      cwd: join(import.meta.dirname, '..', '..'),
      env: { PATH: process.env.PATH, OPENWOP_URL: host.url, OPENWOP_API_KEY: KEY },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let err = '';
    child.stderr.on('data', (piece: Buffer) => void (err += piece.toString()));
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect([code, err]).toEqual([0, '']);
  });
});

describe('openwop runs answer', () => {
  const answer = (...args: string[]) => host.run(['runs', 'answer', 'run-1', ...args]);

  it('names the question that was shown, and a lost answer is sent again with the same key', async () => {
    const refused = refusal(503, 'service_unavailable');
    host.script({
      [QUESTIONS]: asking(question()),
      [ANSWER]: [lost, refused, { body: { status: 'resolved' } }],
    });
    const { code, out } = await answer('reject', '--reason', 'too much');
    expect([code, out]).toEqual([0, `${ANSWER_NOTICES.resolved}\n`]);
    const sent = host.asked.slice(1);
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(sent.map(({ body }) => body)).toEqual(
      sent.map(() => ({
        resumeValue: { action: 'reject', feedback: 'too much' },
        interruptId: 'int-1',
      })),
    );
  });

  it.each(Object.entries(OVER))('%s is told in the words of the page', async (code, words) => {
    host.script({ [QUESTIONS]: asking(question()), [ANSWER]: refusal(409, code) });
    const told = await answer('accept');
    expect([told.code, told.out]).toEqual([1, '']);
    expect(told.err).toContain(words);
  });

  it('a question that is over by now: the host is asked what became of it', async () => {
    host.script({
      [QUESTIONS]: asking(),
      [EVENTS]: { body: { events: [STARTED, SUSPENDED] } },
      [ANSWER]: refusal(409, 'interrupt_expired'),
    });
    const { code, err } = await answer('accept', '--interrupt', 'int-1');
    expect([code, err]).toEqual([1, expect.stringContaining(OVER.interrupt_expired ?? '-')]);
  });

  it('nothing is asked: says so, and what the run does', async () => {
    host.script({ [QUESTIONS]: asking(), [RUN]: snapshot('running') });
    expect((await answer('accept')).err).toContain('asks nothing now. It is: Running.');
  });

  it.each<[string, string[]]>([
    ['no answer', []],
    ['one that the question has not', ['approve']],
    ['a change without what is changed', ['edit-accept']],
    ['a change that is no JSON', ['edit-accept', '--value', '{']],
    ['[I103] a number that would change', ['edit-accept', '--value', '{"a":9007199254740993}']],
    ['a value where none belongs', ['accept', '--value', '{}']],
    ['nothing to change', ['refine']],
    ['an answer to no question', ['answers', '--answer', 'x=1']],
  ])('%s: 2, and nothing is sent', async (_, args) => {
    host.script({ [QUESTIONS]: asking(question()) });
    const { code, err } = await answer(...args);
    expect([code, host.asked.length]).toEqual([2, 1]);
    expect(err).not.toBe('');
  });

  it('two questions at once: both are listed, one is named', async () => {
    const other = question({ nodeId: 'second', interruptId: 'int-2' });
    const asked = {
      [QUESTIONS]: asking(question(), other),
      [ANSWER]: { body: { status: 'open' } },
    };
    host.script(asked);
    const both = await answer('accept');
    expect([both.code, both.out.match(/accept --interrupt int-\d/g)]).toEqual([
      2,
      expect.arrayContaining(['accept --interrupt int-1', 'accept --interrupt int-2']) as unknown,
    ]);
    const { code, out } = await answer('accept', '--node', 'gate');
    expect([code, out]).toEqual([0, `${ANSWER_NOTICES.open}\n`]);
  });

  it('answers are typed as the question says', async () => {
    const questions = [
      { id: 'n', question: 'How many?', schema: { type: 'integer' } },
      { id: 'c', question: 'Which colour?', schema: { enum: ['red', 'blue'] } },
    ];
    const asked = question({ kind: 'clarification', actions: undefined, questions });
    host.script({ [QUESTIONS]: asking(asked), [ANSWER]: { body: { status: 'resolved' } } });
    expect((await answer('--answer', 'n=12', '--answer', 'c=red')).code).toBe(0);
    expect(host.asked.at(-1)?.body).toMatchObject({
      resumeValue: { answers: { n: 12, c: 'red' } },
    });
    const wrong = await answer('--answer', 'n=many', '--answer', 'c=red');
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('How many?')]);
  });

  it('RFC 0005 a conversation: a turn more, or its close with the outcome that it asks for', async () => {
    const about = { actions: undefined, turnIndex: 2, outcomeSchema: { type: 'integer' } };
    const asked = question({ kind: 'conversation.exchange', ...about });
    host.script({ [QUESTIONS]: asking(asked), [ANSWER]: { body: { status: 'open' } } });
    const said = await answer('say', '--reason', 'Hello');
    expect([said.code, said.out]).toEqual([0, `${ANSWER_NOTICES.open}\n`]);
    expect(host.asked.at(-1)?.body).toMatchObject({
      resumeValue: { operation: 'exchange', turn: { content: 'Hello', turnIndex: 2 } },
    });
    expect((await answer('close', '--value', '7')).code).toBe(0);
    expect(host.asked.at(-1)?.body).toMatchObject({
      resumeValue: { operation: 'close', outcome: 7 },
    });
    expect((await answer('close')).code).toBe(2);
  });

  it('asked at a terminal: by number, with what it does, and a last word', async () => {
    host.script({ [QUESTIONS]: asking(question()), [ANSWER]: { body: { status: 'resolved' } } });
    const typed = (...given: string[]) => ({
      isAttended: true,
      input: Readable.from(given.map((line) => `${line}\n`)),
    });
    const said = ['runs', 'answer', 'run-1'];
    const { code, err } = await host.run(said, typed('7', '4', 'less, please', 'y'));
    expect(code).toBe(0);
    expect(err).toContain('4. refine: Ask for changes');
    expect(err).toContain('"7" is none of them.');
    expect(err).toContain('refine: Ask for changes. Send this? (y/n)');
    expect(host.asked.at(-1)?.body).toMatchObject({
      resumeValue: { action: 'refine', refineFeedback: { scope: 'whole', text: 'less, please' } },
    });
    const sent = host.asked.length;
    for (const given of [['1', 'n'], [''], []]) {
      const left = await host.run(said, typed(...given));
      expect([left.code, left.err]).toEqual([2, expect.stringContaining('Nothing was sent.')]);
    }
    expect(host.asked.slice(sent).filter(({ line }) => line.startsWith('POST'))).toEqual([]);
  });
});

describe('openwop runs follow', () => {
  const follow = (...args: string[]) => host.run(['runs', 'follow', 'run-1', ...args]);

  it.each([
    ['run.completed', 0, 'Completed'],
    ['run.failed', 1, 'Failed'],
    ['run.cancelled', 4, 'Cancelled'],
  ])('%s: the exit code is %i', async (type, code, words) => {
    host.script({ [EVENTS]: streaming([STARTED, event(1, type)]) });
    const told = await follow();
    expect([told.code, lines(told.out).at(-1)]).toEqual([code, `Run run-1: ${words}.`]);
  });

  it('a stream that is not read any more is ended: it would keep the process', async () => {
    let ended: Promise<unknown> = Promise.resolve('never asked');
    host.script({
      [EVENTS]: (response) => {
        ended = new Promise((resolve) => response.once('close', () => resolve('ended')));
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':keepalive\n\n');
      },
      [QUESTIONS]: asking(question()),
    });
    expect((await follow('--from', '3', '--until-question')).code).toBe(3);
    expect(await ended).toBe('ended');
  });

  it('a refusal whose words have no end is not waited for', async () => {
    host.script({
      [EVENTS]: (response) =>
        void response.writeHead(500, { 'content-type': 'text/html' }).write('x'),
    });
    const { code, err } = await follow();
    expect([code, err]).toEqual([1, expect.stringContaining('no OpenWOP host (status 500)')]);
  });

  it('no event twice, where the place to go on from is lost on the way', async () => {
    host.script({
      [EVENTS]: [streaming([STARTED, SUSPENDED], true), streaming([STARTED, SUSPENDED, COMPLETED])],
      [QUESTIONS]: asking(),
    });
    const told = lines((await follow('--json')).out).map((line) => JSON.parse(line) as object);
    expect(told).toEqual([STARTED, SUSPENDED, COMPLETED]);
  });

  it('what stands at the same sequences of a log that was made again is shown', async () => {
    const gone = event(1, 'agent.reasoning.delta', { delta: 'gone' });
    const instead = { ...event(1, 'node.started', { nodeId: 'n' }), eventId: 'evt-instead' };
    host.script({
      [EVENTS]: [streaming([STARTED, gone], true), streaming([STARTED, instead, COMPLETED])],
      [QUESTIONS]: asking(),
    });
    const told = lines((await follow('--json')).out).map((line) => JSON.parse(line) as object);
    expect(told).toEqual([STARTED, gone, instead, COMPLETED]);
  });

  it('goes on behind the last event over a break, a restart and a host that is not ready', async () => {
    const delta = (sequence: number, text: string) =>
      event(sequence, 'agent.reasoning.delta', { delta: text });
    host.script({
      [EVENTS]: [
        streaming([STARTED, delta(1, 'It is ')], true),
        refusal(503, 'service_unavailable'),
        lost,
        streaming([delta(2, 'late.'), COMPLETED]),
      ],
      [QUESTIONS]: asking(),
    });
    const { code, out, err } = await follow();
    expect(code).toBe(0);
    const tries = host.asked.filter(({ line }) => line.includes('/events'));
    expect(tries.map(({ headers }) => headers['last-event-id'])).toEqual([
      undefined,
      '1',
      '1',
      '1',
    ]);
    expect(out.match(/run\.started/g)).toHaveLength(1);
    expect(err).toContain('The host is away');
    expect(err).toContain('The host is back.');
  });

  it('a host that goes away and comes back', async () => {
    host.script({
      [EVENTS]: [streaming([STARTED], true), streaming([COMPLETED])],
      [QUESTIONS]: asking(),
    });
    const following = follow('--json');
    await expect.poll(() => host.asked.length).toBeGreaterThan(0);
    await host.close();
    await host.open();
    const { code, out } = await following;
    expect(code).toBe(0);
    expect(lines(out).map((line) => (JSON.parse(line) as { type: string }).type)).toEqual([
      'run.started',
      'run.completed',
    ]);
  });

  it('one that was never there is not waited for', async () => {
    const { code, err } = await host.run(['runs', 'follow', 'run-1'], {
      url: 'http://127.0.0.1:1',
    });
    expect([code, lines(err)]).toEqual([1, [expect.stringContaining('cannot be reached')]]);
  });

  it('a question is shown once, with its commands; --until-question ends there', async () => {
    host.script({
      [EVENTS]: streaming([STARTED, SUSPENDED, REQUESTED, COMPLETED]),
      [QUESTIONS]: asking(question({ title: HOSTILE })),
    });
    const whole = await follow();
    expect(whole.code).toBe(0);
    host.script({
      [EVENTS]: [streaming([STARTED, SUSPENDED, REQUESTED]), streaming([COMPLETED])],
      [QUESTIONS]: asking(question({ title: HOSTILE })),
      [RUN]: snapshot('waiting-approval'),
    });
    const asked = await follow('--until-question');
    expect(asked.code).toBe(3);
    expect(asked.out.match(/runs answer run-1 accept --interrupt int-1/g)).toHaveLength(1);
    expect(asked.out.replaceAll('\n', '')).not.toMatch(OBEYED);
  });

  it('--from behind the end of a run that is over: its end is told', async () => {
    host.script({
      [EVENTS]: streaming([]),
      [QUESTIONS]: asking(),
      [RUN]: snapshot('failed', 9),
    });
    const { code } = await follow('--from', '10');
    expect([code, host.asked[0]?.headers['last-event-id']]).toEqual([1, '9']);
  });

  it('what agents think is never obeyed, paragraphs stay', async () => {
    const delta = event(1, 'agent.reasoning.delta', { delta: `One.\n\n${HOSTILE}` });
    host.script({ [EVENTS]: streaming([STARTED, delta, { ...COMPLETED, type: 'run.completed' }]) });
    const { out } = await follow();
    expect(out).toContain('One.\n\na');
    expect(out.replaceAll('\n', '')).not.toMatch(OBEYED);
  });

  it.each([
    ['words', [], 'The run goes on without you.'],
    ['JSON', ['--json'], '"code":"interrupted"'],
  ])('Ctrl-C between two events ends the following, in %s', async (_form, flags, told) => {
    const stop = new AbortController();
    host.script({
      [EVENTS]: (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(frames([STARTED]));
      },
    });
    const args = ['runs', 'follow', 'run-1', ...flags];
    // What was printed was read: the next read is under way.
    const out = (): void => void setImmediate(() => stop.abort());
    const { code, err } = await host.run(args, { signal: stop.signal, out });
    expect([code, err.replaceAll('": "', '":"')]).toEqual([130, expect.stringContaining(told)]);
    expect(host.asked.filter(({ line }) => line.startsWith('POST'))).toEqual([]);
  });
});

it('help says the exit codes', async () => {
  const { out } = await host.run(['--help']);
  for (const code of [0, 1, 2, 3, 4, 130])
    expect(out).toMatch(new RegExp(`^ {2}${code} +\\w`, 'm'));
});
