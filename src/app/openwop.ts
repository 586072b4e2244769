// `npm run -s openwop -- …`: the operator's command line over the HTTP API (src/cli). The environment says where the
// host is; beside `npm start` nothing need be said, because its key is kept in the data folder.
import { runCli } from '../cli/program.ts';
import { DEFAULT_DATA_DIR, DEFAULT_PORT } from './config.ts';
import { keptApiKey } from './data-folder.ts';

/** Empty is absent, as in the host's own configuration. */
const variable = (name: string): string | undefined => process.env[name]?.trim() || undefined;

// A reader that has enough (`| head`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

process.exitCode = await runCli(process.argv.slice(2), {
  url: variable('OPENWOP_URL') ?? `http://127.0.0.1:${DEFAULT_PORT}`,
  apiKey:
    variable('OPENWOP_API_KEY') ?? keptApiKey(variable('OPENWOP_DATA_DIR') ?? DEFAULT_DATA_DIR),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
