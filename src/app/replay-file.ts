// The file of a run (`openwop import`), replayed: reads it, plays its record by the workflow code of this release, and says
// how what that states compares with the record.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf, HostError } from '../rules/errors.ts';
import { RUN_BUNDLE_BYTES } from '../rules/limits.ts';
import type { Recording } from '../rules/recording.ts';
import { compareReplayed, type ReplayReport } from '../rules/replayed.ts';
import type { RunInput } from '../rules/run-input.ts';
import { readRunBundle, tooLarge } from '../wire/run-bundle.ts';
import { replayOffline } from '../adapters/temporal/offline.ts';
import { VERSION } from './versions.ts';

/** Nobody is asked, and nothing is read but the file and the workflow code that is kept in `cacheDir`. */
export function replayFile(path: string, cacheDir: string): Promise<ReplayReport> {
  return replay(path, cacheDir).catch(refusalOf);
}

async function replay(path: string, cacheDir: string): Promise<ReplayReport> {
  const { run, input, recording, redaction, host } = readRunBundle(await readBounded(path));
  const played = {
    input: input as unknown as RunInput,
    recording: recording as unknown as Recording,
  };
  const stated = await replayOffline(cacheDir, played).catch((cause: unknown) => {
    const reason = `The workflow code of this release cannot play the record: ${messageOf(cause)}`;
    throw new HostError('replay_diverged', { reason }, cause);
  });
  return {
    kind: 'replayed',
    ...{ runId: run.runId, workflowId: run.workflowId, status: run.status },
    events: recording.entries.length,
    compared: compareReplayed(played.recording.entries, stated),
    withheld: redaction.withheld,
    ...{ madeBy: host.version, replayedBy: VERSION },
  };
}

/** A file says its size before it is read; one that is longer than it says is cut there, and is no bundle then. */
async function readBounded(path: string): Promise<Uint8Array> {
  // What is no file may have nobody at its other end: it is looked at, and not waited for.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  const file = await open(path, flags).catch((cause: unknown) => {
    throw new HostError('bundle_invalid', { reason: `The file cannot be read: ${path}` }, cause);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile())
      throw new HostError('bundle_invalid', { reason: `This is no file: ${path}` });
    if (stat.size > RUN_BUNDLE_BYTES) throw tooLarge(stat.size);
    const bytes = new Uint8Array(stat.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A fault of the file is told in its own words; one of ours with its stack, by whoever started this. */
function refusalOf(error: unknown): ReplayReport {
  const code = codeOf(error);
  if (code === undefined) throw error;
  return { kind: 'refused', code, message: messageOf(error) };
}
