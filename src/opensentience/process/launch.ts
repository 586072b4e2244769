// Starts an agent's process (seed 004 §5.2): in its own group, in its own folder, with an environment of named variables
// only. Token and socket travel in the environment, never in arguments, which anybody may list.
import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import type { AgentFolder } from '../manifest.ts';
import { SOCKET_VARIABLE, TOKEN_VARIABLE } from '../messages.ts';
import type { OutputCapture } from './output-capture.ts';
import { recordProcess, signalGroup, type ProcessRecord } from '../../system/processes.ts';

/** The agent's own id, for programs that serve several. */
const AGENT_ID_VARIABLE = 'OPENSENTIENCE_AGENT_ID';
/** Variables of Core that each agent gets besides those that its manifest names: no key, no address, no password. */
const INHERITED_VARIABLES: readonly string[] = ['PATH', 'HOME', 'LANG', 'TMPDIR'];
/** How long the output of an ended process is still read, in ms. */
const OUTPUT_LINGER_MS = 1_000;
/** A limit that is stricter already cannot be raised, and stays. `exec` keeps the pid. */
const WITH_LIMITS =
  'if [ -n "$1" ]; then ulimit -n "$1"; fi; if [ -n "$2" ]; then ulimit -t "$2"; fi; shift 2; exec "$@"';

export interface LaunchOptions {
  readonly agent: AgentFolder;
  readonly socketPath: string;
  readonly token: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly output: OutputCapture;
}

export interface Exit {
  /** Ended by itself, with code 0. */
  readonly clean: boolean;
  /** For operators: an exit code, a signal's name or the system's word on why it could not start. */
  readonly reason: string;
}

export interface LaunchedProcess {
  /** Absent when it could not be started; `exited` tells why. */
  readonly record?: ProcessRecord;
  readonly exited: Promise<Exit>;
  /** Signals the whole group. */
  signal(signal: NodeJS.Signals): void;
}

/** Never throws. Whatever the leader leaves behind in its group ends with it. */
export function launchProcess(options: LaunchOptions): LaunchedProcess {
  const child = startChild(options);
  if ('reason' in child) return { exited: Promise.resolve(child), signal: () => undefined };
  if (child.stdout) options.output.attach(child.stdout, 'stdout');
  if (child.stderr) options.output.attach(child.stderr, 'stderr');
  const { pid } = child;
  const exited = exitOf(child).then((exit) => {
    if (pid !== undefined) signalGroup(pid, 'SIGKILL');
    // A process that left the group may hold the pipes for ever.
    const pipes = [child.stdout, child.stderr];
    setTimeout(() => pipes.forEach((pipe) => pipe?.destroy()), OUTPUT_LINGER_MS).unref();
    return exit;
  });
  if (pid === undefined) return { exited, signal: () => undefined };
  let running = true;
  void exited.then(() => (running = false));
  return {
    record: recordProcess(pid) ?? { pid, startedAt: '' },
    exited,
    signal(signal) {
      if (running) signalGroup(pid, signal);
    },
  };
}

function startChild(options: LaunchOptions): ChildProcess | Exit {
  const { folder, manifest } = options.agent;
  const { command = '', args = [] } = manifest.launch ?? {};
  const path = command.includes('/') ? resolve(folder, command) : command;
  const { openFiles, cpuSeconds } = manifest.limits ?? {};
  const limited = openFiles !== undefined || cpuSeconds !== undefined;
  const limits = [openFiles, cpuSeconds].map((limit) => (limit === undefined ? '' : String(limit)));
  const [file, ...rest] = limited
    ? ['/bin/sh', '-c', WITH_LIMITS, 'sh', ...limits, path, ...args]
    : [path, ...args];
  try {
    return spawn(file, rest, {
      cwd: folder,
      env: childEnvironment(options),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    return couldNotStart(error);
  }
}

/** Nothing of Core's environment but what is named: Core's may hold keys. */
function childEnvironment(options: Omit<LaunchOptions, 'output'>): Record<string, string> {
  const { id, launch } = options.agent.manifest;
  const names = [...INHERITED_VARIABLES, ...(launch?.inheritEnv ?? [])];
  const inherited = names.flatMap((name) => {
    const value = options.environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    // Where its command starts tsx by itself (src/system/typescript.js).
    TSX_DISABLE_CACHE: '1',
    ...Object.fromEntries(inherited),
    ...launch?.env,
    [SOCKET_VARIABLE]: options.socketPath,
    [TOKEN_VARIABLE]: options.token,
    [AGENT_ID_VARIABLE]: id,
  };
}

function couldNotStart(error: unknown): Exit {
  const code = (error as { code?: string } | null)?.code ?? 'unknown';
  return { clean: false, reason: `could not be started (${code})` };
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((done) => {
    child.once('error', (error) => {
      if (child.pid === undefined) done(couldNotStart(error));
    });
    child.once('exit', (code, signal) =>
      done({ clean: code === 0, reason: signal ?? `exit code ${code}` }),
    );
  });
}
