// One that cannot be closed does not leave the others to the next file.
import { expect, it } from 'vitest';
import { atEndOfFile, endFile } from './at-end.ts';

const fails = (message: string) => () => Promise.reject(new Error(message));

it.each<[string, readonly string[], string]>([
  ['one error', ['a'], 'a'],
  ['all errors', ['a', 'b'], 'Error: b; Error: a'],
])(
  'what a file left to be closed runs to the end, and then throws %s',
  async (_, names, message) => {
    const closed: string[] = [];
    const close = (name: string) => async () => void closed.push(name);
    atEndOfFile(close('first'));
    for (const name of names) atEndOfFile(fails(name));
    atEndOfFile(close('last'));
    await expect(endFile()).rejects.toThrow(message);
    expect(closed).toEqual(['last', 'first']);
    await endFile();
  },
);
