// `npm run worker`: the worker half; any number of them on one Temporal and one PostgreSQL.
import { runCommand } from './command.ts';
import { requireShared } from './config.ts';
import { createHost } from './host.ts';
import { sayModels } from './model-lines.ts';

await runCommand({
  logLevel: 'info',
  async start({ config, logger, say, signal }) {
    const apiKey = requireShared(config, 'npm run worker', { facade: false });
    const host = await createHost({
      config,
      parts: { facade: false, worker: true },
      logger,
      apiKey,
      report: say,
    });
    say(`OpenWOP worker on ${host.temporal.address}, namespace ${host.temporal.namespace}`);
    if (host.healthUrl) say(`Health           ${host.healthUrl}/readyz`);
    void sayModels({ models: host.models, say, signal });
    return host;
  },
});
