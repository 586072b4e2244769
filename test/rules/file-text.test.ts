// The text of files that people write: the same however an editor saved it, or refused with what to do.
import { describe, expect, it } from 'vitest';
import { fileText } from '../../src/rules/file-text.ts';
import { EDITORS, NO_TEXT } from '../support/editor-files.ts';

describe('given the bytes of a file, then its text', () => {
  const text = 'Grüße, 世界 𝄞\n\n  "second"\u2028\u00a0\n';
  it.each(Object.entries(EDITORS))('%s', (_, saved) => {
    expect(fileText(saved(text))).toEqual({ ok: true, text });
    expect(fileText(saved(''))).toEqual({ ok: true, text: '' });
  });
  it('only the first mark is none of the text, and a lone carriage return is one', () => {
    const within = 'a\ufeffb\rc';
    for (const saved of Object.values(EDITORS))
      expect(fileText(saved(within))).toEqual({ ok: true, text: within });
    expect(fileText(Buffer.from('\ufeff\ufeffa'))).toEqual({ ok: true, text: '\ufeffa' });
  });
  it('a part of a larger buffer is read alone', () => {
    const all = Buffer.from('xx\ufeff{}xx');
    expect(fileText(all.subarray(2, -2))).toEqual({ ok: true, text: '{}' });
  });
  it.each(Object.entries(NO_TEXT))('%s is refused, with what to do', (_, bytes) => {
    expect(fileText(bytes)).toEqual({
      ok: false,
      message: expect.stringMatching(/^is no.*; save it as UTF-8$/) as string,
    });
  });
});
