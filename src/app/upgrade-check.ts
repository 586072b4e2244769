// `npm run upgrade-check [-- --ended N]`: replays the histories of all open runs, and of some that have ended, by the workflow
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

/** Runs that have ended, where nobody says how many. */
const ENDED = 50;

await runCommand({ logLevel: 'warn', start: checkAndEnd });

async function checkAndEnd(parts: CommandParts): Promise<Running> {
  const { config, logger, say, signal } = parts;
  const ended = endedOf(process.argv.slice(2));
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
    const { payloadCodecs = [] } = dataConverter(config);
    const connection = connectTemporal(host.temporal);
    const broken = await check(
      {
        connection,
        namespace: host.temporal.namespace,
        dataConverter: { payloadCodecs },
        bundle: await workflowBundle({ cacheDir: config.cacheDir }),
      },
      { ended, say },
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

function endedOf(args: readonly string[]): number {
  const [flag, value] = args;
  if (flag === undefined) return ENDED;
  if (flag === '--ended' && /^\d{1,6}$/.test(value ?? '')) return Number(value);
  throw new Error('upgrade-check takes --ended N alone: how many runs that have ended it looks at');
}

/** Returns how many would break; each is named with the reason. */
async function check(
  source: ReplaySource,
  { ended, say }: { readonly ended: number; readonly say: (line: string) => void },
): Promise<number> {
  let broken = 0;
  const look = async (segments: AsyncIterable<ReplayedSegment>): Promise<number> => {
    let looked = 0;
    for await (const { runId, temporalRunId, fault } of segments) {
      looked++;
      if (fault === undefined) continue;
      broken++;
      say(`${runId} (${temporalRunId}): ${fault}`);
    }
    return looked;
  };
  const open = await look(replayHistories(source, 'open'));
  const over = await look(replayHistories(source, { ended }));
  say(`${open} open and ${over} ended runs replayed, ${broken} would break`);
  return broken;
}
