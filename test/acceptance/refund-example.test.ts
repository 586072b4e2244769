// examples/debug-a-refund: each command of its README in a folder that looks like a checkout, and what it prints held against
// what stands there. Ids are compared by the order in which they appear, times and durations not at all.
// `npm test` leaves out what the gate does, too, and most of the day's requests, those that all end in the same way: so it
// compares no totals. It begins with a database that is migrated, and calls the command line without npm, which the gate calls.
// `npm run campaign -- walks` sets OPENWOP_WALK=whole. OPENWOP_WRITE_WALK=1 writes what was printed into the README instead.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyDatabase } from '../support/prepared.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { blocksOf, Walk, type Block, type Ran } from '../support/walk.ts';
import { patient } from '../support/machine.ts';
import { ROOT } from '../support/root.ts';

const EXAMPLE = 'examples/debug-a-refund';
const README = join(ROOT, EXAMPLE, 'README.md');
const BLOCKS = blocksOf(readFileSync(README, 'utf8'));
const LIMIT_MS = patient(240_000);
const IS_WRITTEN = process.env.OPENWOP_WRITE_WALK !== undefined;
const IS_WHOLE = process.env.OPENWOP_WALK === 'whole' || IS_WRITTEN;
/** The last 50 runs again: the gate does the same, and asks more of it. */
const HELD_BY_GATE = /^6\./;
const WALKED = BLOCKS.filter(({ section }) => IS_WHOLE || !HELD_BY_GATE.test(section));
const SECTIONS = [...new Set(WALKED.map(({ section }) => section))];
/** Orders of a shorter day: all that were sold as final, the expensive one, a late one and an ordinary one. */
const SHORT_DAY = /"S-10(?:01|04|07|19|28|31|43)"/;
const REQUESTS = 'requests.jsonl';
/** Not the checkout's own, or made by the walk. */
const LEFT_OUT = new Set(['.data', '.git', 'mine', 'coverage', 'examples']);
const MADE = new Set(['.data', 'wrong-runs.txt']);

let folder = '';
let walk: Walk;
let signIn = '';
/** What the blocks of commands printed, in their order. */
const printed: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'debug-a-refund-'));
  for (const name of readdirSync(ROOT).filter((one) => !LEFT_OUT.has(one)))
    symlinkSync(join(ROOT, name), join(folder, name));
  mkdirSync(join(folder, 'examples'));
  cpSync(join(ROOT, EXAMPLE), join(folder, EXAMPLE), {
    ...{ recursive: true, filter: (path: string) => !MADE.has(basename(path)) },
  });
  if (!IS_WHOLE) {
    shortenDay();
    await copyDatabase(CACHE_DIR, join(folder, '.data', 'postgres'));
  }
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, OPENWOP_PORT: '0' },
    ...{ OPENWOP_DATA_DIR: join(folder, '.data'), OPENWOP_CACHE_DIR: CACHE_DIR },
    OPENWOP_TEMPORAL_DOWNLOAD: 'off',
  };
  walk = new Walk(folder, env, { byNpm: IS_WHOLE });
});
afterAll(async () => {
  await walk.end();
  rmSync(folder, { recursive: true, force: true });
});

function shortenDay(): void {
  const path = join(folder, EXAMPLE, REQUESTS);
  const lines = readFileSync(path, 'utf8').split('\n');
  writeFileSync(path, lines.filter((line) => SHORT_DAY.test(line)).join('\n'));
}

/** Numbers that a shorter day changes: of runs, of tokens, and those that end a line. */
const TOTALS = /(?<![\w-])\d+(?= of \d+ runs| runs| tokens| Completed|$)/gm;

