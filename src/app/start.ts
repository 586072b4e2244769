// `npm start`: everything in one process, and the demo run (architecture §1, §7).
import { createDemo, type Demo } from '../demo/index.ts';
import { runCommand, type CommandParts, type Running } from './command.ts';
import { openDataFolderInTime, type DataFolder } from './data-folder.ts';
import { showDemoRun } from './demo-run.ts';
import { createHost, type Host } from './host.ts';
import { sayModels } from './model-lines.ts';
import { post } from './own-api.ts';

/** No crash is survived: said where nobody overlooks it. */
const IN_MEMORY_WARNING =
  '\n*** NOTHING IS KEPT: Temporal runs in memory (its test server in Java). Every run, log and effect record ends with this process. For a trial only. ***\n';

await runCommand({ logLevel: 'warn', start });

async function start(parts: CommandParts): Promise<Running> {
  const { config, logger, say, signal } = parts;
  const folder = await openDataFolderInTime(config.dataDir, { report: say, signal });
  let demo: Demo | undefined;
  try {
    // The demo belongs to a host of its own: never beside data that others share.
    demo =
      config.database.kind === 'pglite'
        ? await createDemo({ dataDir: folder.path, logger })
        : undefined;
    return await startHost(parts, folder, demo);
  } catch (error) {
    await demo?.stop();
    folder.release();
    throw error;
  }
}

async function startHost(
  parts: CommandParts,
  folder: DataFolder,
  demo: Demo | undefined,
): Promise<Running> {
  const { config, logger, say, signal } = parts;
  const host = await createHost({
    config,
    parts: { facade: true, worker: true },
    logger,
    apiKey: config.apiKey ?? folder.apiKey(),
    report: say,
    builtIn: demo,
    // Of a host of its own alone: no worker of others performs a rehearsal, and no facade of others moves its clock.
    rehearsals: config.database.kind === 'pglite' && config.temporal.kind === 'dev',
    signal,
  });
  const running: Running = {
    stopLimitMs: host.stopLimitMs,
    async stop() {
      say('\nStopping …');
      await host.stop();
      await demo?.stop();
      folder.release();
    },
  };
  try {
    folder.keepUrl(host.url);
    say(`Open           ${await signInLink(host)}   (signs in once, within 10 minutes)`);
    say(`OpenWOP host   ${host.url}/.well-known/openwop`);
    if (host.publicUrl !== host.url) say(`Public URL     ${host.publicUrl}`);
    say(
      config.apiKey
        ? 'API key        as set by OPENWOP_API_KEY'
        : `API key        ${host.apiKey}   (kept in ${folder.path})`,
    );
    void sayModels({ models: host.models, say, signal });
    if (host.temporal.uiUrl) say(`Temporal UI    ${host.temporal.uiUrl}`);
    if (!host.temporal.traits.keepsRuns) say(IN_MEMORY_WARNING);
    if (config.opensentience)
      say(`Agents         of ${config.opensentience.dir}: npm run -s openwop -- agents`);
    if (demo && !signal.aborted) {
      // A key that somebody chose is not shown: the requests take it from where it was set.
      const shownKey = config.apiKey === undefined ? host.apiKey : undefined;
      await showDemoRun({ host, folder, shownKey, logger, say, signal });
    }
    return running;
  } catch (error) {
    await host.stop();
    throw error;
  }
}

/** What a newcomer clicks first: the host's pages, without typing a key. */
async function signInLink(host: Host): Promise<string> {
  const path = '/v1/host/openwop-temporal/sign-in-link';
  return (await post<{ url: string }>(host, path, { body: {} })).url;
}
