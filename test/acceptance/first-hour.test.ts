// docs/first-hour.md, block by block, in a folder that looks like a checkout: what it says a newcomer can do. `npm test`
// walks with one start of the host, and leaves out the sections that are about another; `npm run campaign -- walks` sets
// OPENWOP_WALK=whole and follows the page as it is.
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deciding, startOpenAiServer, type OpenAiServer } from '../support/openai-server.ts';
import type { Missing } from '../support/postgres.ts';
import { sharePostgres, type SharedPostgres } from '../support/shared-postgres.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { blocksOf, Walk, type Block } from '../support/walk.ts';
import { patient } from '../support/machine.ts';
import { ROOT } from '../support/root.ts';

const BLOCKS = blocksOf(readFileSync(join(ROOT, 'docs/first-hour.md'), 'utf8'));
const SECTIONS = [...new Set(BLOCKS.map(({ section }) => section))];
const LIMIT_MS = patient(240_000);
/** Not the checkout's own, or made by the walk. */
const LEFT_OUT = new Set(['.data', '.git', 'mine', 'coverage']);
/** What each command that stays says when it takes work. */
const READY: Readonly<Record<string, RegExp>> = {
  start: /OpenWOP host +(\S+)\/\.well-known/,
  serve: /OpenWOP facade +(\S+)\/\.well-known/,
  worker: /OpenWOP worker on (\S+),/,
  temporal: /export TEMPORAL_ADDRESS=(\S+)/,
};
/** What the sections before PostgreSQL need of no machine. */
const NEEDS_POSTGRES = /^[89]\./;
/** A kill, a model, two processes, keys: each is about another start. */
const STARTS_AGAIN = /^[3789]\./;
const IS_WHOLE = process.env.OPENWOP_WALK === 'whole';
const WALKED = IS_WHOLE ? BLOCKS : withOneStart();

let folder = '';
let walk: Walk;
let endpoint: OpenAiServer;
let postgres: SharedPostgres | Missing;
/** In the place of the addresses that the page uses. */
const places = new Map<string, string>();
/** Where the command line asks, once a host listens elsewhere than the folder says. */
const asked: Record<string, string> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'first-hour-'));
  for (const name of readdirSync(ROOT).filter((one) => !LEFT_OUT.has(one)))
    symlinkSync(join(ROOT, name), join(folder, name));
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, OPENWOP_PORT: '0' },
    ...{ OPENWOP_DATA_DIR: join(folder, '.data'), OPENWOP_CACHE_DIR: CACHE_DIR },
    OPENWOP_TEMPORAL_DOWNLOAD: 'off',
  };
  walk = new Walk(folder, env, { byNpm: IS_WHOLE });
  const decision = { action: 'decline', orderId: 'A-1008', amountCents: 0, reason: 'Too late.' };
  endpoint = await startOpenAiServer(() => deciding(['Hm. '], { decision, confidence: 0.5 }));
  places.set('http://127.0.0.1:11434/v1', endpoint.url);
  postgres = await sharePostgres();
  if (!('missing' in postgres))
    places.set('postgres://me@127.0.0.1/openwop', await postgres.createEmptyDatabase());
});
afterAll(async () => {
  await walk.end();
  await endpoint.stop();
  if (!('missing' in postgres)) await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The files of all its sections are written first, and the host is started once, with them. */
function withOneStart(): readonly Block[] {
  const blocks = BLOCKS.filter(({ section }) => !STARTS_AGAIN.test(section));
  const stays = ({ place }: Block) => place.startsWith('terminal-');
  const files = blocks.filter(({ language }) => language !== 'sh');
  const first = [...files, ...blocks.filter(stays).slice(-1)];
  const section = SECTIONS[0] ?? '';
  const rest = blocks.filter((block) => block.language === 'sh' && !stays(block));
  return [...first.map((block) => ({ ...block, section })), ...rest];
}

async function stay({ place, text }: Block): Promise<void> {
  const said = [...places].reduce((all, [told, here]) => all.replaceAll(told, here), text);
  const terminal = await walk.terminal(place, said);
  const [, kind = ''] = /npm (?:run )?(\w+)\s*$/.exec(said) ?? [];
  const found = await terminal.line(READY[kind] ?? /$^/);
  if (kind === 'temporal') places.set('127.0.0.1:7233', found);
  if (kind === 'serve') asked.OPENWOP_URL = found;
}

async function follow(block: Block): Promise<void> {
  const { language, place, text } = block;
  if (language !== 'sh') walk.writeFile(place, text);
  else if (place !== '') await stay(block);
  else await walk.command(text, asked);
}

describe('docs/first-hour.md', () => {
  it('has its steps in order', () => {
    expect(SECTIONS.map((section) => Number.parseInt(section))).toEqual(
      SECTIONS.map((_, index) => index + 1),
    );
    expect(SECTIONS).toHaveLength(9);
  });

  for (const section of new Set(WALKED.map((block) => block.section)))
    it(section, { timeout: LIMIT_MS }, async ({ skip }) => {
      if (NEEDS_POSTGRES.test(section) && 'missing' in postgres) skip(postgres.missing);
      const blocks = WALKED.filter((block) => block.section === section);
      const staying = blocks.filter(({ place }) => place.startsWith('terminal-'));
      for (const { place } of staying) if (!section.startsWith('3.')) await walk.stop(place);
      for (const block of blocks) await follow(block);
    });
});
