// HTTP suite: a run is started by a form of the pages, and paused, resumed and cancelled on its page (architecture §10).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { ended, waiting, type Envelope, type Suite } from './suite-parts.ts';
import { AGENT } from './suite-workflows.ts';

type Fields = Readonly<Record<string, string>>;

interface Visitor {
  readonly cookie: string;
  get(path: string): Promise<Response>;
  post(path: string, fields: Fields, headers?: Record<string, string>): Promise<Response>;
}

/** What `typed` of suite-workflows.ts takes, as a form sends it. */
const RIGHT: Fields = {
  'input.note': 'two\r\nlines',
  'input.count': '12.5',
  'input.gift': 'false',
  'input.order': '{"id": 7}',
  'input.lines': '["a", null]',
  'input.pin': 'hush-1234',
  'input.a/b~c': '',
  'empty.a/b~c': 'text',
  tags: 'desk, night',
};

/** No key of anybody, in the shape of one. */
const SECRET = 'sk-kosice-warehouse-02';

export function startTests({ host }: Suite): void {
  async function visitor(): Promise<Visitor> {
    const send = (path: string, init: RequestInit) =>
      fetch(`${host().url}${path}`, { redirect: 'manual', ...init });
    const body = (fields: Fields) => new URLSearchParams(fields).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const key = body({ key: host().apiKey });
    const answer = await send('/pages/sign-in', { method: 'POST', body: key, headers: type });
    expect(answer.status).toBe(303);
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    return {
      cookie,
      get: (path) => send(path, { headers: { cookie } }),
      post: (path, fields, headers = {}) =>
        send(path, {
          method: 'POST',
          body: body(fields),
          headers: { ...type, cookie, ...headers },
        }),
    };
  }

  /** A new form: its address and its CSRF token. */
  async function open(who: Visitor, path: string) {
    const moved = await who.get(path);
    expect(moved.status).toBe(303);
    const shown = await who.get(moved.headers.get('location') ?? '');
    const html = await shown.text();
    expect(shown.status).toBe(200);
    const action = /<form method="post" action="([^"]*)"/.exec(html)?.[1] ?? '';
    return { html, action, csrf: csrfOf(html) };
  }

  const runIdOf = (answer: Response): string => {
    expect(answer.status).toBe(303);
    return (
      /^\/pages\/runs\/([^?]+)\?notice=started/.exec(answer.headers.get('location') ?? '')?.[1] ??
      ''
    );
  };
  const runs = async (workflowId: string) =>
    (
      await host().api<{ runs: { runId: string; tags?: string[] }[] }>(
        `/v1/runs?workflowId=${workflowId}&limit=200`,
      )
    ).body.runs;

  describe('a run is started by a form', () => {
    it('of who is signed in alone, with the CSRF token of that session', async () => {
      const path = '/pages/start/typed';
      const anybody = await fetch(`${host().url}${path}`);
      expect([anybody.status, await anybody.text()]).toEqual([
        401,
        expect.stringContaining('API key'),
      ]);
      const [mine, other] = [await visitor(), await visitor()];
      const { action, csrf } = await open(mine, path);
      const foreign = (await open(other, path)).csrf;
      const before = (await runs('typed')).length;
      const evil = { origin: 'https://evil.example' };
      expect((await mine.post(action, { ...RIGHT })).status).toBe(403);
      expect((await mine.post(action, { ...RIGHT, csrf: foreign })).status).toBe(403);
      expect((await mine.post(action, { ...RIGHT, csrf }, evil)).status).toBe(403);
      expect((await mine.post(action, { ...RIGHT, csrf }, { cookie: '' })).status).toBe(401);
      expect((await runs('typed')).length).toBe(before);
    });

    it('each JSON type arrives as it was given; sensitive values are nowhere', async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const started = await who.post(action, { ...RIGHT, csrf });
      const runId = runIdOf(started);
      const { variables } = await host().waitFor(runId, ended);
      const listed = (await runs('typed')).find((run) => run.runId === runId);
      expect(listed?.tags).toEqual(['desk', 'night']);
      expect(variables).toMatchObject({
        ...{ note: 'two\nlines', count: 12.5, gift: false, order: { id: 7 }, lines: ['a', null] },
        'a/b~c': '',
      });
      const page = await who.get(started.headers.get('location') ?? '');
      const html = await page.text();
      expect(html).toContain('The run is started.');
      expect(html).not.toContain('hush-1234');
      const another = /href="([^"]*)">Start another like this/.exec(html)?.[1] ?? '';
      const again = await open(who, another);
      expect(again.html).toContain('two\nlines');
      expect(again.html).toContain('does not show this value');
      expect(again.html).not.toContain('hush-1234');
    });

    it("what is wrong stands at the field that the API's own pointer names, and what was typed stays", async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const fields = {
        ...{ csrf, 'input.note': '', 'input.count': 'twelve', 'input.gift': 'true' },
        ...{ 'input.order': '[1]', 'input.lines': '{"a": 1}', 'input.pin': 'hush-1234' },
        'input.a/b~c': 'kept as it is',
      };
      const answer = await who.post(action, fields);
      const html = await answer.text();
      const inputs = { order: [1], lines: { a: 1 } };
      const api = await host().api<Envelope>('/v1/runs', { body: { workflowId: 'typed', inputs } });
      const { errors } = api.body.details as { errors: { pointer: string; message: string }[] };
      expect([answer.status, api.status]).toEqual([400, 400]);
      expect(errors.map(({ pointer }) => pointer)).toEqual([
        ...['/inputs/note', '/inputs/order', '/inputs/lines'],
      ]);
      for (const { pointer, message } of errors)
        expect(html).toMatch(
          new RegExp(`id="f\\d+-fault">${pointer.slice('/inputs/'.length)} ${message}</p>`),
        );
      expect(html).toContain('id="f1-fault">count must be a number');
      expect(html).toContain('4 things are not right');
      for (const kept of ['twelve', 'kept as it is', '[1]']) expect(html).toContain(kept);
      expect(html).not.toContain('hush-1234');
      // The same form, mended.
      expect(runIdOf(await who.post(action, { ...RIGHT, csrf }))).toMatch(/^run-/);
    });

    it.each<[string, Fields, number, string]>([
      [
        'a key that reaches a prototype',
        { 'input.order': '{"__proto__": 1}' },
        400,
        'order cannot be accepted: /__proto__ is a name',
      ],
      ['too deep', { 'input.lines': '['.repeat(70) + ']'.repeat(70) }, 400, 'lines cannot be sent'],
      ['a secret', { 'input.note': `see ${SECRET}` }, 400, 'note looks like it holds a secret'],
      [
        'a secret inside',
        { 'input.order': `{"by": ["${SECRET}"]}` },
        400,
        'order looks like it holds a secret',
      ],
      ['a secret among tags', { tags: `desk, ${SECRET}` }, 400, 'A tag looks like it holds'],
      ['a tag too long', { tags: 'x'.repeat(300) }, 400, 'A tag must'],
      ['larger than inputs may be', { 'input.note': 'x'.repeat(140_000) }, 413, 'at most 128 KiB'],
      ['more fields than a form may have', manyFields(), 413, 'larger than permitted'],
      [
        'larger than a form may be',
        { 'input.note': 'ä'.repeat(140_000) },
        413,
        'larger than permitted',
      ],
    ])('%s is refused in words, with the status of the API', async (_, wrong, status, words) => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const answer = await who.post(action, { ...RIGHT, ...wrong, csrf });
      expect([answer.status, await answer.text()]).toEqual([
        status,
        expect.stringContaining(words),
      ]);
    });

    it('one form starts one run: two clicks, a reload; changed behind Back it says so and asks again', async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const before = (await runs('typed')).length;
      const click = (more: Fields = {}) => who.post(action, { ...RIGHT, ...more, csrf });
      const clicks = await Promise.all([click(), click(), click()]);
      expect(new Set(clicks.map(runIdOf)).size).toBe(1);
      expect((await click()).headers.get('location')).toMatch(/notice=started-before$/);
      expect((await runs('typed')).length).toBe(before + 1);
      const changed = await click({ 'input.count': '13' });
      const html = await changed.text();
      expect(changed.status).toBe(409);
      expect(html).toContain('This form has started a run before, with other values');
      expect((await runs('typed')).length).toBe(before + 1);
      const next = /<form method="post" action="([^"]*)"/.exec(html)?.[1] ?? '';
      expect(next).not.toBe(action);
      expect(html).toContain('value="13"');
      runIdOf(await who.post(next, { ...RIGHT, 'input.count': '13', csrf }));
      expect((await runs('typed')).length).toBe(before + 2);
      // Another session's form of the same number is another form.
      const other = await visitor();
      const theirs = await open(other, '/pages/start/typed');
      runIdOf(await other.post(action, { ...RIGHT, csrf: theirs.csrf }));
      expect((await runs('typed')).length).toBe(before + 3);
    });

    it('a click that comes while the one before starts the run is led to that run', async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const { engine, stores } = host();
      const [start, accept] = [engine.start.bind(engine), stores.runs.accept.bind(stores.runs)];
      let goOn = () => {};
      const held = new Promise<void>((resolve) => (goOn = resolve));
      engine.start = async (input) => {
        engine.start = start;
        await held;
        return start(input);
      };
      const outcomes: string[] = [];
      stores.runs.accept = async (...asked) => {
        const outcome = await accept(...asked);
        outcomes.push(outcome.kind);
        if (outcome.kind === 'in-flight') goOn();
        return outcome;
      };
      const clicks = [1, 2].map(() => who.post(action, { ...RIGHT, csrf }));
      const [first, second] = (await Promise.all(clicks)).map(runIdOf);
      stores.runs.accept = accept;
      expect(second).toBe(first);
      expect(outcomes.slice(0, 2)).toEqual(['claimed', 'in-flight']);
    });

    it('while the engine is away the run is accepted, said so, and the same form goes on with it', async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, '/pages/start/typed');
      const { engine } = host();
      const start = engine.start.bind(engine);
      engine.start = async () => {
        engine.start = start;
        throw new HostError('service_unavailable');
      };
      const answer = await who.post(action, { ...RIGHT, csrf });
      const html = await answer.text();
      expect(answer.status).toBe(503);
      expect(html).toContain('The run is accepted, but the engine cannot be reached');
      expect(html).not.toContain('hush-1234');
      const runId = /href="\/pages\/runs\/([^"]*)">Open the run/.exec(html)?.[1];
      expect(runIdOf(await who.post(action, { ...RIGHT, csrf }))).toBe(runId);
    });

    it('a workflow that nobody has is 404, a form without its number 400', async () => {
      const who = await visitor();
      expect((await who.get('/pages/start/nothing')).status).toBe(404);
      expect((await who.get('/pages/start-agent/nothing')).status).toBe(404);
      const { csrf } = await open(who, '/pages/start/typed');
      expect((await who.post('/pages/start/typed', { ...RIGHT, csrf })).status).toBe(400);
      expect((await who.get('/pages/start/typed?form=x&from=run-nothing')).status).toBe(303);
    });

    it('an agent is started with a JSON object, and again with the same', async () => {
      const who = await visitor();
      const { action, csrf } = await open(who, `/pages/start-agent/${AGENT}`);
      const wrong = await who.post(action, { csrf, 'input.': '[]' });
      expect(wrong.status).toBe(400);
      expect(await wrong.text()).toContain('inputs must be object');
      const runId = runIdOf(await who.post(action, { csrf, 'input.': '{"order": "4711"}' }));
      await host().waitFor(runId, waiting);
      const page = await (await who.get(`/pages/runs/${runId}`)).text();
      const another = /href="([^"]*)">Start another like this/.exec(page)?.[1] ?? '';
      expect((await open(who, another)).html).toContain('&quot;order&quot;: &quot;4711&quot;');
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    });

    it('RFC 0077 §D what a message started is started again as a run of its agent', async () => {
      const who = await visitor();
      const sessionId = `talk-${Date.now()}`;
      await host().startRun({ agentId: AGENT, inputs: { order: 'o-1' }, sessionId });
      const said = await host().api(`/v1/host/openwop-temporal/sessions/${sessionId}/messages`, {
        body: { content: `@${AGENT} what of 4711?` },
      });
      const { runId } = said.body as { runId: string };
      await host().waitFor(runId, waiting);
      const page = await (await who.get(`/pages/runs/${runId}`)).text();
      const another = /href="([^"]*)">Start another like this/.exec(page)?.[1] ?? '';
      expect(another).toContain(`/pages/start-agent/${AGENT}`);
      expect((await open(who, another)).html).toContain('what of 4711?');
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    });
  });

  describe('what is done with a run on its page, by who is signed in', () => {
    it('it is paused, resumed and cancelled; what does not apply is told in words', async () => {
      const who = await visitor();
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const path = `/pages/runs/${runId}`;
      const html = async () => (await who.get(path)).text();
      const csrf = csrfOf(await html(), /<div class="controls".*?name="csrf" value="([^"]*)"/s);
      const send = async (control: string, fields: Fields = {}) => {
        const answer = await who.post(`${path}/${control}`, { csrf, ...fields });
        return [answer.status, answer.headers.get('location') ?? (await answer.text())];
      };
      expect((await who.post(`${path}/pause`, {})).status).toBe(403);
      expect((await who.post(`${path}/pause`, { csrf }, { cookie: '' })).status).toBe(401);
      expect(await send('resume')).toEqual([409, expect.stringContaining('is not paused')]);
      expect(await send('pause')).toEqual([303, `${path}?notice=pausing`]);
      await host().waitFor(runId, ({ status }) => status === 'paused');
      expect(await html()).toContain('>Resume</button>');
      expect(await send('pause')).toEqual([409, expect.stringContaining('is paused already')]);
      expect(await send('resume')).toEqual([303, `${path}?notice=resumed`]);
      await host().waitFor(runId, waiting);
      const long = await send('cancel', { reason: 'x'.repeat(5_000) });
      expect(long).toEqual([400, expect.stringContaining('The reason must')]);
      expect(await send('cancel', { reason: ' no need ' })).toEqual([
        ...[303, `${path}?notice=cancelling`],
      ]);
      await host().waitFor(runId, ({ status }) => status === 'cancelled');
      const events = await (await who.get(`/v1/runs/${runId}/events`)).text();
      expect(events).toContain('no need');
      expect(await html()).not.toContain('<form method="post"');
      expect(await send('pause')).toEqual([409, expect.stringContaining('has ended')]);
      const done = await host().startRun({ workflowId: 'noop' });
      await host().waitFor(done, ended);
      const late = await who.post(`/pages/runs/${done}/cancel`, { csrf });
      expect(late.headers.get('location')).toBe(`/pages/runs/${done}?notice=ended`);
    });

    it('who opened the page by its link sees none of it and may do none of it', async () => {
      const runId = await host().startRun({ workflowId: 'approval' });
      await host().waitFor(runId, waiting);
      const { body } = await host().api<{ url: string }>(
        `/v1/host/openwop-temporal/runs/${runId}/page-link`,
        { method: 'POST' },
      );
      const { pathname, search } = new URL(body.url);
      const send = (path: string, init: RequestInit = {}) =>
        fetch(`${host().url}${path}`, { redirect: 'manual', ...init });
      const opened = await send(pathname + search, { method: 'POST' });
      const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? '';
      const html = await (await send(pathname, { headers: { cookie } })).text();
      expect(html).not.toContain('class="controls"');
      for (const control of ['pause', 'resume', 'cancel']) {
        const request = {
          method: 'POST',
          body: new URLSearchParams({ csrf: csrfOf(html) }).toString(),
          headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
        };
        expect((await send(`${pathname}/${control}`, request)).status).toBe(401);
      }
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
    });
  });
}

/** A field that is lost would be another word: more than 2,000 are refused. */
function manyFields(): Fields {
  return Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`other.${at}`, '']));
}

function csrfOf(html: string, where = /name="csrf" value="([^"]*)"/): string {
  return where.exec(html)?.[1] ?? '';
}
