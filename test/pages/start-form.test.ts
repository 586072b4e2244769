// The form that starts a run: made of the workflow's variables, read back into inputs, with what was wrong at its field
// (rest-endpoints.md §POST /v1/runs).
import { describe, expect, it } from 'vitest';
import {
  AGENT_FIELDS,
  fieldsOf,
  filledForm,
  renderStartPage,
  sentInputs,
  type StartPageModel,
} from '../../src/pages/index.ts';
import type { WorkflowVariable } from '../../schemas/types.generated.ts';

type Variable = WorkflowVariable;
const text: Variable = { name: 'note', type: 'string' };
const count: Variable = { name: 'count', type: 'number' };
const gift: Variable = { name: 'gift', type: 'boolean' };
const order: Variable = { name: 'order', type: 'object' };
const lines: Variable = { name: 'lines', type: 'array' };
const secret: Variable = { name: 'pin', type: 'string', sensitive: true };

function read(variable: Variable, form: Record<string, string>) {
  const { inputs, faults } = sentInputs(fieldsOf([variable]), form);
  return faults.length > 0 ? faults[0]?.message : inputs;
}

function page(variables: readonly Variable[], more: Partial<StartPageModel> = {}): string {
  const fields = more.fields ?? fieldsOf(variables);
  return renderStartPage({
    name: 'Refund',
    kind: 'workflow',
    fields,
    form: filledForm(fields),
    action: '/pages/start/refund?form=1',
    csrfToken: 'token',
    homeUrl: '/pages',
    ...more,
  });
}

describe('rest-endpoints.md: a field becomes the value that its variable takes', () => {
  it.each<[string, Variable, Record<string, string>, unknown]>([
    ['text', text, { 'input.note': ' hi ' }, { note: ' hi ' }],
    ['text that looks like a number', text, { 'input.note': '007' }, { note: '007' }],
    ['lines', text, { 'input.note': 'a\r\nb' }, { note: 'a\nb' }],
    ['text left empty', text, { 'input.note': '', 'empty.note': '' }, {}],
    ['text of spaces', text, { 'input.note': ' ' }, { note: ' ' }],
    ['empty text on purpose', text, { 'input.note': '', 'empty.note': 'text' }, { note: '' }],
    ['null on purpose', text, { 'input.note': '', 'empty.note': 'null' }, { note: null }],
    ['text before its meaning', text, { 'input.note': 'a', 'empty.note': 'null' }, { note: 'a' }],
    [
      'required text, null is none of its meanings',
      { ...text, required: true },
      { 'input.note': '', 'empty.note': 'null' },
      {},
    ],
    ['number', count, { 'input.count': ' 12.50 ' }, { count: 12.5 }],
    ['small number', count, { 'input.count': '-1e-3' }, { count: -0.001 }],
    ['number left empty', count, { 'input.count': ' ' }, {}],
    ['number, null', count, { 'input.count': '', 'empty.count': 'null' }, { count: null }],
    ['number, no text', count, { 'input.count': '', 'empty.count': 'text' }, {}],
    ['yes', gift, { 'input.gift': 'true' }, { gift: true }],
    ['no is not absent', gift, { 'input.gift': 'false' }, { gift: false }],
    ['absent is not no', gift, { 'input.gift': '' }, {}],
    ['yes or no, null', gift, { 'input.gift': 'null' }, { gift: null }],
    ['object', order, { 'input.order': '{"id": [1]}' }, { order: { id: [1] } }],
    ['list', lines, { 'input.lines': ' ["a"] ' }, { lines: ['a'] }],
    ['object, null', order, { 'input.order': 'null' }, { order: null }],
    ['object left empty', order, { 'input.order': '\r\n' }, {}],
    ['no field at all', order, {}, {}],
    ['a field of no variable', text, { 'input.other': 'x' }, {}],
  ])('%s', (_, variable, form, expected) => {
    expect(read(variable, form)).toEqual(expected);
  });

  it.each<[string, Variable, string, string]>([
    ['words', count, 'twelve', 'must be a number'],
    ['hexadecimal', count, '0x10', 'must be a number'],
    ['infinite', count, 'Infinity', 'must be a number'],
    ['a comma', count, '1,5', 'must be a number'],
    ['too large', count, '1e400', 'kept exactly'],
    ['[I103] an order number that a double would change', count, '12345678901234567890', 'exactly'],
    ['[I103] a fraction that it would', count, '0.1000000000000000055', 'exactly'],
    ['[I103] such a number in a part', order, '{"a":[9007199254740993]}', '/a/0 is a number'],
    ['[I103] a member named __proto__', order, '{"__proto__":{}}', '/__proto__ is a name'],
    ['another word', gift, 'perhaps', 'must be yes or no'],
    ['no JSON', order, '{a: 1}', 'is not valid JSON'],
    ['half a list', lines, '["a",', 'is not valid JSON'],
  ])('%s is refused in words', (_, variable, given, words) => {
    const found = read(variable, { [`input.${variable.name}`]: given });
    expect(found).toContain(words);
    expect(found).not.toContain(given);
  });

  it('each fault names its field by the JSON pointer of the request', () => {
    const { faults } = sentInputs(fieldsOf([{ ...count, name: 'a/b~c' }]), { 'input.a/b~c': 'x' });
    expect(faults.map(({ pointer }) => pointer)).toEqual(['/inputs/a~1b~0c']);
  });

  it('tags are words between commas', () => {
    expect(sentInputs([], { tags: ' desk, ,night shift,' }).tags).toEqual(['desk', 'night shift']);
    expect(sentInputs([], {}).tags).toEqual([]);
  });

  it("an agent's inputs are one JSON object", () => {
    const sent = (json: string) => sentInputs(AGENT_FIELDS, { 'input.': json });
    expect(sent('{"task": "look"}').inputs).toEqual({ task: 'look' });
    expect(sent('').inputs).toEqual({});
    expect(sent('{').faults[0]?.pointer).toBe('/inputs');
  });

  it.each(['__proto__', 'constructor', 'csrf', 'tags', 'toString', 'a\nb', 'x\ud800', '"<i>"'])(
    'a variable may be called %j',
    (name) => {
      const fields = fieldsOf([{ name, type: 'string' }]);
      const control = fields[0]?.control ?? '';
      // As a browser sends it: what it would change is not in the name.
      const form = Object.fromEntries([
        ...new URLSearchParams([
          [control, 'x'],
          ['csrf', 'y'],
        ]),
      ]);
      const { inputs, tags } = sentInputs(fields, form);
      expect([Object.entries(inputs), tags]).toEqual([[[name, 'x']], []]);
      expect(Object.getPrototypeOf(inputs)).toBe(Object.prototype);
    },
  );
});

