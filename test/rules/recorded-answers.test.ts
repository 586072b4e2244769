// Whether a branch asks what its source asked (replay.md §Modes): an answer is taken for the same question alone.
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { questionText } from '../../src/rules/recorded-answers.ts';

const [ONE, OTHER] = ['1srOrx2ZWZBpBUvZwXKQmoEYga2', '2zzzzz2ZWZBpBUvZwXKQmoEYgzz'];
const asks = (data: JsonObject) => questionText({ kind: 'approval', data, resumeSchema: {} });
const about = (artifactData: JsonValue) => asks({ artifactType: 'approval', artifactData });
const isSame = (one: JsonValue, other: JsonValue) => about(one) === about(other);

describe('an answer is taken for the same question alone', () => {
  // [I73]
  it.each<[string, JsonValue, JsonValue]>([
    ['another run', { target: `run-${ONE}` }, { target: `run-${OTHER}` }],
    ['another session', { target: `session-${ONE}` }, { target: `session-${OTHER}` }],
    ['an id within a text', `Erase run-${ONE} now`, `Erase run-${OTHER} now`],
    ['another effect', { of: `eff-${'a'.repeat(64)}` }, { of: `eff-${'b'.repeat(64)}` }],
    [
      'two runs, the other way round',
      { from: `run-${ONE}`, to: `run-${OTHER}` },
      { from: `run-${OTHER}`, to: `run-${ONE}` },
    ],
    ['a text like a placeholder', { target: `run-${ONE}` }, { target: 'run-0' }],
    ['another time of a message', { messageId: 'm', ts: 1 }, { messageId: 'm', ts: 2 }],
    ['a message without its time', { messageId: 'm', ts: 1 }, { messageId: 'm' }],
    ['a value of another type', { amount: '5' }, { amount: 5 }],
  ])('%s is another question', (_, one, other) => {
    expect(isSame(one, other)).toBe(false);
    expect(isSame(one, one)).toBe(true);
  });

  it('the order of members is no difference', () => {
    expect(isSame({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
  });

  it('an effect in doubt has another id in each run; its call is compared', () => {
    const doubt = (id: string, to: string) =>
      asks({
        ...{ artifactType: 'effect-in-doubt', artifactId: `eff-${id.repeat(64)}` },
        artifactData: { toolId: 'demo:pay', callId: 'call-1', arguments: { to } },
      });
    expect(doubt('a', 'Ann') === doubt('b', 'Ann')).toBe(true);
    expect(doubt('a', `run-${ONE}`) === doubt('a', `run-${OTHER}`)).toBe(false);
    const gate = (artifactId: string) => asks({ artifactType: 'approval', artifactId });
    expect(gate('one') === gate('other')).toBe(false);
  });
});
