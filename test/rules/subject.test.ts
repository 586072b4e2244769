// Who acts: stored whole, shown as the first major knows it, read in the form of earlier versions.
import { describe, expect, it } from 'vitest';
import { ownerOf, ownPrincipal, type RunInput } from '../../src/rules/run-input.ts';
import { asSubject, principalOf, subjectOf } from '../../src/rules/subject.ts';
import { shownEvent } from '../support/shown-event.ts';
import { validateEvent } from '../../src/wire/validators.ts';

const subject = subjectOf('api-key', 't', 'api-key:t');

function shown(type: string, payload: object) {
  const row = { runId: 'r', sequence: 0, eventId: 'evt-1', key: 'k', timestampMs: 0, type };
  return shownEvent({ ...row, payload: JSON.stringify(payload) });
}

describe('architecture §9 a subject', () => {
  it('says who vouches, how it proved itself, and what it is', () => {
    expect(subject).toEqual({
      issuer: 'urn:openwop-temporal:api-key',
      subjectId: 'api-key:t',
      tenant: 't',
      lane: 'api-key',
      kind: 'workload',
    });
    expect(subjectOf('session', 't', 's')).toMatchObject({ lane: 'session', kind: 'user' });
  });

  it.each([
    ['whole', subject, 'api-key:t'],
    ['of an earlier version', 'api-key:old', 'api-key:old'],
  ])('%s has a principal', (_, stored, principal) => {
    expect(principalOf(stored)).toBe(principal);
    expect(asSubject(stored)).toEqual(stored);
  });

  it.each([[undefined], [null], [1], [[]], [{ tenant: 't' }]])('%j is none', (value) => {
    expect(asSubject(value)).toBeUndefined();
  });
});

describe('the first major shows strings', () => {
  it.each([
    ['now', { tenant: 't', subject }],
    ['by an earlier version', { tenant: 't', principal: 'api-key:t' }],
  ])('owner of run.started as stored %s', (_, owner) => {
    const event = shown('run.started', { workflowId: 'w', owner });
    expect(event.payload).toEqual({
      workflowId: 'w',
      owner: { tenant: 't', principal: 'api-key:t' },
    });
    expect(validateEvent({ ...event, eventId: `evt-${'0'.repeat(27)}` })).toMatchObject({
      ok: true,
    });
  });

  it.each([
    ['now', subject],
    ['by an earlier version', 'api-key:t'],
  ])('resolvedBy of interrupt.resolved as stored %s', (_, resolvedBy) => {
    const event = shown('interrupt.resolved', { nodeId: 'n', interruptId: 'i', resolvedBy });
    expect(event.payload).toEqual({ nodeId: 'n', interruptId: 'i', resolvedBy: 'api-key:t' });
  });
});

it.each([
  ['of this version', { tenant: 't', subject }, { tenant: 't', subject }],
  [
    'of an earlier version',
    { tenant: 't', principal: 'api-key:t' },
    { tenant: 't', principal: 'api-key:t' },
  ],
])('a run %s states its owner as it was given, in a replay too', (_, given, owner) => {
  const input = given as RunInput;
  expect(ownerOf(input)).toEqual(owner);
  expect(ownPrincipal(input)).toBe('api-key:t');
});
