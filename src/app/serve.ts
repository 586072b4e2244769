// `npm run serve`: the facade half; any number of them on one Temporal and one PostgreSQL.
import { runCommand } from './command.ts';
import { requireShared } from './config.ts';
import { createHost } from './host.ts';
import { sayModels } from './model-lines.ts';

await runCommand({
  logLevel: 'info',
  async start({ config, logger, say, signal }) {
    const apiKey = requireShared(config, 'npm run serve', { facade: true });
    const host = await createHost({
      config,
      parts: { facade: true, worker: false },
      logger,
      apiKey,
      report: say,
    });
    say(`OpenWOP facade   ${host.url}/.well-known/openwop`);
    if (host.publicUrl !== host.url) say(`Public URL       ${host.publicUrl}`);
    void sayModels({ models: host.models, say, signal });
    return host;
  },
});