describe('the form shows what the workflow declares', () => {
  it('a workflow without variables is one button', () => {
    const html = page([]);
    expect(html).toContain('takes no inputs');
    expect(html.match(/<button/g)?.length).toBe(1);
  });

  it('defaults stand in the fields, and come back as they are', () => {
    const variables: Variable[] = [
      { ...text, defaultValue: 'two\nlines' },
      { ...count, defaultValue: 0 },
      { ...gift, defaultValue: false },
      { ...order, defaultValue: { a: [null] } },
      { ...lines, defaultValue: [] },
    ];
    const fields = fieldsOf(variables);
    const { inputs, faults } = sentInputs(fields, filledForm(fields));
    expect([inputs, faults]).toEqual([
      { note: 'two\nlines', count: 0, gift: false, order: { a: [null] }, lines: [] },
      [],
    ]);
    expect(page(variables)).toContain('<textarea id="f0"');
  });

  it('the inputs of a run come back as they are, empty texts and null too, and no other', () => {
    const fields = fieldsOf([{ ...text, defaultValue: 'x' }, count, gift, order, secret, lines]);
    const inputs = { note: '', count: null, gift: null, order: null, pin: '1234' };
    const form = filledForm(fields, inputs);
    expect(JSON.stringify(form)).not.toContain('1234');
    expect(sentInputs(fields, form).inputs).toEqual({ ...inputs, pin: undefined });
  });

  it('[I104] what a field does not show of a text stands below it, and JSON shows it', () => {
    const variables = [
      { ...text, defaultValue: 'A-\u202e7001' },
      { ...order, defaultValue: { a: 'A-\u202e7001' } },
    ];
    const html = page(variables);
    expect(html).toContain(String.raw`The whole text is: <code>A-\u202e7001</code>`);
    expect(html).toContain(String.raw`&quot;a&quot;: &quot;A-\u202e7001&quot;`);
    expect(html.match(/The whole text is/g)).toHaveLength(1);
    const fields = fieldsOf(variables);
    expect(sentInputs(fields, filledForm(fields)).inputs.order).toEqual({ a: 'A-\u202e7001' });
  });

  it('an empty default is what the empty field stands for', () => {
    const fields = fieldsOf([
      { ...text, defaultValue: '' },
      { ...count, defaultValue: null },
    ]);
    expect(filledForm(fields)).toEqual({});
  });

  it('a long default is told, used, and not put into the field', () => {
    const long = 'x'.repeat(100 * 1024);
    const variables = [{ ...text, defaultValue: long }];
    const html = page(variables);
    expect(html.length).toBeLessThan(20_000);
    expect(html).toContain('102,400 characters');
    expect(sentInputs(fieldsOf(variables), filledForm(fieldsOf(variables))).inputs).toEqual({});
    const like = filledForm(fieldsOf(variables), { note: `${long}!` });
    expect(like['input.note']).toBe(`${long}!`);
  });

  // [I60]
  it('a sensitive value is never in the page: no default, nothing that was typed, no fault with it', () => {
    const kinds: Variable['type'][] = ['string', 'number', 'boolean', 'object', 'array'];
    for (const type of kinds) {
      const variable: Variable = { ...secret, type, defaultValue: 'hush-default '.repeat(300) };
      const form = { 'input.pin': type === 'boolean' ? 'true' : 'hush-typed', 'empty.pin': '' };
      const { faults } = sentInputs(fieldsOf([variable]), form);
      const html = page([variable], { form, faults });
      expect(html).not.toContain('hush');
      expect(html).not.toContain('"true" selected');
      if (type !== 'boolean') expect(html).toContain('<input type="password"');
      if (faults.length > 0) expect(html).toContain('type it again');
    }
  });

  it('names, descriptions, defaults and what was typed are text, whatever they are', () => {
    const evil = `"><img src=x onerror=alert(1)><script>alert('1')</script></textarea>`;
    const variables: Variable[] = [
      { name: evil, type: 'string', description: evil, format: evil, defaultValue: evil },
      { name: `${evil}2`, type: 'object', defaultValue: { [evil]: evil.repeat(40) } },
    ];
    const html = page(variables, {
      name: evil,
      description: evil,
      faults: [
        { pointer: `/inputs/${evil.replaceAll('/', '~1')}`, message: evil },
        { pointer: evil, message: evil },
      ],
      notice: { kind: 'error', text: evil, runUrl: evil },
    });
    expect(html).not.toMatch(/<img|<script|onerror=alert\(1\)>/);
  });

  it('200 variables are 200 fields; more than a form is good for are told where to go', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at): Variable => ({ name: `v${at}`, type: 'string' }));
    expect(page(many(200)).match(/<div class="field"/g)?.length).toBe(201);
    const html = page(many(501));
    expect(html).toContain('POST /v1/runs');
    expect(html).not.toContain('<form');
  });
});

