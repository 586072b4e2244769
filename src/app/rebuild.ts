// `npm run rebuild [-- <runId>…]`: writes logs and heads anew from Temporal history and its archive
// (architecture §3.6), all runs or those named. On shared parts it may run beside hosts; embedded ones belong to the
// one process that owns the data folder, so the host must be stopped.
import { runCommand, type CommandParts, type Running } from './command.ts';
import { openDataFolder } from './data-folder.ts';
import { createHost } from './host.ts';
import { rebuildRuns } from './rebuild-runs.ts';

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
    const refused = await rebuildRuns(host, process.argv.slice(2), say);
    await host.stop();
    folder?.release();
    process.exit(refused === 0 ? 0 : 1);
  } catch (error) {
    folder?.release();
    throw error;
  }
}
