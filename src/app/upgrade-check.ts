// `npm run upgrade-check [-- --ended N --build ID]`, or `openwop upgrade-check`: replays the histories of all open runs, and of some that have ended, by the workflow
// code of this build, and names those that would break, with the reason (docs/upgrades.md). It changes nothing. On shared
// parts it runs beside hosts; an embedded Temporal belongs to the process that owns the data folder, so the host must be
// stopped.
import { dataConverter } from '../adapters/temporal/codec.ts';
import { workflowBundle } from '../adapters/temporal/bundle.ts';
import { connectTemporal } from '../adapters/temporal/connection.ts';
import {
  replayHistories,
  type ReplaySource,
  type ReplayedSegment,
} from '../adapters/temporal/replay-histories.ts';
import { runCommand, type CommandParts, type Running } from './command.ts';
import { openDataFolder } from './data-folder.ts';
import { createHost } from './host.ts';
import { codecKeys } from './parts.ts';
import { askedOf, type Asked } from './upgrade-check-flags.ts';

await runCommand({ logLevel: 'warn', start: checkAndEnd });

async function checkAndEnd(parts: CommandParts): Promise<Running> {
  const { config, logger, say, signal } = parts;
  const asked = askedOf(process.argv.slice(2));
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
    const { payloadCodecs = [] } = dataConverter(codecKeys(host.stores));
    const connection = connectTemporal(host.temporal);
    const broken = await check(
      {
        connection,
        namespace: host.temporal.namespace,
        dataConverter: { payloadCodecs },
        bundle: await workflowBundle({ cacheDir: config.cacheDir }),
      },
      { ...asked, say },
    );
    await connection.close();
    await host.stop();
    folder?.release();
    process.exit(broken === 0 ? 0 : 1);
  } catch (error) {
    folder?.release();
    throw error;
  }
}

/** Returns how many would break, and how many open ones could not be checked; each is named with the reason. */
async function check(
  source: ReplaySource,
  { ended, build, say }: Asked & { readonly say: (line: string) => void },
): Promise<number> {
  let broken = 0;
  const unread: string[] = [];
  const look = async (segments: AsyncIterable<ReplayedSegment>): Promise<number> => {
    let replayed = 0;
    for await (const { runId, temporalRunId, fault, isUnread } of segments) {
      if (isUnread) unread.push(runId);
      else replayed++;
      if (fault === undefined) continue;
      if (!isUnread) broken++;
      say(`${runId} (${temporalRunId}): ${isUnread ? 'not checked: ' : ''}${fault}`);
    }
    return replayed;
  };
  const open = await look(replayHistories(source, build === undefined ? 'open' : { build }));
  const unchecked = unread.length;
  const over = await look(replayHistories(source, { ended }));
  const left =
    unread.length === 0 ? '' : `, ${unread.length} could not be read and were not checked`;
  say(`${open} open and ${over} ended runs replayed, ${broken} would break${left}`);
  return broken + unchecked;
}
