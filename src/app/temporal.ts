// `npm run temporal`: the data folder's Temporal server alone, for halves that are tried on one machine. It is found,
// obtained and kept as `npm start` does it (architecture §7).
import { HostError } from '../rules/errors.ts';
import { runCommand } from './command.ts';
import type { Config } from './config.ts';
import { openDataFolderInTime } from './data-folder.ts';
import { locateTemporal } from './parts.ts';
import { Started } from './started.ts';

await runCommand({
  logLevel: 'warn',
  async start({ config, logger, say, signal }) {
    requireOwnServer(config);
    const folder = await openDataFolderInTime(config.dataDir, { report: say, signal });
    const started = new Started(logger);
    try {
      const options = { config, logger, report: say, signal };
      // Halves keep their runs in a database of their own: a server that forgets them is none for them.
      const located = await locateTemporal(options, { orInMemory: false });
      const { address, namespace, uiUrl } = await located.start(started);
      if (uiUrl) say(`Temporal UI    ${uiUrl}`);
      say(`Temporal       ${address}, namespace ${namespace}. For the halves of the host:`);
      say(`  export TEMPORAL_ADDRESS=${address} TEMPORAL_NAMESPACE=${namespace}`);
    } catch (error) {
      await started.stop();
      folder.release();
      throw error;
    }
    return {
      stopLimitMs: started.stopLimitMs(),
      async stop() {
        say('\nStopping …');
        await started.stop();
        folder.release();
      },
    };
  },
});

function requireOwnServer({ temporal }: Config): void {
  if (temporal.kind === 'dev') return;
  const fault = 'TEMPORAL_ADDRESS names a server that runs already: `npm run temporal` starts one.';
  throw new HostError('config_invalid', { reason: fault, faults: [fault] });
}
