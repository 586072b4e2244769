// Which build a process is (docs/upgrades.md): as it was told, or, with `auto`, made of the release and the workflow code.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { workflowDigest } from '../../src/adapters/temporal/bundle.ts';
import { buildOf } from '../../src/app/build.ts';
import { readConfig } from '../../src/app/config.ts';
import { VERSION } from '../../src/app/versions.ts';
import { isBuildId } from '../../src/rules/builds.ts';

const dir = mkdtempSync(join(tmpdir(), 'openwop-build-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const build = (env: Record<string, string>) =>
  buildOf(readConfig({ OPENWOP_DATA_DIR: dir, OPENWOP_API_KEY: 'owop_a_key_of_tests', ...env }));
const SHARED = { TEMPORAL_ADDRESS: '127.0.0.1:7233' };

it('auto: the release and the digest of the workflow code, so that the same code is the same build', async () => {
  const { versioning } = await build({ ...SHARED, OPENWOP_BUILD_ID: 'auto' });
  expect(versioning?.buildId).toBe(`${VERSION}-${(await workflowDigest()).slice(0, 12)}`);
  expect(isBuildId(versioning?.buildId ?? '')).toBe(true);
  expect((await build({ ...SHARED, OPENWOP_BUILD_ID: 'auto' })).versioning).toEqual(versioning);
});

it.each([
  [
    { ...SHARED, OPENWOP_BUILD_ID: '2026-05' },
    { buildId: '2026-05', runs: 'pinned' },
  ],
  [{ OPENWOP_BUILD_ID: '2026-05' }, { buildId: '2026-05', runs: 'auto-upgrade' }],
  [SHARED, undefined],
])('%j', async (env, versioning) => {
  expect((await build(env)).versioning).toEqual(versioning);
});

it('docs/upgrades.md one process refuses to pin runs to itself', async () => {
  const pinned = { OPENWOP_BUILD_ID: 'a', OPENWOP_RUN_VERSIONING: 'pinned' };
  await expect(build(pinned)).rejects.toThrow(/OPENWOP_RUN_VERSIONING/);
});

it('its runs are pinned once the server takes the id, and not before', async () => {
  const known = await build({ ...SHARED, OPENWOP_BUILD_ID: '2026-05' });
  expect(known.pinned()).toBeUndefined();
  known.note(true);
  expect(known.pinned()).toBe('2026-05');
  known.note(false);
  expect(known.pinned()).toBeUndefined();
});
