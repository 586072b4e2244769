// `.ci/openapi-fuzz`: a host of its own with runs in several states, and schemathesis over its OpenAPI document. Ends
// with schemathesis' exit code: 0 when nothing was answered that is not declared, and no 5xx but the declared 501.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AGENT, SUITE } from '../facade/suite-workflows.ts';
import { startTestHost, type TestHost } from './host.ts';
import { startTestTemporal } from './temporal.ts';
import { ROOT } from './root.ts';

/** What is drawn: the same each time, but in the campaign. */
const SEED = process.env.OPENWOP_FUZZ_SEED ?? '1';
/** Bounds of the fuzz: cases per operation and kind, and seconds that one request may take. */
const MAX_EXAMPLES = process.env.OPENWOP_FUZZ_EXAMPLES ?? '15';
const REQUEST_SECONDS = '20';
/** Runs that wait for a human. */
const WAITING_RUNS = 12;
/**
 * Left out: valid data may be refused here for what a schema cannot say (a cursor or an event id that nobody gave, a
 * callback address, which this host does not call).
 */
const LEFT_OUT = 'positive_data_acceptance';
/** A stream that has no end would be read until each request's time is over: test/facade/session-stream reads it. */
const ENDLESS = '/v1/host/openwop-temporal/sessions/{sessionId}/events';

/** The example that needs nothing but Python, which schemathesis needs as well. */
const PROCESS = 'ledger';
const PROCESS_ID = 'com.example.ledger';

const [schemathesis = 'schemathesis'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'openwop-fuzz-'));
const temporal = await startTestTemporal({ own: true });
try {
  const agents = join(folder, 'agents');
  cpSync(join(ROOT, 'examples', PROCESS), join(agents, PROCESS), { recursive: true });
  const host = await startTestHost({
    builtIn: SUITE,
    dataDir: join(folder, 'data'),
    env: { OPENWOP_OPENSENTIENCE_DIR: agents },
    // The access log says what was reached.
    logLevel: 'info',
    temporal: { address: temporal.address, namespace: await temporal.namespace() },
  });
  try {
    process.exitCode = await fuzz(host, await known(host));
    for (const line of answersOf(host.logs)) console.log(line);
  } finally {
    await host.stop();
  }
} finally {
  await temporal.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Names that exist, for .ci/openapi_hooks.py: by the parameter that takes them. */
async function known(host: TestHost): Promise<Record<string, readonly string[]>> {
  const start = (workflowId: string) => host.startRun({ workflowId });
  const waiting = await Promise.all(
    Array.from({ length: WAITING_RUNS }, (_, index) =>
      start(['approval', 'quorum', 'clarify'][index % 3] ?? 'approval'),
    ),
  );
  const ended = await Promise.all(['three', 'failing'].map(start));
  await Promise.all(waiting.map((runId) => host.waitFor(runId, isWaiting)));
  await Promise.all(ended.map((runId) => host.waitFor(runId, isEnded)));
  return {
    runId: [...waiting, ...ended],
    nodeId: ['gate', 'ask'],
    workflowId: ['noop', 'three', 'approval', 'failing'],
    agentId: [AGENT, PROCESS_ID],
  };
}

function isWaiting({ status }: { status: string }): boolean {
  return status.startsWith('waiting-');
}

function isEnded({ status }: { status: string }): boolean {
  return status === 'completed' || status === 'failed';
}

/** How often each operation answered with which status: a fuzz that met nothing but 404 has proved little. */
function answersOf(lines: readonly string[]): readonly string[] {
  const counts = new Map<string, Map<number, number>>();
  for (const line of lines) {
    const { method, route, status } = JSON.parse(line) as AccessLine;
    if (method === undefined || route === undefined || status === undefined) continue;
    const name = `${method} ${route}`;
    const byStatus = counts.get(name) ?? new Map<number, number>();
    counts.set(name, byStatus.set(status, (byStatus.get(status) ?? 0) + 1));
  }
  return [...counts].sort().map(([name, byStatus]) => {
    const told = [...byStatus].sort(([a], [b]) => a - b).map(([status, n]) => `${status} x ${n}`);
    return `${name}: ${told.join(', ')}`;
  });
}

interface AccessLine {
  readonly method?: string;
  readonly route?: string;
  readonly status?: number;
}

async function fuzz(
  { url, apiKey }: TestHost,
  names: Record<string, readonly string[]>,
): Promise<number> {
  const child = spawn(
    schemathesis,
    [
      ...['--config-file', join(ROOT, '.ci', 'schemathesis.toml')],
      ...['run', `${url}/v1/openapi.json`],
      ...['--header', `Authorization: Bearer ${apiKey}`, '--header', 'Accept: application/json'],
      ...['--checks', 'all', '--exclude-checks', LEFT_OUT, '--continue-on-failure'],
      ...['--exclude-path', ENDLESS],
      ...['--phases', 'coverage,fuzzing,stateful', '--max-examples', MAX_EXAMPLES, '--seed', SEED],
      // A poll that waits takes ten seconds, which is the limit otherwise.
      ...['--request-timeout', REQUEST_SECONDS, '--max-response-time', REQUEST_SECONDS],
      ...['--generation-database', 'none', '--no-color'],
    ],
    {
      cwd: folder,
      stdio: 'inherit',
      env: {
        ...process.env,
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONPATH: join(ROOT, '.ci'),
        SCHEMATHESIS_HOOKS: 'openapi_hooks',
        OPENWOP_FUZZ_URL: url,
        OPENWOP_FUZZ_KEY: apiKey,
        OPENWOP_FUZZ_KNOWN: JSON.stringify(names),
      },
    },
  );
  const giveUp = () => void child.kill('SIGTERM');
  process.once('SIGTERM', giveUp).once('SIGINT', giveUp);
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}
