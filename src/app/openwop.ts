// `npm run -s openwop -- …`: the operator's command line over the HTTP API (src/cli). The environment says where the
// host is, in the host's own variables; beside `npm start` nothing need be said, because the data folder keeps its
// address and key.
import { runCli } from '../cli/program.ts';
import { DEFAULT_DATA_DIR, DEFAULT_PORT } from './config.ts';
import { keptApiKey, keptUrl } from './data-folder.ts';

/** Empty is absent, as in the host's own configuration. */
const variable = (name: string): string | undefined => process.env[name]?.trim() || undefined;

const dataDir = variable('OPENWOP_DATA_DIR') ?? DEFAULT_DATA_DIR;

/** As said; else where a host with this environment listens, or with a free port (0) listened last. */
function hostUrl(): string {
  const port = variable('OPENWOP_PORT');
  const told = port === '0' ? undefined : port;
  return (
    variable('OPENWOP_URL') ??
    (told === undefined ? keptUrl(dataDir) : undefined) ??
    `http://127.0.0.1:${told ?? DEFAULT_PORT}`
  );
}

// A reader that has enough (`| head`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

process.exitCode = await runCli(process.argv.slice(2), {
  url: hostUrl(),
  apiKey: variable('OPENWOP_API_KEY') ?? keptApiKey(dataDir),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
});
