// `openwop runs link` and `openwop runs revoke-links`: a link to one run's page, and the end of all of them.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scriptedHost, type ScriptedHost } from './scripted-host.ts';

const RUN = '/v1/host/openwop-temporal/runs/run-1';

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());

it('prints the link alone, and beside it how it is taken back', async () => {
  const url = 'http://127.0.0.1:8787/pages/runs/run-1?link=abc';
  const body = { url, expiresAt: '2026-01-02T03:04:05.000Z' };
  host.script({ [`POST ${RUN}/page-link`]: { status: 201, body } });
  const { code, out, err } = await host.run(['runs', 'link', 'run-1']);
  expect([code, out]).toEqual([0, `${url}\n`]);
  expect(err).toMatch(/runs revoke-links run-1/);
  const json = await host.run(['runs', 'link', 'run-1', '--json']);
  expect([JSON.parse(json.out), json.err]).toEqual([body, '']);
});

it('says what was ended', async () => {
  const body = { runId: 'run-1', links: 1, sessions: 2 };
  host.script({ [`POST ${RUN}/page-links:revoke`]: { body } });
  const { code, out } = await host.run(['runs', 'revoke-links', 'run-1']);
  expect([code, out]).toEqual([0, 'Run run-1: links revoked: 1, sessions ended: 2.\n']);
});

it.each<object>([{}, [], { links: '\u001b[2J', sessions: 0 }, { links: 1, sessions: null }])(
  'what is no answer of a host is no revocation: %j',
  async (body) => {
    host.script({ [`POST ${RUN}/page-links:revoke`]: { body } });
    const { code, out, err } = await host.run(['runs', 'revoke-links', 'run-1']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('gave what no OpenWOP host of this version gives');
    const asJson = await host.run(['runs', 'revoke-links', 'run-1', '--json']);
    expect([asJson.code, asJson.out]).toEqual([1, '']);
  },
);

it.each(['link', 'revoke-links'])('%s of a run that is not there names it', async (name) => {
  host.script({
    [`POST ${RUN}/page-link`]: { status: 404, body: { error: 'run_not_found', message: 'No.' } },
    [`POST ${RUN}/page-links:revoke`]: {
      status: 404,
      body: { error: 'run_not_found', message: 'No.' },
    },
  });
  const { code, err } = await host.run(['runs', name, 'run-1']);
  expect([code, err]).toEqual([1, expect.stringContaining('The host knows no run run-1.')]);
});
