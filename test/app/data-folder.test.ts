// The data folder has one owner, and keeps the development key (architecture §7).
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processSpace, recordProcess } from '../../src/system/processes.ts';
import {
  keptApiKey,
  keptUrl,
  LOCK_RENEWAL_MS,
  LOCK_REST_MS,
  openCoreFolder,
  openDataFolder,
  openDataFolderInTime,
} from '../../src/app/data-folder.ts';

let root: string;
let path: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'openwop-folder-'));
  path = join(root, 'data');
});
afterEach(() => rmSync(root, { recursive: true }));

const modeOf = (name: string) => statSync(name).mode & 0o777;

describe('architecture §7 one owner', () => {
  it('a second owner is refused by one line that names the first; after release it is free', () => {
    const first = openDataFolder(path);
    expect(() => openDataFolder(path)).toThrow(
      `The data folder ${path} is in use by process ${process.pid}.`,
    );
    first.release();
    openDataFolder(path).release();
  });

  it('another living process keeps it', async () => {
    openDataFolder(path).release();
    const other = spawn('sleep', ['60']);
    try {
      writeFileSync(join(path, 'owner.lock'), JSON.stringify(recordProcess(other.pid as number)));
      expect(() => openDataFolder(path)).toThrow(`process ${other.pid}`);
    } finally {
      const gone = new Promise((resolve) => other.once('exit', resolve));
      other.kill('SIGKILL');
      await gone;
    }
    openDataFolder(path).release();
  });

  const stale: readonly [string, string][] = [
    [
      'of a pid that is another process by now',
      JSON.stringify({ pid: process.pid, startedAt: 'long ago' }),
    ],
    ['of a process that is gone', JSON.stringify({ pid: 2 ** 22 + 1, startedAt: 'x' })],
    ['cut by a power loss', '{"pid":'],
    ['that is empty', ''],
  ];
  it.each(stale)('a lock %s is recovered', (_name, content) => {
    openDataFolder(path).release();
    writeFileSync(join(path, 'owner.lock'), content);
    const folder = openDataFolder(path);
    expect(readFileSync(join(path, 'owner.lock'), 'utf8')).toBe(
      JSON.stringify({ ...recordProcess(process.pid), space: processSpace() }),
    );
    folder.release();
  });

  it('release leaves the lock of another owner', () => {
    const folder = openDataFolder(path);
    writeFileSync(join(path, 'owner.lock'), 'of another');
    folder.release();
    expect(readFileSync(join(path, 'owner.lock'), 'utf8')).toBe('of another');
  });
});

