// The example agents as processes, started as their manifests say. A machine without Python or Go skips those by name;
// with OPENWOP_TEST_REQUIRE=python,go that is an error.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type ExampleName = 'notebook' | 'ledger' | 'files';

const NEEDS: Record<ExampleName, { readonly word: string; readonly command: string[] }> = {
  notebook: { word: 'node', command: ['node', '--version'] },
  ledger: { word: 'python', command: ['python3', '--version'] },
  files: { word: 'go', command: ['go', 'version'] },
};

/** Whether this machine can run the example. */
export function canRun(name: ExampleName): boolean {
  const { word, command } = NEEDS[name];
  const [program = '', ...args] = command;
  const present = spawnSync(program, args).status === 0;
  if (!present && (process.env.OPENWOP_TEST_REQUIRE ?? '').split(',').includes(word))
    throw new Error(`OPENWOP_TEST_REQUIRE names ${word}, and there is none.`);
  return present;
}

/** Folder of an example, with a slash at its end. */
export function exampleFolder(name: ExampleName): string {
  return fileURLToPath(new URL(`../../../examples/${name}/`, import.meta.url));
}

interface Manifest {
  readonly id: string;
  readonly launch: { readonly command: string; readonly args: string[]; inheritEnv: string[] };
}

export interface LaunchedExample {
  readonly id: string;
  readonly child: ChildProcess;
  /** Both outputs. */
  readonly written: () => string;
  /** Exit code and signal. */
  readonly exited: Promise<[number | null, string | null]>;
}

/** As Core starts it (src/opensentience/process/launch.ts). */
const ALWAYS_INHERITED = ['PATH', 'HOME', 'LANG', 'TMPDIR'];

/** With the environment that its manifest gives it, and nothing else but `env`. */
export function launchExample(
  name: ExampleName,
  env: Record<string, string>,
  cwd = exampleFolder(name),
): LaunchedExample {
  const text = readFileSync(join(cwd, 'opensentience.agent.json'), 'utf8');
  const { id, launch } = JSON.parse(text) as Manifest;
  const inherited = [...ALWAYS_INHERITED, ...launch.inheritEnv].flatMap((one) =>
    process.env[one] === undefined ? [] : [[one, process.env[one]] as const],
  );
  const all = { ...Object.fromEntries(inherited), ...env };
  const child = spawn(launch.command, launch.args, { cwd, env: all, stdio: 'pipe' });
  let written = '';
  child.stdout.on('data', (chunk: Buffer) => (written += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (written += chunk.toString()));
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  return { id, child, written: () => written, exited };
}
