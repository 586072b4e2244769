// The ways to a Temporal server (architecture §7): their order, what each says, and what is tried again.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  obtainProgram,
  type ProgramOptions,
} from '../../src/adapters/temporal/server-program/index.ts';
import { cachedDevServer } from '../../src/adapters/temporal/server-program/go.ts';
import {
  fetchFault,
  NoWay,
  PassingFault,
} from '../../src/adapters/temporal/server-program/steps.ts';
import { ProgramFault } from '../../src/system/programs.ts';
import { fakeProgram, fakeTemporal } from '../support/fake-temporal.ts';

/** A refusal: nothing listens there. */
const NOWHERE = 'http://127.0.0.1:9';
const RELEASE = 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)';
const OWN = 'temporal version 0.0.0-openwop (Server 1.29.1, UI 2.42.1)';

let folder: string;
let lines: string[];
const servers: Server[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'owop-program-'));
  lines = [];
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  await rm(folder, { recursive: true, force: true });
});

const options = (more: Partial<ProgramOptions> = {}): ProgramOptions => ({
  cacheDir: join(folder, 'cache'),
  env: { PATH: join(folder, 'bin'), HOME: folder },
  report: (line) => void lines.push(line),
  downloadService: NOWHERE,
  ...more,
});

function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}

/** A `go` that takes note of its arguments and does what the script says. */
async function fakeGo(script: string): Promise<() => Promise<string[]>> {
  const calls = join(folder, 'go-calls');
  await fakeProgram(
    join(folder, 'bin/go'),
    `if [ "$1" = version ]; then echo "go version go1.26.0 linux/amd64"; exit 0; fi
echo "$*" >> "${calls}"
${script}`,
  );
  return async () => (await readFile(calls, 'utf8').catch(() => '')).split('\n').filter(Boolean);
}

/** What a build of `go build … -o FILE .` or `go install` leaves behind. */
const BUILDS = `while [ $# -gt 1 ]; do if [ "$1" = -o ]; then out="$2"; fi; shift; done
[ -n "$out" ] || out="$GOBIN/temporal"
echo '#!/bin/sh' > "$out"; echo 'echo "${OWN}"' >> "$out"; /bin/chmod 755 "$out"`;

