// Final outputs in a text: which objects are candidates, what makes two of them one, and that a long text is read once.
import { describe, expect, test } from 'vitest';
import { decisionsIn, distinctDecisions, splitObjects } from '../../src/rules/decision-text.ts';

const ONE = '{"decision":1}';
const TWO = '{"decision":2}';
const FENCE = '```';

describe('the objects of a text', () => {
  test.each<[string, readonly string[]]>([
    ['', []],
    ['No braces.', []],
    ['{}', ['{}']],
    ['a {"a":1} b {"b":{"c":[{}]}} c', ['{"a":1}', '{"b":{"c":[{}]}}']],
    ['[{"a":1},{"b":2}]', ['{"a":1}', '{"b":2}']],
    ['{"a":"}{"} {"b":"\\"}"}', ['{"a":"}{"}', '{"b":"\\"}"}']],
    ['It\'s 5" wide: {"a":1}', ['{"a":1}']],
    ['{so} {"a":1} } {"b":2}', ['{"a":1}', '{"b":2}']],
    // Within braces that are no JSON nothing is a candidate: it may be a part of what was meant.
    ['{see {"a":1}}', []],
    ['{"a":{"b":1}, c: {"d":2}}', []],
    // Where the last brace is missing, nobody knows what was to come.
    ['{"a":1} {"b":', []],
    ['{"a": {"b":1}', []],
  ])('%s', (text, objects) => {
    expect(splitObjects(text).objects).toEqual(objects);
  });

  test('what stands around them is the prose', () => {
    expect(splitObjects(`a ${ONE} b {c} d`).prose).toBe('a  b  d');
    expect(splitObjects(`a ${ONE} b {c`).prose).toBe('a  b ');
  });
});

describe('the decisions of a text', () => {
  test.each<[string, string, readonly string[]]>([
    ['alone', ONE, [ONE]],
    ['null', '{"decision":null}', ['{"decision":null}']],
    ['with blanks', ` \n${ONE}\n`, [ONE]],
    ['fenced', `${FENCE}json\n${ONE}\n${FENCE}`, [ONE]],
    ['behind prose', `So: ${ONE}`, [ONE]],
    ['before prose', `${ONE} is it.`, [ONE]],
    ['behind quoted JSON', `{"id":"A"}\n${ONE}`, [ONE]],
    ['before quoted JSON', `${ONE}\n{"id":"A"}`, [ONE]],
    ['questions', '{"type":"clarification.request"}', ['{"type":"clarification.request"}']],
    ['in an object', `{"plan":${ONE}}`, []],
    ['in a decision', `{"decision":${ONE}}`, [`{"decision":${ONE}}`]],
    ['in a text of an object', '{"a":"{\\"decision\\":1}"}', []],
    ['as words', '"decision"', []],
    ['in half', '{"decision":', []],
    ['encoded twice', JSON.stringify(ONE), [ONE]],
    ['encoded twice, fenced', `${FENCE}\n${JSON.stringify(ONE)}\n${FENCE}`, [ONE]],
    ['encoded three times', JSON.stringify(JSON.stringify(ONE)), []],
    ['encoded twice, two of them', JSON.stringify(`${ONE} ${TWO}`), []],
    ['two', `${ONE}\n${TWO}`, [ONE, TWO]],
    ['an example in a fence', `${FENCE}\n${ONE}\n${FENCE}\n${TWO}`, [ONE, TWO]],
    ['two in a list', `[${ONE},${TWO}]`, [ONE, TWO]],
    ['the same twice', `${ONE}\n{ "decision": 1 }`, [ONE]],
    [
      'a decision and questions',
      `${ONE}{"type":"clarification.request"}`,
      [ONE, '{"type":"clarification.request"}'],
    ],
  ])('%s', (_name, text, decisions) => {
    expect(decisionsIn(text)).toEqual(decisions);
  });

  test('members in another order are the same decision, a number that reads alike is not', () => {
    expect(
      decisionsIn('{"decision":1,"confidence":1}{"confidence":1.0,"decision":1}'),
    ).toHaveLength(1);
    expect(decisionsIn('{"decision":9007199254740992}{"decision":9007199254740993}')).toHaveLength(
      2,
    );
    expect(decisionsIn('{"decision":1e400}{"decision":1e400}')).toHaveLength(1);
    expect(distinctDecisions([ONE, TWO, ONE])).toEqual([ONE, TWO]);
  });

  test.each([
    ['braces that open', '{'.repeat(1_000_000)],
    ['objects that open', '{"a":'.repeat(200_000)],
    ['objects that are empty', '{}'.repeat(500_000)],
    ['nests that are no JSON', `${'{x'.repeat(300_000)}${'}'.repeat(300_000)}`],
    ['objects in objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
    ['quotes', '{"'.repeat(500_000)],
    ['quotes that are escaped', `{"${'\\"'.repeat(500_000)}`],
    ['fences', `${FENCE}\n`.repeat(250_000)],
  ])('a long text of %s is read, and has none', (_name, text) => {
    expect(decisionsIn(text)).toEqual([]);
  });

  test('a deep one is given, for its reader to refuse', () => {
    const deep = `{"decision":${'['.repeat(400_000)}${']'.repeat(400_000)}}`;
    expect(decisionsIn(`So: ${deep}`)).toEqual([deep]);
  });

  test('of many equal ones there is one', () => {
    expect(decisionsIn(ONE.repeat(50_000))).toEqual([ONE]);
  });
});
