// Names under which providers know tools.
import { expect, test } from 'vitest';
import { functionNameOf, toolIdOf } from '../../src/adapters/models/tool-names.ts';

test('tool ids become names of the allowed form, none twice, and come back', () => {
  const ids = [
    'a:b',
    'a_cb',
    'a__cb',
    'a.b',
    'a/b',
    'a:ü',
    `x:${'y'.repeat(100)}`,
    `x:${'y'.repeat(101)}`,
  ];
  const names = ids.map(functionNameOf);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(new Set(names).size).toBe(ids.length);
  expect(names.map((name) => toolIdOf(name, ids))).toEqual(ids);
  expect(toolIdOf('made_up', ids)).toBe('made_up');
});
