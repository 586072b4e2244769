// Folders of tests, gone at their end.
import { mkdtempSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A fresh folder, removed after the tests of this file. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'owop-agents-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder as the operator has it: a manifest and what it launches. */
export function writeAgent(
  agentsDir: string,
  manifest: { readonly id: string; readonly [field: string]: unknown },
  files: Readonly<Record<string, string>> = {},
): string {
  const folder = join(agentsDir, manifest.id);
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'opensentience.agent.json'),
    JSON.stringify({ version: '1.0.0', ...manifest }),
  );
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
