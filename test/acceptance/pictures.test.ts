// The pictures of docs/ can be taken at any time (test/support/pictures.ts), and none is shown that is not.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/chromium.ts';
import { takePictures } from '../support/pictures.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SHOWN = /\(((?:docs\/)?pictures\/[\w-]+\.png)\)/g;
const folder = mkdtempSync(join(tmpdir(), 'pictures-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function shown(): string[] {
  const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
  const texts = pages
    .filter((path) => path.endsWith('.md'))
    .map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const found = texts.flatMap((text) => [...text.matchAll(SHOWN)].map(([, path = '']) => path));
  return [...new Set(found.map((path) => path.replace(/^docs\//, '')))].sort();
}

describe('the pictures of docs/', () => {
  const kept = readdirSync(join(ROOT, 'docs', 'pictures')).map((name) => `pictures/${name}`);

  it('each that is kept is shown, and each that is shown is kept', () => {
    expect(kept.sort()).toEqual(shown());
  });

  it.skipIf(!chromiumPath)('[chromium] are taken of the pages as they are', async () => {
    const taken = await takePictures(folder);
    expect(taken.map((name) => `pictures/${name}`).sort()).toEqual(shown());
    for (const name of taken) expect(statSync(join(folder, name)).size).toBeGreaterThan(10_000);
  });
});
