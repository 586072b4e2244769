// The pictures of docs/: each that a page shows is kept and can be taken anew, and no other is. That they can be taken of the
// pages as they are is shown by `npm run campaign -- pictures`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SHOTS } from '../support/picture-shots.ts';
import { ROOT } from '../support/root.ts';

const SHOWN = /\(((?:docs\/)?pictures\/[\w-]+\.png)\)/g;

function shown(): string[] {
  const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
  const texts = pages
    .filter((path) => path.endsWith('.md'))
    .map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const found = texts.flatMap((text) => [...text.matchAll(SHOWN)].map(([, path = '']) => path));
  return [
    ...new Set(found.map((path) => path.replace(/^docs\/pictures\/|^pictures\//, ''))),
  ].sort();
}

describe('the pictures of docs/', () => {
  it('each that is kept is shown, and each that is shown is kept', () => {
    expect(readdirSync(join(ROOT, 'docs', 'pictures')).sort()).toEqual(shown());
  });

  it('those that are shown are those that are taken', () => {
    expect(SHOTS.map(({ name }) => `${name}.png`).sort()).toEqual(shown());
  });
});
