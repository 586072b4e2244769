// `npm run rebuild [-- <runId>…]`: writes logs and heads anew from Temporal history and its archive
// (architecture §3.6), all runs or those named. On shared parts it may run beside hosts; embedded ones belong to the
// one process that owns the data folder, so the host must be stopped.
import { codeOf, HostError } from '../rules/errors.ts';
import { runCommand, type CommandParts, type Running } from './command.ts';
import { openDataFolder } from './data-folder.ts';
import { createHost, type Host } from './host.ts';

await runCommand({ logLevel: 'warn', start: rebuildAndEnd });

async function rebuildAndEnd(parts: CommandParts): Promise<Running> {
  const { config, logger, say, signal } = parts;
  const embedded = config.database.kind === 'pglite' || config.temporal.kind === 'dev';
  const folder = embedded ? openDataFolder(config.dataDir) : undefined;
  try {
    const host = await createHost({
      config,
      parts: { facade: false, worker: false },
      logger,
      apiKey: '',
      report: say,
      signal,
    });
    const refused = await rebuild(host, process.argv.slice(2), say);
    await host.stop();
    folder?.release();
    process.exit(refused === 0 ? 0 : 1);
  } catch (error) {
    folder?.release();
    throw error;
  }
}

/** Returns how many runs could not be rebuilt; each is named with the reason. */
async function rebuild(
  { log, stores }: Pick<Host, 'log' | 'stores'>,
  runIds: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  if (runIds.length === 0) {
    const { rebuilt, refused } = await log.rebuildAll();
    for (const { runId, reason } of refused) say(`${runId}: ${reason}`);
    say(`${rebuilt} rebuilt, ${refused.length} refused`);
    return refused.length;
  }
  let refused = 0;
  for (const runId of runIds) {
    try {
      const run = await stores.runs.locate(runId);
      if (!run) throw await notThere(stores, runId);
      const { rows } = await log.rebuild(run);
      say(`${runId}: ${rows.length} events`);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      refused++;
      say(`${runId}: ${String(error)}`);
    }
  }
  return refused;
}

async function notThere({ retention }: Host['stores'], runId: string): Promise<HostError> {
  const atMs = await retention.expiredAt(runId);
  if (atMs === undefined) return new HostError('run_not_found', { runId });
  return new HostError('run_expired', { runId, expiredAt: new Date(atMs).toISOString() });
}
