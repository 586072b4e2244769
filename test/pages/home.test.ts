// The host's page as it is rendered: what waits, runs, what can be started, what was left out (architecture §10).
import { describe, expect, it } from 'vitest';
import { renderHomePage, type HomePageModel } from '../../src/pages/index.ts';
import { ago } from '../../src/words/duration.js';
import { askingRun, EMPTY, FULL, sampleRun } from './sample-home.ts';

const MARKUP = '<img src=x onerror=alert(1)>"\'&';
const SAFE = '&lt;img src=x onerror=alert(1)&gt;';
const rendered = (over: Partial<HomePageModel> = {}): string =>
  renderHomePage({ ...FULL, ...over });

describe("the host's page", () => {
  it('says of what waits: the question, the workflow, the step, since when, how long; and links to its run', () => {
    const html = rendered();
    const [card = ''] = /<li class="card ask"[\s\S]*?<\/li>/.exec(html) ?? [];
    expect(card).toContain('<a href="/pages/runs/run-asks">Pay 89.00 € back?</a>');
    for (const words of ['Refund desk', 'step A human looks at it', '5 min ago', '1 h 30 min left'])
      expect(card).toContain(words);
    expect(html).toContain('Waiting for you <span class="count">12</span>');
    expect(html.indexOf('waiting-list')).toBeLessThan(html.indexOf('runs-list'));
    expect(rendered({ waiting: { ...FULL.waiting, count: 1_000 } })).toContain('1000 or more');
  });

  it('what another system answers is no question to a person', () => {
    const run = askingRun();
    const [person] = run.waiting;
    if (!person) throw new Error('no question');
    const other = { ...person, title: 'A webhook', interruptId: 'int-2', forPerson: false };
    const html = rendered({
      waiting: { ...EMPTY.waiting, runs: [{ ...run, waiting: [other, person] }], count: 1 },
      runs: [],
    });
    expect(html).not.toContain('A webhook');
    expect(html).toContain('Pay 89.00');
  });

  // [I97]
  it('a run that cannot be read is there, with the reason and nothing else of it', () => {
    const message = 'the encryption key <b> is not there';
    const unreadable = { code: 'history_undecodable', message };
    const run = { ...askingRun(), tags: [], unreadable, waiting: [] };
    const html = rendered({ waiting: { ...EMPTY.waiting, runs: [run], count: 1 }, runs: [run] });
    const told = 'Cannot be read now: the encryption key &lt;b&gt; is not there';
    expect(html.split(told)).toHaveLength(3);
    expect(html).toContain('<a href="/pages/runs/run-asks">A run waits</a>');
    expect(html).not.toContain('Pay 89.00');
  });

  it('a status is told in words, whatever it is', () => {
    const html = rendered();
    for (const words of ['Waiting for you', 'Running', 'Failed', 'Completed', 'Cancelled'])
      expect(html).toMatch(new RegExp(`class="badge"><span aria-hidden="true">.</span> ${words}<`));
  });

  it('what a run, a definition or a file says is text', () => {
    const [wait] = askingRun({}, MARKUP).waiting;
    if (!wait) throw new Error('no question');
    const run = askingRun({
      ...{ runId: `r/${MARKUP}`, workflowId: MARKUP, workflowName: MARKUP, tags: [MARKUP] },
      waiting: [{ ...wait, nodeId: MARKUP, nodeName: MARKUP, interruptId: MARKUP }],
    });
    const html = rendered({
      runs: [run],
      waiting: { ...FULL.waiting, runs: [run], moreUrl: `/pages?waiting=${MARKUP}` },
      filter: { workflowId: MARKUP },
      csrfToken: MARKUP,
      workflows: [
        { workflowId: MARKUP, name: MARKUP, version: MARKUP, description: MARKUP, steps: 1 },
      ],
      agents: [
        {
          ...{ agentId: MARKUP, label: MARKUP, persona: MARKUP, modelClass: MARKUP },
          degraded: [MARKUP],
        },
      ],
      faults: {
        faults: [{ what: 'agent', source: MARKUP, pointer: MARKUP, message: MARKUP }],
        more: 0,
      },
    });
    expect(html).not.toContain('<img');
    expect(html).toContain(SAFE);
    expect(html).toContain(
      `href="/pages/start/${encodeURIComponent(MARKUP).replace("'", '&#39;')}"`,
    );
    expect(html).toContain('href="/pages/runs/r%2F%3Cimg');
  });

  it('a fault names its file, its place and what to do', () => {
    const html = rendered();
    expect(html).toContain('2 files were left out');
    expect(html).toContain(
      'Workflow <b>broken.json</b> at <code>/nodes/0/typeId</code>: is no node type of this host',
    );
    expect(html).toContain('start the host again');
    expect(rendered({ faults: { ...FULL.faults, more: 7 } })).toContain('7 more');
    expect(rendered({ faults: EMPTY.faults })).not.toContain('left out');
  });

  it('where there is nothing it says what to do next', () => {
    const none = renderHomePage(EMPTY);
    for (const words of ['Nothing waits for you', 'no workflow that could be started', 'OPENWOP_'])
      expect(none).toContain(words);
    expect(rendered({ runs: [] })).toContain('Start one below');
    expect(rendered({ runs: [], filter: { status: 'failed' } })).toContain('Show all runs');
    expect(rendered({ runs: [], newestUrl: '/pages' })).toContain('no older runs');
  });

  it('an engine that is away is said', () => {
    expect(rendered()).not.toContain('engine cannot be reached');
    expect(rendered({ stale: true })).toContain('engine cannot be reached');
  });

  it('the filter keeps what was chosen, also a workflow that is not loaded any more', () => {
    const html = rendered({ filter: { status: 'failed', workflowId: 'gone' } });
    expect(html).toContain('<option value="failed" selected>Failed</option>');
    expect(html).toContain('<option value="gone" selected>gone</option>');
    expect(html).toContain('method="get"');
  });

  it('stays small whatever it is given to show', () => {
    const long = 'x'.repeat(100_000);
    const workflows = Array.from({ length: 1_000 }, (_, at) => ({
      ...{ workflowId: `w${at}`, name: `W${at}`, version: '1', description: long, steps: 1 },
    }));
    const runs = Array.from({ length: 30 }, (_, at) =>
      sampleRun({ runId: `r${at}`, tags: Array.from({ length: 500 }, () => 'tag') }),
    );
    expect(rendered({ workflows, runs }).length).toBeLessThan(300_000);
    expect(rendered({ workflows })).toContain('800 more');
  });

  it('how long ago something was, in words', () => {
    const told = [0, 59_999, 60_000, 3_599_999, 3_600_000, 172_799_999, 172_800_000].map(ago);
    expect(told).toEqual([
      ...['just now', 'just now', '1 min ago', '59 min ago'],
      ...['1 h ago', '47 h ago', '2 days ago'],
    ]);
  });
});
