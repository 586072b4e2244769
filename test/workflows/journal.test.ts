// The journal alone (architecture §2.1): what is stated twice, and what is stated behind the end.
import '../support/plain-sandbox.ts';
import { beforeEach, expect, test, vi } from 'vitest';
import type * as Journal from '../../workflows/journal.ts';

let journal: typeof Journal;
beforeEach(async () => {
  // A Temporal run has modules of its own.
  vi.resetModules();
  journal = await import('../../workflows/journal.ts');
});

const state = (key: string) => journal.emit('run.cancelled', {}, { key });
const stated = () => journal.drainOutbox().map(({ entry }) => entry);

// [I3]
test('a key names one fact: a second one under it is a fault', () => {
  state('a');
  expect(() => state('a')).toThrow(/used twice/);
  expect(stated()).toHaveLength(1);
});

test('an event of a result is admitted once', () => {
  const events = [{ type: 'run.cancelled', payload: {} }] as const;
  journal.admit('n/1/0/call', events);
  expect(() => journal.admit('n/1/0/call', events)).toThrow(/used twice/);
});

// [I4]
test('behind the end nothing is stated, admitted or noted', () => {
  journal.endJournal('completed');
  state('late');
  journal.admit('n/1/0/call', [{ type: 'run.cancelled', payload: {} }]);
  journal.noteStatus('cancelling');
  expect(stated()).toEqual([]);
});

test('what is taken back stands before everything newer, in its own place', () => {
  state('a');
  const first = journal.drainOutbox();
  state('b');
  journal.takeBack(first);
  expect(journal.drainOutbox().map(({ at }) => at)).toEqual([0, 1]);
});
