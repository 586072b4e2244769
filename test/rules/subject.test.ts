// Who acts: stored whole, shown as the first major knows it.
import { describe, expect, it } from 'vitest';
import { ownerOf, ownPrincipal } from '../../src/rules/run-input.ts';
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

  it('has a principal', () => {
    expect(principalOf(subject)).toBe('api-key:t');
    expect(asSubject(subject)).toEqual(subject);
  });

  it.each([[undefined], ['api-key:t'], [null], [1], [[]], [{ tenant: 't' }]])(
    '%j is none',
    (value) => {
      expect(asSubject(value)).toBeUndefined();
    },
  );
});

describe('the first major shows strings', () => {
  it('owner of run.started', () => {
    const event = shown('run.started', { workflowId: 'w', owner: { tenant: 't', subject } });
    expect(event.payload).toEqual({
      workflowId: 'w',
      owner: { tenant: 't', principal: 'api-key:t' },
    });
    expect(validateEvent({ ...event, eventId: `evt-${'0'.repeat(27)}` })).toMatchObject({
      ok: true,
    });
  });

  it('resolvedBy of interrupt.resolved', () => {
    const payload = { nodeId: 'n', interruptId: 'i', resolvedBy: subject };
    const event = shown('interrupt.resolved', payload);
    expect(event.payload).toEqual({ nodeId: 'n', interruptId: 'i', resolvedBy: 'api-key:t' });
  });
});

it('a run states its owner as it was given, in a replay too', () => {
  const input = { tenant: 't', subject };
  expect(ownerOf(input)).toEqual(input);
  expect(ownPrincipal(input)).toBe('api-key:t');
});
