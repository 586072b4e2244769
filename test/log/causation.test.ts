// Walks along causes (seed 003 §1.2, §2.3): over runs, bounded, and of one tenant.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventIdOf } from '../../src/rules/ids.ts';
import type { RunHeader } from '../../src/rules/run-input.ts';
import {
  causesOf,
  effectsOf,
  MAX_CAUSES,
  MAX_EFFECT_DEPTH,
  MAX_EFFECTS,
} from '../../src/log/causation.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { batchAfter, entry, headOf, newId, newRun, refTo, startedRun } from '../contract/given.ts';
import { openAnyStores } from '../support/log-parts.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const runWith = (header: Partial<RunHeader> = {}, tenant = 'default'): Promise<string> => {
  const run = newRun({ tenant });
  const whole = { ...run.input.header, ...header };
  return startedRun(stores, { ...run, input: { ...run.input, header: whole } });
};
const id = (runId: string, key: string): string => eventIdOf(runId, key);
/** Rows by key, each with what it follows from: a key of the run, or an event's id. */
const write = async (
  runId: string,
  ...links: readonly (readonly [key: string, cause?: string])[]
): Promise<void> => {
  const rows = links.map(([key, cause]) =>
    entry(runId, key, {
      type: `x.${key}`,
      causationId: cause === undefined || cause.startsWith('evt-') ? cause : id(runId, cause),
    }),
  );
  await stores.log.append(batchAfter(await headOf(stores, runId), rows));
};
const named = (links: readonly { readonly type: string; readonly runId: string }[]): string[] =>
  links.map(({ type }) => type.slice(2));

describe('seed 003 §2.3 scenario 3: from a failed call of a subagent to the decision that spawned it', () => {
  it('causes go up through the run and on into its parent, effects down into its children', async () => {
    const sessionId = newId('talk');
    const parent = await runWith({ sessionId });
    await write(
      parent,
      ['started'],
      ['reasoned', 'started'],
      ['called', 'reasoned'],
      ['other', 'started'],
    );
    const header = { sessionId, parentRunId: parent, correlationId: parent, causationId: 'c1' };
    const child = await runWith(header);
    await write(child, ['child', id(parent, 'called')], ['tool', 'child'], ['error', 'tool']);
    await write(parent, ['returned', 'called'], ['done', 'other']);
    const up = await causesOf(stores, refTo(child), id(child, 'error'));
    expect(named(up?.causes ?? [])).toEqual(['tool', 'child', 'called', 'reasoned', 'started']);
    expect(up).toMatchObject({ event: { type: 'x.error', runId: child }, truncated: false });
    expect(up).not.toHaveProperty('beyond');
    const down = await effectsOf(stores, refTo(parent), id(parent, 'reasoned'));
    expect(down?.effects.map(({ type, depth }) => [type.slice(2), depth])).toEqual([
      ...[
        ['called', 1],
        ['returned', 2],
      ],
      ...[
        ['child', 2],
        ['tool', 3],
        ['error', 4],
      ],
    ]);
    expect(down?.truncated).toBe(false);
  });

  it('an event of another run or tenant, and one that is not there, has neither', async () => {
    const [mine, other] = [await runWith(), await runWith()];
    const theirs = await runWith({}, 'other');
    for (const runId of [mine, other, theirs]) await write(runId, ['started']);
    for (const eventId of [id(other, 'started'), id(theirs, 'started'), id(mine, 'none')]) {
      expect(await causesOf(stores, refTo(mine), eventId)).toBeUndefined();
      expect(await effectsOf(stores, refTo(mine), eventId)).toBeUndefined();
    }
    await write(mine, ['foreign', id(theirs, 'started')]);
    const found = await causesOf(stores, refTo(mine), id(mine, 'foreign'));
    expect(found).toMatchObject({ causes: [], truncated: false, beyond: id(theirs, 'started') });
  });

  it('both are bounded, and say so', async () => {
    const runId = await runWith();
    const chain = Array.from({ length: MAX_CAUSES + 2 }, (_, n) => `n${n}`);
    await write(runId, ...chain.map((key, at) => [key, chain[at - 1]] as const));
    const last = id(runId, chain.at(-1) ?? '');
    const up = await causesOf(stores, refTo(runId), last);
    expect([up?.causes.length, up?.truncated]).toEqual([MAX_CAUSES, true]);
    expect(up).not.toHaveProperty('beyond');
    const deep = await effectsOf(stores, refTo(runId), id(runId, 'n0'));
    expect([deep?.effects.length, deep?.truncated]).toEqual([MAX_EFFECT_DEPTH, true]);
    const wide = await runWith();
    const many = Array.from({ length: MAX_EFFECTS + 1 }, (_, n) => [`w${n}`, 'root'] as const);
    await write(wide, ['root'], ...many);
    const found = await effectsOf(stores, refTo(wide), id(wide, 'root'));
    expect([found?.effects.length, found?.truncated]).toEqual([MAX_EFFECTS, true]);
  });
});