describe('architecture §7 a server is found in a fixed order', () => {
  const cases: readonly [string, string, boolean][] = [
    [
      'a released version at the minimum',
      'temporal version 1.5.0 (Server 1.29.0, UI 2.42.1)',
      true,
    ],
    ['a newer one', 'temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', true],
    ['a build without release number, by its server', OWN, true],
    ['an old release', 'temporal version 1.4.9 (Server 1.29.0, UI 2.42.1)', false],
    ['a build with an old server', 'temporal version 0.0.0-DEV (Server 1.28.3, UI 2.40.0)', false],
    ['something else of that name', 'hello', false],
  ];
  it.each(cases)('on PATH: %s', async (_name, versionLine, usable) => {
    await fakeTemporal(join(folder, 'bin/temporal'), versionLine);
    if (usable) {
      const path = join(folder, 'bin/temporal');
      expect(await obtainProgram(options())).toEqual({ kind: 'dev', path });
    } else {
      await expect(obtainProgram(options())).rejects.toMatchObject({ code: 'temporal_not_found' });
      expect(lines[0]).toMatch(/too old|does not tell its version/);
    }
  });

  it('an old one on PATH is passed over for the cached one', async () => {
    await fakeTemporal(join(folder, 'bin/temporal'), 'temporal version 1.0.0 (Server 1.24.0)');
    await fakeTemporal(join(folder, 'cache/temporal-v1.5.1'), RELEASE);
    const { path } = await obtainProgram(options());
    expect(path).toBe(join(folder, 'cache/temporal-v1.5.1'));
    expect(lines).toHaveLength(2);
  });

  it('a cached one that does not run any more is passed over', async () => {
    const go = await fakeGo(BUILDS);
    await fakeProgram(join(folder, 'cache/temporal-v1.5.1'), 'exit 1');
    expect(await obtainProgram(options())).toMatchObject({ kind: 'dev' });
    expect(await go()).toHaveLength(1);
  });

  it('when all fail: one line per step, and one sentence per system that says what to install', async () => {
    await expect(obtainProgram(options({ orInMemory: true }))).rejects.toThrow(
      /Linux: install Go .* macOS: .* Windows: .* TEMPORAL_ADDRESS/,
    );
    expect(lines).toHaveLength(6);
    const patterns = [
      /no `temporal`/,
      /none cached/,
      /cannot be downloaded/,
      /no `go`.* build/,
      /no `go`.* install/,
    ];
    for (const [at, pattern] of [...patterns, /no `java`/].entries())
      expect(lines[at]).toMatch(pattern);
  });

  it('each step says how long it took', async () => {
    await fakeGo(`/bin/sleep 0.2; ${BUILDS}`);
    await obtainProgram(options());
    expect(lines.at(-1)).toMatch(/built the dev server, server 1\.29\.1 \(\d+\.\d s\): \//);
  });
});

describe('architecture §7 the download', () => {
  it('a service that never answers is given up at the limit', async () => {
    const service = await listening(() => undefined);
    const slow = options({ downloadService: service, downloadLimitMs: 200 });
    await expect(obtainProgram(slow)).rejects.toMatchObject({ code: 'temporal_not_found' });
    expect(lines.join('\n')).toMatch(/no answer in 0.2 s/);
  });

  it('is not tried where it is switched off', async () => {
    await expect(obtainProgram(options({ downloadService: 'off' }))).rejects.toThrow();
    expect(lines.join('\n')).toContain('downloads are switched off');
  });

  it.each([403, 404])('a refusal is final: %s is asked once', async (status) => {
    let asked = 0;
    const service = await listening((_, response) => {
      asked++;
      response.writeHead(status).end();
    });
    await expect(obtainProgram(options({ downloadService: service }))).rejects.toThrow();
    expect(asked).toBe(1);
    expect(lines.join('\n')).toContain(`the service answered ${status}`);
  });

  it.each<[string, RequestListener]>([
    ['a connection that breaks', (request) => void request.socket.destroy()],
    ['an answer of 503', (_, response) => void response.writeHead(503).end()],
  ])('%s is tried again twice', async (_, fault) => {
    let asked = 0;
    const service = await listening((request, response) => {
      asked++;
      fault(request, response);
    });
    await expect(obtainProgram(options({ downloadService: service }))).rejects.toThrow();
    expect(asked).toBe(3);
  });

  it('an archive is unpacked, checked, cached and used from then on', async () => {
    await fakeTemporal(join(folder, 'pack/temporal'), RELEASE);
    execFileSync('tar', ['-czf', join(folder, 'a.tar.gz'), '-C', join(folder, 'pack'), 'temporal']);
    const archive = await readFile(join(folder, 'a.tar.gz'));
    let downloads = 0;
    const service = await listening((request, response) => {
      if (request.url?.startsWith('/cli/')) {
        const archiveUrl = `http://${request.headers.host}/a`;
        response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal' }));
      } else {
        downloads++;
        response.end(archive);
      }
    });
    const first = await obtainProgram(options({ downloadService: service }));
    expect(await obtainProgram(options({ downloadService: service }))).toEqual(first);
    expect(downloads).toBe(1);
  });
});

describe('architecture §7 built with Go', () => {
  it('the dev server is built from its pinned sources into the cache, once', async () => {
    const go = await fakeGo(BUILDS);
    const first = await obtainProgram(options());
    expect(await obtainProgram(options())).toEqual(first);
    const [build, ...more] = await go();
    expect(build).toMatch(/^build -trimpath -mod=readonly .*-o \S+ \.$/);
    expect(more).toEqual([]);
    expect(first.path).toMatch(/cache\/dev-server-[0-9a-f]{16}$/);
    expect(await readdir(join(folder, 'cache'))).toHaveLength(1);
  });

  it('the name in the cache holds the digest of the sources, without their tests', async () => {
    const sourcesDir = join(folder, 'sources');
    await mkdir(sourcesDir);
    await writeFile(join(sourcesDir, 'go.mod'), 'module x');
    await writeFile(join(sourcesDir, 'main.go'), 'package main');
    const before = await cachedDevServer(options({ sourcesDir }));
    await writeFile(join(sourcesDir, 'main_test.go'), 'package main');
    expect(await cachedDevServer(options({ sourcesDir }))).toBe(before);
    await writeFile(join(sourcesDir, 'main.go'), 'package main // changed');
    expect(await cachedDevServer(options({ sourcesDir }))).not.toBe(before);
  });

  it('a passing network fault is tried again twice, a refusal is final', async () => {
    const go = await fakeGo(`case "$*" in
build*) echo 'dial tcp: i/o timeout' >&2;;
*) echo 'reading the module: 403 Forbidden' >&2;;
esac
exit 1`);
    await expect(obtainProgram(options())).rejects.toMatchObject({ code: 'temporal_not_found' });
    const calls = await go();
    expect(calls.filter((call) => call.startsWith('build'))).toHaveLength(3);
    expect(
      calls.filter((call) => call.startsWith('install')).map((call) => call.split('@')[1]),
    ).toEqual(['v1.5.1', 'v1.6.0', 'v1.9.1']);
    expect(lines.join('\n')).toMatch(/i\/o timeout.*3 times/);
    expect(await readdir(join(folder, 'cache'))).toEqual([]);
  });

  it('where the sources do not build, the CLI is installed', async () => {
    await fakeGo(`if [ "$1" = build ]; then echo 'it does not build' >&2; exit 1; fi; ${BUILDS}`);
    const { path } = await obtainProgram(options());
    expect(path).toBe(join(folder, 'cache/temporal-v1.5.1'));
  });

  it('a Go that cannot read the module is named', async () => {
    await fakeProgram(join(folder, 'bin/go'), 'echo "go version go1.19.8 linux/amd64"');
    await expect(obtainProgram(options())).rejects.toThrow();
    expect(lines.join('\n')).toMatch(/Go 1\.21 or newer is needed, and \S+ is 1\.19\.8/);
  });

  it('what a killed process was making is removed, what is being made is not', async () => {
    await fakeGo(BUILDS);
    const long = new Date(Date.now() - 24 * 3600_000);
    await mkdir(join(folder, 'cache/build-old'), { recursive: true });
    await mkdir(join(folder, 'cache/build-now'));
    await utimes(join(folder, 'cache/build-old'), long, long);
    await obtainProgram(options());
    const kept = await readdir(join(folder, 'cache'));
    expect(kept).toContain('build-now');
    expect(kept).not.toContain('build-old');
  });

  it('giving up ends the build and all that it started', async () => {
    await fakeGo(`echo $$ > "${join('$HOME', 'pid')}"; /bin/sleep 60 & wait`);
    const giveUp = new AbortController();
    const obtained = obtainProgram(options({ signal: giveUp.signal }));
    await expect.poll(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')).toMatch(/\d+/);
    giveUp.abort();
    await expect(obtained).rejects.toThrow();
    expect(await readdir(join(folder, 'cache'))).toEqual([]);
  });
});

describe('architecture §7 the in-memory server is the last way', () => {
  /** A `mvn` that leaves as many jars as the server has, less `missing`. */
  const fakeMaven = (missing = 0) =>
    fakeProgram(
      join(folder, 'bin/mvn'),
      `[ -d .mvn ] || exit 1; for word in "$@"; do case "$word" in -DoutputDirectory=*) out="\${word#*=}";; esac; done
/bin/mkdir -p "$out"; i=${missing}; while [ $i -lt 30 ]; do : > "$out/$i.jar"; i=$((i+1)); done`,
    );

  it('only where it is asked for', async () => {
    await fakeProgram(join(folder, 'bin/java'), 'exit 0');
    await fakeMaven();
    await expect(obtainProgram(options())).rejects.toMatchObject({ code: 'temporal_not_found' });
    expect(await obtainProgram(options({ orInMemory: true }))).toMatchObject({ kind: 'test' });
  });

  it('behind every server that keeps its runs', async () => {
    await fakeProgram(join(folder, 'bin/java'), 'exit 0');
    await fakeMaven();
    await fakeGo(BUILDS);
    expect(await obtainProgram(options({ orInMemory: true }))).toMatchObject({ kind: 'dev' });
  });

  it('a fetch that was cut is not kept', async () => {
    await fakeProgram(join(folder, 'bin/java'), 'exit 0');
    await fakeMaven(5);
    await expect(obtainProgram(options({ orInMemory: true }))).rejects.toThrow(/too few jars/);
    await fakeMaven();
    expect(await obtainProgram(options({ orInMemory: true }))).toMatchObject({ kind: 'test' });
  });
});

describe('architecture §7 what a program that fetches said', () => {
  const MAVEN_ADVICE = `[ERROR] 
[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.
[ERROR] Re-run Maven using the -X switch to enable full debug logging.
[ERROR] 
[ERROR] For more information about the errors and possible solutions, please read the following articles:
[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/DependencyResolutionException
\u001b[0m\u001b[0m`;
  const maven = (fault: string) =>
    `\u001b[0m\u001b[0m[ERROR] Failed to execute goal: ${fault} -> [Help 1]\n${MAVEN_ADVICE}`;
  const go = (fault: string) =>
    `go: downloading example.com/y v1.503.0\nm.go:2:8: example.com/y@v1.503.0: ${fault}`;
  const faultOf = (output: string) => fetchFault('it', new ProgramFault('exit code 1', output));

  it.each([
    go('reading https://proxy/y/@v/v1.2.0.zip: 503 Service Unavailable'),
    go('reading https://proxy/y/@v/v1.2.0.zip: 503 Backend fetch failed'),
    go('reading https://proxy/y/@v/v1.2.0.zip: 429 Too Many Requests'),
    go('dial tcp 127.0.0.1:443: i/o timeout'),
    "fatal: unable to access 'https://host/y/': The requested URL returned error: 502",
    maven('Could not transfer artifact a:b:jar:1 from/to central (https://repo): status code: 503'),
    maven('Return code is: 500 , ReasonPhrase:Internal Server Error.'),
    maven('Connection reset'),
  ])('the status of an answer, or a broken connection, may pass: %s', (output) => {
    expect(faultOf(output)).toBeInstanceOf(PassingFault);
  });

  it.each([
    go('reading https://proxy/y/@v/v1.503.0.zip: 404 Not Found'),
    go('verifying module: checksum mismatch\n\tdownloaded: h1:abc/500/def=\n\tgo.sum: h1:503+429='),
    go('dial tcp 127.0.0.1:502: connect: connection refused'),
    'y.go:500:12: undefined: x',
    maven('Could not find artifact a:b:jar:1.504.0 in central (https://repo:503/m2)'),
  ])('such a number in a version, hash, port or line is no status: %s', (output) => {
    expect(faultOf(output)).toBeInstanceOf(NoWay);
  });

  it("names Maven's fault and not its advice", () => {
    expect(faultOf(maven('Could not transfer artifact a')).message).toBe(
      'it failed ([ERROR] Failed to execute goal: Could not transfer artifact a -> [Help 1])',
    );
  });
});
