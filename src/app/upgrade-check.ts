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
import { isBuildId } from '../rules/builds.ts';
import { runCommand, type CommandParts, type Running } from './command.ts';
import { openDataFolder } from './data-folder.ts';
import { createHost } from './host.ts';
import { codecKeys } from './parts.ts';

/** Runs that have ended, where nobody says how many. */
const ENDED = 50;

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
    const { payloadCodecs = [] } = dataConverter(codecKeys(config, host.stores));
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

interface Asked {
  readonly ended: number;
  /** Open runs of this build alone. */
  readonly build?: string;
}

/** Of one build nobody asks for what has ended, unless it is said. */
function askedOf(args: readonly string[]): Asked {
  let asked: { ended?: number; build?: string } = {};
  for (let at = 0; at < args.length; at += 2) {
    const [flag, value = ''] = args.slice(at, at + 2);
    if (flag === '--ended' && /^\d{1,6}$/.test(value)) asked = { ...asked, ended: Number(value) };
    else if (flag === '--build' && isBuildId(value)) asked = { ...asked, build: value };
    else
      throw new Error(
        'upgrade-check takes --ended N, how many runs that have ended it looks at, and --build ID, whose open runs, alone',
      );
  }
  return { ended: asked.build === undefined ? ENDED : 0, ...asked };
}

/** Returns how many would break; each is named with the reason. */
async function check(
  source: ReplaySource,
  { ended, build, say }: Asked & { readonly say: (line: string) => void },
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
  const open = await look(replayHistories(source, build === undefined ? 'open' : { build }));
  const over = await look(replayHistories(source, { ended }));
  say(`${open} open and ${over} ended runs replayed, ${broken} would break`);
  return broken;
}