describe('what was wrong stands at its field and, with a link, on top', () => {
  const fields = fieldsOf([text, { ...order, name: 'a/b' }]);
  const html = page([], {
    fields,
    form: { 'input.note': 'kept', 'input.a/b': '{"kept": 1', tags: 'kept, too' },
    faults: [
      { pointer: '/inputs/a~1b', message: 'must be of type object' },
      { pointer: '/tags/1', message: 'must not be larger than 256 bytes' },
      { pointer: '/configurable', message: 'does not match' },
    ],
  });
  it('by its pointer', () => {
    expect(html).toContain('<a href="#f1">a/b must be of type object</a>');
    expect(html).toContain('<p class="fault" id="f1-fault">a/b must be of type object</p>');
    expect(html).toMatch(/id="f1"[^>]*aria-describedby="f1-hint f1-fault"[^>]*aria-invalid="true"/);
    expect(html).not.toContain('id="f0-fault"');
  });
  it('what no field has is told with its place', () => {
    expect(html).toContain('<li>/configurable does not match</li>');
    expect(html).toContain('<a href="#tags">A tag must not be larger than 256 bytes</a>');
    expect(html).toContain('3 things are not right');
  });
  it('what was typed stays', () => {
    expect(html).toContain('value="kept"');
    expect(html).toContain('{&quot;kept&quot;: 1');
    expect(html).toContain('value="kept, too"');
  });
});

it('offers a rehearsal where there may be one, and keeps what was chosen', () => {
  expect(page([text])).not.toContain('rehearsal');
  expect(page([text], { rehearsal: { isChosen: false } })).toMatch(
    /name="rehearsal" value="yes" aria-describedby="rehearsal-hint">/,
  );
  expect(page([text], { rehearsal: { isChosen: true } })).toMatch(/name="rehearsal"[^>]* checked>/);
});
