// What a question is called where its answers have words of their own: they are not said twice.
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { headOf } from '../../src/words/question.ts';
import {
  approvalQuestion,
  decisionQuestion,
  doubtQuestion,
  refusedDoubtQuestion,
} from '../../workflows/questions.ts';

const ASKED: readonly (readonly [string, string, JsonObject, string])[] = [
  [
    'a decision',
    'low-confidence',
    decisionQuestion('a.b'),
    'a.b is less sure of this decision than required.',
  ],
  ['a doubt', 'approval', doubtQuestion('a:b', 'It was cut off.'), 'It was cut off.'],
  [
    'a refused doubt',
    'approval',
    refusedDoubtQuestion('a:b', 'It was cut off.'),
    'It was cut off.',
  ],
  [
    'a call',
    'approval',
    approvalQuestion('a.b', 'a:b'),
    "This tool is called only with a human's word.",
  ],
];

describe('headOf', () => {
  it.each(ASKED)(
    '%s: why it is asked, without the answers that the description spells',
    (_name, kind, data, why) => {
      expect(headOf({ kind, data }, 'A step').lead).toBe(why);
    },
  );

  it('a description that spells no answers stays whole', () => {
    const data = {
      description: 'accept: Yes. And more.',
      choices: [{ action: 'accept', label: 'Yes', effect: 'continue' }],
    };
    expect(headOf({ kind: 'approval', data }, 'A step').lead).toBe(data.description);
  });
});