/** What is told of two walks in the same way: ids numbered as they appear, no times, columns without their width. */
function told(texts: readonly string[]): string[] {
  const ids: string[] = [];
  const numbered = (id: string): string => {
    if (!ids.includes(id)) ids.push(id);
    return `${id.slice(0, id.indexOf('-'))} ${ids.indexOf(id) + 1}`;
  };
  return texts.map((text) =>
    text
      .replaceAll(/\b(?:run|cohort)-[0-9A-Za-z]{27}\b/g, numbered)
      .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d\.\d+Z)?/g, 'a time')
      .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|min)\b/g, 'a while')
      .replaceAll(TOTALS, (total) => (IS_WHOLE ? total : 'a total'))
      .replaceAll(/ {2,}/g, '  ')
      .replaceAll(/ +$/gm, '')
      .trimEnd(),
  );
}

/** The block of what a block of commands prints. */
function tellingOf(block: Block): Block | undefined {
  const next = BLOCKS[BLOCKS.indexOf(block) + 1];
  return next?.language === 'text' ? next : undefined;
}

async function follow(block: Block): Promise<void> {
  const { language, place, text } = block;
  if (language !== 'sh') return;
  if (place !== '') {
    const terminal = await walk.terminal(place, text);
    signIn = await terminal.line(/Open +(\S+)/);
    await terminal.line(/Demo run (\S+)/);
    return;
  }
  const ran = await walk.ran(text);
  const telling = tellingOf(block);
  const [, code = '0'] = /^exit-(\d+)$/.exec(telling?.place ?? '') ?? [];
  printed.push(ran.result);
  expect(ran, ran.output).toMatchObject<Partial<Ran>>({ code: Number(code) });
}

function written(): readonly string[] {
  return WALKED.filter(({ language, place }) => language === 'sh' && place === '').map(
    (block) => tellingOf(block)?.text ?? '',
  );
}

/** The README with what was printed in the place of what stands there. */
function rewritten(): string {
  const texts = [...printed];
  return readFileSync(README, 'utf8').replaceAll(
    /^(```text ?\S*\n)[\s\S]*?^```$/gm,
    (_, fence: string) => `${fence}${texts.shift()?.replaceAll(/ +$/gm, '') ?? ''}\`\`\``,
  );
}

describe('examples/debug-a-refund', () => {
  for (const section of SECTIONS)
    it(section, { timeout: LIMIT_MS }, async () => {
      const before = printed.length;
      for (const block of BLOCKS.filter((one) => one.section === section)) await follow(block);
      if (IS_WRITTEN) return;
      expect(told(printed).slice(before)).toEqual(told(written()).slice(before, printed.length));
    });

  it('no refund is paid twice, whatever is forked and replayed', () => {
    const book = readFileSync(join(folder, EXAMPLE, 'shop/.data/refunds.jsonl'), 'utf8');
    const orders = book
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { orderId: string }).orderId);
    expect(new Set(orders).size).toBe(orders.length);
  });

  it('the job of the CI runs the gate that the README runs', () => {
    const job = readFileSync(join(ROOT, EXAMPLE, 'ci-gate.yml'), 'utf8');
    const [, gate = 'none'] = /- run: (sh .+)/.exec(job) ?? [];
    expect(
      BLOCKS.some(({ language, text }) => language === 'sh' && text.includes(`${gate}\n`)),
    ).toBe(true);
  });

  it('the pages that the README names are there', async () => {
    const { result } = await walk.ran('echo "$RUN $FORK"');
    const [run = '', fork = ''] = result.trim().split(' ');
    const opened = await fetch(signIn, { redirect: 'manual' });
    const form = await opened.text();
    expect([opened.status, form]).toEqual([200, expect.stringContaining('method="post"')]);
    const entered = await fetch(signIn, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: new URL(signIn).origin },
    });
    const cookie = (entered.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const paths = [...readFileSync(README, 'utf8').matchAll(/`(\/pages\/[^`]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(paths).toHaveLength(5);
    for (const path of paths) {
      const address = new URL(path.replace('FORK', fork).replace('RUN', run), signIn);
      const page = await fetch(address, { headers: { cookie } });
      expect([path, page.status]).toEqual([path, 200]);
    }
  });

  if (IS_WRITTEN)
    it('is written', () => {
      writeFileSync(README, rewritten());
    });
});
