// The pictures of docs/ can be taken of the pages as they are (test/support/pictures.ts). Run by
// `npm run campaign -- pictures`.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/chromium.ts';
import { SHOTS } from '../support/picture-shots.ts';
import { takePictures } from '../support/pictures.ts';

const folder = mkdtempSync(join(tmpdir(), 'pictures-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the pictures of docs/', () => {
  it.skipIf(!chromiumPath)('[chromium] are taken of the pages as they are', async () => {
    const taken = await takePictures(folder);
    expect(taken).toEqual(SHOTS.map(({ name }) => `${name}.png`));
    for (const name of taken) expect(statSync(join(folder, name)).size).toBeGreaterThan(10_000);
  });
});