describe('architecture §7 an owner of another namespace of processes, or another boot', () => {
  const lock = () => join(path, 'owner.lock');
  const ago = (ms: number) => new Date(Date.now() - ms);
  /** `pid` means another process here, or none. */
  const lockedElsewhere = (pid: number, renewedMs: number): void => {
    openDataFolder(path).release();
    writeFileSync(lock(), JSON.stringify({ pid, startedAt: 'x', space: 'elsewhere' }));
    utimesSync(lock(), ago(renewedMs), ago(renewedMs));
  };

  it.each([process.pid, 2 ** 22 + 1])(
    'keeps the folder while it renews its lock, whatever its pid %i means here',
    (pid) => {
      lockedElsewhere(pid, 0);
      expect(() => openDataFolder(path)).toThrow(
        new RegExp(`in use by process ${pid} of another container.* again in \\d+ s: `),
      );
      expect(readFileSync(lock(), 'utf8')).toContain('elsewhere');
      expect(readdirSync(path)).toEqual(['owner.lock']);
    },
  );

  it.each([
    ['has not renewed its lock for so long', LOCK_REST_MS + 1_000],
    ['renewed it at a time that is not yet: the clock began again', -LOCK_REST_MS - 60_000],
  ])('that %s has ended', (_, renewedMs) => {
    lockedElsewhere(1, renewedMs);
    openDataFolder(path).release();
  });

  it('that was killed is waited for, one that renews its lock is not, and nobody on abort', async () => {
    const ending = new AbortController();
    const quiet = { report: () => undefined, signal: ending.signal };
    lockedElsewhere(1, LOCK_REST_MS - 2_000);
    (await openDataFolderInTime(path, quiet)).release();
    lockedElsewhere(1, 1_000);
    const opening = openDataFolderInTime(path, quiet);
    utimesSync(lock(), ago(0), ago(0));
    await expect(opening).rejects.toMatchObject({ code: 'data_folder_in_use' });
    utimesSync(lock(), ago(1_000), ago(1_000));
    const givenUp = openDataFolderInTime(path, quiet);
    ending.abort();
    await expect(givenUp).rejects.toMatchObject({ code: 'data_folder_in_use' });
  });

  describe('sees that the owner', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
    afterEach(() => void vi.useRealTimers());

    it('renews its lock until it releases the folder', () => {
      const folder = openDataFolder(path);
      const old = ago(LOCK_REST_MS);
      utimesSync(lock(), old, old);
      vi.advanceTimersByTime(LOCK_RENEWAL_MS);
      expect(statSync(lock()).mtimeMs).toBeGreaterThan(old.getTime() + LOCK_REST_MS / 2);
      expect(() => openDataFolder(path)).toThrow(`process ${process.pid}.`);
      folder.release();
      expect(vi.getTimerCount()).toBe(0);
    });

    it('ends when another one took the folder over while it stood still', () => {
      const folder = openDataFolder(path);
      lockedElsewhereNow();
      expect(() => vi.advanceTimersByTime(LOCK_RENEWAL_MS)).toThrow('took it over');
      folder.release();
      expect(readFileSync(lock(), 'utf8')).toContain('elsewhere');
    });

    it('goes on when its lock is gone', () => {
      const folder = openDataFolder(path);
      rmSync(lock());
      vi.advanceTimersByTime(LOCK_RENEWAL_MS);
      folder.release();
    });

    const lockedElsewhereNow = () =>
      writeFileSync(lock(), JSON.stringify({ pid: 1, startedAt: 'x', space: 'elsewhere' }));
  });
});

describe('architecture §10 what is kept is private', () => {
  it('folder 0700, key 0600, and the key stays the same', () => {
    const folder = openDataFolder(path);
    const key = folder.apiKey();
    expect(key).toMatch(/^owop_dev_[\w-]{32}$/);
    expect(folder.apiKey()).toBe(key);
    folder.release();
    const again = openDataFolder(path);
    expect(again.apiKey()).toBe(key);
    again.release();
    expect([modeOf(path), modeOf(join(path, 'api-key'))]).toEqual([0o700, 0o600]);
  });

  it('what is written is read back; what was never written is undefined', () => {
    const folder = openDataFolder(path);
    folder.write('demo-run', 'run-1');
    expect([folder.read('demo-run'), folder.read('other')]).toEqual(['run-1', undefined]);
    folder.release();
  });
});

it('what is kept in a folder that is none, or that is no file, is absent', () => {
  writeFileSync(path, '');
  expect([keptApiKey(path), keptUrl(path)]).toEqual([undefined, undefined]);
  const folder = join(root, 'other');
  mkdirSync(join(folder, 'api-key'), { recursive: true });
  expect([keptApiKey(folder), keptUrl(folder)]).toEqual([undefined, undefined]);
});

describe('Cores on one data folder', () => {
  it('each has a folder of its own; the next one takes the first that is free', () => {
    const first = openCoreFolder(path);
    const second = openCoreFolder(path);
    expect([first.path, second.path]).toEqual([join(path, 'cores', '0'), join(path, 'cores', '1')]);
    first.release();
    const third = openCoreFolder(path);
    expect(third.path).toBe(first.path);
    second.release();
    third.release();
  });
});
