// A PostgreSQL cluster of a test's own, to be killed: a free port, a temporary folder, gone afterwards. Where PostgreSQL is not
// installed the reason comes back instead, and with OPENWOP_TEST_REQUIRE=postgres that is an error.
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { chown, mkdtemp, readdir, readFile, realpath, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { patient } from './machine.ts';

const run = promisify(execFile);
const START_LIMIT_MS = 30_000;
const START_POLL_MS = 50;
const NAME = 'openwop-postgres-';
/** Of what a server wrote, for the error when it does not start. */
const LOG_CHARS = 2_000;

export interface TestPostgres {
  /** A fresh, empty database; its URL. */
  createDatabase(): Promise<string>;
  /** SIGKILL of the whole server, as a crash would. */
  kill(): Promise<void>;
  /** Connections stay, and nothing is answered any more; until `thaw`. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** On the same port and folder. */
  restart(): Promise<void>;
  /** Copies all that it holds now, for `failOver`. */
  copy(): Promise<void>;
  /** SIGKILL, and a server with the last copy alone takes its place, as after a failover that loses what was confirmed since. */
  failOver(): Promise<void>;
  /** A standby that reads this server's log through the slot, which it makes, and says what its sessions see. */
  standby(slot: string): Promise<TestStandby>;
  stop(): Promise<void>;
}

export interface TestStandby {
  /** URL of what is there under the same URL of the server that it follows. */
  urlOf(url: string): string;
  stop(): Promise<void>;
}

export interface Missing {
  readonly missing: string;
}
export type StartedPostgres = TestPostgres | Missing;
type Settings = Readonly<Record<string, string>>;

/** Resolves to `{missing: reason}` where there is no PostgreSQL; throws then if the environment requires it. */
export async function startPostgres(settings: Settings = {}): Promise<StartedPostgres> {
  const bin = await findBinaries();
  if (bin === undefined) {
    const missing = 'PostgreSQL is not installed (no initdb in PATH or /usr/lib/postgresql)';
    if ((process.env.OPENWOP_TEST_REQUIRE ?? '').split(',').includes('postgres'))
      throw new Error(missing);
    return { missing };
  }
  const owner = process.getuid?.() === 0 ? await ownerOf('postgres') : undefined;
  const dir = await makeFolder(owner);
  const data = join(dir, 'data');
  const cluster = new Cluster({ bin, data, dir, owner, settings });
  try {
    await run(
      join(bin, 'initdb'),
      ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
      { ...owner, cwd: dir },
    );
    await cluster.restart();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** In the temporary folder; in /tmp where the owner cannot reach that, as below the home of root. */
async function makeFolder(owner: Owner | undefined): Promise<string> {
  const dir = await ownFolder(tmpdir(), owner);
  if (owner === undefined) return dir;
  // Its own folder is 0700, so it reaches what it can write.
  const isReached = await run('test', ['-w', dir], { ...owner, cwd: '/' }).then(
    () => true,
    () => false,
  );
  if (isReached) return dir;
  await rm(dir, { recursive: true });
  return ownFolder('/tmp', owner);
}

async function ownFolder(base: string, owner: Owner | undefined): Promise<string> {
  const dir = await mkdtemp(join(base, NAME));
  if (owner) await chown(dir, owner.uid, owner.gid);
  return dir;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as root. */
async function ownerOf(user: string): Promise<Owner> {
  const [uid, gid] = await Promise.all([run('id', ['-u', user]), run('id', ['-g', user])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

async function findBinaries(): Promise<string | undefined> {
  const base = '/usr/lib/postgresql';
  const versions = await readdir(base).catch(() => []);
  const packaged = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(base, version, 'bin'));
  for (const dir of [...(process.env.PATH ?? '').split(':'), ...packaged]) {
    const found = await run(join(dir, 'initdb'), ['--version']).catch(() => undefined);
    // A link may stand for one program of those that lie beside it.
    if (found) return dirname(await realpath(join(dir, 'initdb')));
  }
  return undefined;
}

/** Its backends: they would notice the death of their server a moment later and might finish what they do. */
async function childrenOf(pid: number | undefined): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface ClusterOptions {
  readonly bin: string;
  readonly data: string;
  readonly dir: string;
  readonly owner: Owner | undefined;
  readonly settings: Settings;
}

class Cluster implements TestPostgres, TestStandby {
  readonly #options: ClusterOptions;
  #server: ChildProcess | undefined;
  /** Kept from the first start on: it is part of what was told. */
  #port = 0;
  #wasUp = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  get #copied(): string {
    return join(this.#options.dir, 'copied');
  }

  get #log(): string {
    return join(this.#options.dir, 'log');
  }

  async createDatabase(): Promise<string> {
    const name = `t_${randomUUID().replaceAll('-', '')}`;
    await askPostgres(this.#url('postgres'), `CREATE DATABASE ${name}`);
    return this.#url(name);
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  freeze(): Promise<void> {
    return this.#signalAll('SIGSTOP');
  }

  thaw(): Promise<void> {
    return this.#signalAll('SIGCONT');
  }

  async #signalAll(signal: NodeJS.Signals): Promise<void> {
    const pid = this.#server?.pid;
    if (pid === undefined) throw new Error('PostgreSQL does not run');
    // The server first: a stopped one makes no more backends. Backends end by themselves meanwhile.
    process.kill(pid, signal);
    for (const child of await childrenOf(pid)) signalIfThere(child, signal);
  }

  async restart(): Promise<void> {
    const { bin, data, dir, owner } = this.#options;
    const settings = { shared_buffers: '32MB', ...this.#options.settings };
    const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const deadline = Date.now() + patient(START_LIMIT_MS);
    for (;;) {
      // After a kill the backends of the old server need a moment before a new one may take the folder.
      if (this.#server === undefined || this.#server.exitCode !== null) {
        // Somebody may have taken a port that was free a moment ago.
        if (!this.#wasUp) this.#port = await freePort();
        const args = ['-D', data, '-p', String(this.#port), '-k', '', '-h', '127.0.0.1', ...set];
        // No socket: its path has a limit of about 100 bytes. No pipe: a server outlives whoever reads it.
        const log = openSync(this.#log, 'a');
        const options: SpawnOptions = { ...owner, cwd: dir, stdio: ['ignore', log, log] };
        this.#server = spawn(join(bin, 'postgres'), args, options);
        closeSync(log);
      }
      if (await this.#isUp()) {
        this.#wasUp = true;
        return;
      }
      if (Date.now() > deadline) {
        const said = await readFile(this.#log, 'utf8').catch(String);
        throw new Error(`PostgreSQL did not start: ${said.slice(-LOG_CHARS).trim()}`);
      }
      await new Promise((resolve) => setTimeout(resolve, START_POLL_MS));
    }
  }

  /** Who answers on the port is this server and no other. */
  async #isUp(): Promise<boolean> {
    try {
      const [row] = await askPostgres(this.#url('postgres'), 'SHOW data_directory');
      return row?.data_directory === this.#options.data;
    } catch {
      return false;
    }
  }

  async copy(): Promise<void> {
    await this.#backUp(this.#copied);
  }

  async failOver(): Promise<void> {
    const { data } = this.#options;
    await this.kill();
    await rename(data, join(this.#options.dir, `lost-${randomUUID()}`));
    await rename(this.#copied, data);
    await this.restart();
  }

  async #backUp(folder: string, more: readonly string[] = []): Promise<void> {
    const { bin, dir, owner } = this.#options;
    const from = ['-d', this.#url('postgres'), '-D', folder, '-c', 'fast', '-N', ...more];
    await run(join(bin, 'pg_basebackup'), from, { ...owner, cwd: dir });
  }

  async standby(slot: string): Promise<TestStandby> {
    const dir = await makeFolder(this.#options.owner);
    const data = join(dir, 'data');
    const own = { hot_standby_feedback: 'on', wal_receiver_status_interval: '1' };
    const settings = { ...this.#options.settings, ...own };
    const copy = new Cluster({ ...this.#options, dir, data, settings });
    try {
      await this.#backUp(data, ['-R', '-C', '-S', slot]);
      await copy.restart();
    } catch (error) {
      await copy.stop();
      throw error;
    }
    return copy;
  }

  urlOf(url: string): string {
    const here = new URL(url);
    here.port = String(this.#port);
    return here.href;
  }

  async stop(): Promise<void> {
    await this.#end('SIGINT');
    await rm(this.#options.dir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once('exit', resolve));
    const children = signal === 'SIGKILL' ? await childrenOf(server.pid) : [];
    server.kill(signal);
    for (const pid of children) signalIfThere(pid, 'SIGKILL');
    await ended;
  }

  #url(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/${database}`;
  }
}

/** One statement on a connection of its own. */
export async function askPostgres(
  connectionString: string,
  text: string,
): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}
