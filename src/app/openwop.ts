// `npm run -s openwop -- …`: the operator's command line over the HTTP API (src/cli). The environment says where the
// host is, in the host's own variables; beside `npm start` nothing need be said, because the data folder keeps its
// address and key.
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { CliParts } from '../cli/cli.ts';
import { CliFault } from '../cli/faults.ts';
import { interrupted } from '../cli/host-client.ts';
import { runCli } from '../cli/program.ts';
import { keptApiKey, keptUrl } from './data-folder.ts';
import { DEFAULT_DATA_DIR, DEFAULT_PORT } from './defaults.ts';

const LAUNCHER = fileURLToPath(new URL('./launch.js', import.meta.url));
const ROOT = join(import.meta.dirname, '..', '..');
/** One Ctrl-C reaches this process twice, from the terminal and from npm: repeats within this time (ms) are the same. */
const SAME_SIGNAL_MS = 1_500;

/** Empty is absent, as in the host's own configuration. */
const variable = (name: string): string | undefined => process.env[name]?.trim() || undefined;

/** Of the checkout, wherever this was called from: npm runs the host there. */
const dataDir = variable('OPENWOP_DATA_DIR') ?? join(ROOT, DEFAULT_DATA_DIR);

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

/** What a terminal is told; else only where somebody says how wide it is. */
function screen(): { columns: number | undefined; colour: boolean } {
  const { isTTY, columns } = process.stdout;
  const said = Number(variable('COLUMNS'));
  const width = isTTY && columns > 0 ? columns : undefined;
  return {
    columns: Number.isInteger(said) && said > 0 ? said : width,
    colour: isTTY === true && variable('NO_COLOR') === undefined && variable('TERM') !== 'dumb',
  };
}

/** Time in ms that a replay may take, the bundling of workflow code, where it is the first, included. */
const REPLAY_LIMIT_MS = 600_000;
/** Of what it tells: a difference with both its payloads. */
const REPORT_BYTES = 64 * 1024 * 1024;
/** All that a replay is given of the environment: where programs are, and where bundled workflow code is kept. */
const REPLAY_VARIABLES = ['PATH', 'HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'OPENWOP_CACHE_DIR'];

/** In a process of its own: this one loads no workflow code, and what a file makes of it ends with it. */
const replay: NonNullable<CliParts['replay']> = async (path, signal) => {
  const env = Object.fromEntries(REPLAY_VARIABLES.map((name) => [name, process.env[name]]));
  const args = [LAUNCHER, 'replay-bundle', path];
  const limits = { timeout: REPLAY_LIMIT_MS, maxBuffer: REPORT_BYTES, signal };
  const options = { cwd: ROOT, env, killSignal: 'SIGKILL', ...limits } as const;
  const { stdout } = await promisify(execFile)(process.execPath, args, options).catch(
    (cause: unknown) => {
      if (signal.aborted) throw interrupted(cause);
      const said = (cause as { stderr?: string }).stderr ?? '';
      throw new CliFault(`The replay broke off. ${said}`, { code: 'replay_failed', cause });
    },
  );
  return JSON.parse(stdout) as Awaited<ReturnType<typeof replay>>;
};

/** With the whole environment, which is a worker's, and in the checkout, as npm would run it. It speaks for itself. */
const upgradeCheck: NonNullable<CliParts['upgradeCheck']> = (args, signal) =>
  new Promise((resolve, reject) => {
    const command = [LAUNCHER, 'upgrade-check', ...args];
    const check = spawn(process.execPath, command, { cwd: ROOT, stdio: 'inherit' });
    // Ctrl-C reaches it from the terminal, too; a signal to this process alone does not.
    signal.addEventListener('abort', () => check.kill('SIGINT'), { once: true });
    check.once('error', reject);
    check.once('exit', (code) => (signal.aborted ? reject(interrupted()) : resolve(code ?? 1)));
  });

function ctrlC(): AbortSignal {
  const abort = new AbortController();
  let firstAtMs: number | undefined;
  process.on('SIGINT', () => {
    abort.abort();
    firstAtMs ??= performance.now();
    if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(130);
  });
  return abort.signal;
}

// A reader that has enough (`| head`) is no fault.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });

process.exitCode = await runCli(process.argv.slice(2), {
  url: hostUrl(),
  apiKey: variable('OPENWOP_API_KEY') ?? keptApiKey(dataDir),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  screen: screen(),
  input: process.stdin,
  isAttended: process.stdin.isTTY === true && process.stderr.isTTY === true,
  signal: ctrlC(),
  replay,
  upgradeCheck,
  self: [process.execPath, join(import.meta.dirname, 'openwop-bin.js')],
});
