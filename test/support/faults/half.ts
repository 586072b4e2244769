// One half of a host as a process that tests may kill: `npm run worker` or `npm run serve` with the fault scene.
// Argument: `worker` or `serve`.
import { runCommand } from '../../../src/app/command.ts';
import { requireShared } from '../../../src/app/config.ts';
import { createHost } from '../../../src/app/host.ts';
import { ANNOUNCED_VARIABLE, EFFECTS_VARIABLE, faultScene } from './scene.ts';

const announcedMs = Number(process.env[ANNOUNCED_VARIABLE] ?? 0);
const isFacade = process.argv[2] === 'serve';

await runCommand({
  logLevel: 'info',
  async start({ config, logger, say }) {
    const apiKey = requireShared(config, `half ${process.argv[2] ?? ''}`, { facade: isFacade });
    const host = await createHost({
      config,
      parts: { facade: isFacade, worker: !isFacade },
      logger,
      apiKey,
      report: say,
      builtIn: faultScene(process.env[EFFECTS_VARIABLE] ?? ''),
      ...(announcedMs > 0 ? { waits: { announcedMs } } : {}),
    });
    say(`ready ${host.url || host.healthUrl}`);
    return host;
  },
});
