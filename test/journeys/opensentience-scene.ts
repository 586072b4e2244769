// The stage of the journeys with agents as processes (seed 004): one host with the three examples, a guest that is
// attached by hand and an agent of bad manners, and the runs that call them. Examples keep their data in the test's folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { expect } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type {
  OpenSentienceAgentDetail,
  OpenSentienceAgentList,
  OpenSentienceAudit,
  OpenSentienceAuditEntry,
  RunEventDoc,
  RunSnapshot,
} from '../../schemas/types.generated.ts';
import { readSse, type SseAnswer, type SseRequest } from '../facade/sse-client.ts';
import { agentNode, chain } from '../support/definitions.ts';
import {
  startTestHost,
  TEST_API_KEY,
  until,
  type TestHost,
  type TestHostOptions,
} from '../support/host.ts';
import {
  writeAgentFolder,
  writeCaller,
  writeDefinition,
  type CallerSpec,
} from '../support/opensentience/agent-folders.ts';
import {
  canRun,
  exampleFolder,
  launchExample,
  type ExampleName,
} from '../support/opensentience/examples.ts';
import { GUEST } from '../support/opensentience/guest-agent.ts';
import { RUDE, SECRET_VARIABLE } from '../support/opensentience/rude-agent.ts';
import { writeAgent } from '../support/opensentience/temp.ts';
import { checkBrackets } from './brackets.ts';
import { startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { runRef } from '../support/run-ref.ts';
import { ROOT } from '../support/root.ts';

export const EXAMPLES: readonly ExampleName[] = ['notebook', 'ledger', 'files'];
/** Said in arguments, results and progress; it belongs to the run alone. */
export const CANARY = { argument: 'canary-of-an-argument-7391', result: 'canary-of-a-file-2846' };
export const FILE = 'report.txt';
export const FILE_TEXT = `first line\nthe ${CANARY.result} is here\nlast line\n`;
const NODE = 'work';
const AUDIT_PAGE = 200;
const ADDRESS = '/v1/host/openwop-temporal/opensentience';

const ENDED = ['completed', 'failed', 'cancelled'];
const ended = ({ status }: RunSnapshot): boolean => ENDED.includes(status);
export const asked = (snapshot: RunSnapshot): boolean =>
  snapshot.status === 'waiting-approval' || ended(snapshot);

/** A run's agent: its script, the tools it may call, and what its runs are given. */
export interface Caller extends Omit<CallerSpec, 'agentId'> {
  readonly name: string;
  readonly inputs?: readonly string[];
}

export interface Told {
  readonly snapshot: RunSnapshot;
  readonly events: readonly RunEventDoc[];
  readonly text: string;
  /** Payloads of the events of one type, in order. */
  of(type: string): JsonObject[];
}

export class Scene {
  readonly runs: string[] = [];
  /** Lines of hosts that were stopped. */
  readonly oldLogs: string[] = [];
  /** Of agents that were attached. */
  readonly tokens: string[] = [];
  folder = '';
  #host: TestHost | undefined;
  #temporal: TestTemporal | undefined;
  #target: { address: string; namespace: string } | undefined;
  readonly #callers: readonly Caller[];

  constructor(callers: readonly Caller[]) {
    this.#callers = callers;
  }

  get host(): TestHost {
    if (!this.#host) throw new Error('the host is stopped');
    return this.#host;
  }

  path(...names: readonly string[]): string {
    return join(this.folder, ...names);
  }

  async begin(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'openwop-scene-'));
    this.#temporal = await startTestTemporal();
    const { address } = this.#temporal;
    this.#target = { address, namespace: await this.#temporal.namespace() };
    await this.#writeAgents();
    for (const { name, inputs = [], ...caller } of this.#callers) {
      const agentId = `local.scene.${name}`;
      await writeCaller(this.path('callers'), { agentId, ...caller });
      const node = agentNode(NODE, agentId, {
        inputs: Object.fromEntries(
          inputs.map((one) => [one, { type: 'variable' as const, variableName: one }]),
        ),
      });
      const variables = inputs.map((one) => ({
        name: one,
        type: 'string' as const,
        required: true,
      }));
      await writeDefinition(this.path('definitions'), chain(name, [node], { variables }));
    }
    await this.start();
  }

  async #writeAgents(): Promise<void> {
    await mkdir(this.path('agents'));
    await mkdir(this.path('read'));
    await writeFile(this.path('read', FILE), FILE_TEXT);
    // It builds itself at its first start, which may take longer than an agent has to say hello.
    if (canRun('files')) await launchExample('files', {}).exited;
    for (const name of EXAMPLES)
      if (canRun(name)) await symlink(exampleFolder(name), this.path('agents', name));
    await writeAgentFolder(this.path('agents'), {
      id: RUDE,
      script: new URL('../support/opensentience/rude-agent.ts', import.meta.url),
      env: { [SECRET_VARIABLE]: TEST_API_KEY },
    });
    writeAgent(this.path('agents'), { id: GUEST });
  }

  /** Again on the same data; `more` is what is different about the host this time. */
  async start(more: Partial<TestHostOptions> = {}): Promise<void> {
    this.#host = await startTestHost({
      ...more,
      dataDir: this.path('data'),
      temporal: this.#target,
      agentsDir: this.path('callers'),
      fixturesDir: this.path('definitions'),
      logLevel: 'debug',
      env: {
        OPENWOP_OPENSENTIENCE_DIR: this.path('agents'),
        NOTEBOOK_DIR: this.path('notebook'),
        LEDGER_DIR: this.path('ledger'),
        FILES_DIR: this.path('read'),
        GOCACHE: process.env.GOCACHE,
      },
    });
  }

  async stop(): Promise<void> {
    this.oldLogs.push(...(this.#host?.logs ?? []));
    await this.#host?.stop();
    this.#host = undefined;
  }

  async end(): Promise<void> {
    await this.stop();
    await this.#temporal?.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  // --- runs ------------------------------------------------------------------------------------------------------------

  async run(workflowId: string, inputs: JsonObject = {}): Promise<string> {
    const runId = await this.host.startRun({ workflowId, inputs });
    this.runs.push(runId);
    return runId;
  }

  async answer(runId: string, action: 'accept' | 'reject'): Promise<void> {
    const path = `/v1/runs/${runId}/interrupts/${NODE}`;
    const { status, text } = await this.host.api(path, { body: { resumeValue: { action } } });
    expect([status, text]).toEqual([200, expect.anything()]);
  }

  async told(runId: string, rests: (snapshot: RunSnapshot) => boolean = ended): Promise<Told> {
    const snapshot = await this.host.waitFor(runId, rests);
    const { body, text } = await this.host.api<{ events: RunEventDoc[] }>(
      `/v1/runs/${runId}/events`,
      { headers: { accept: 'application/json' } },
    );
    const { events } = body;
    const of = (type: string) =>
      events.filter((event) => event.type === type).map(({ payload }) => payload as JsonObject);
    if (ended(snapshot)) checkBrackets(events);
    return { snapshot, events, text, of };
  }

  stream(runId: string, mode: string, stop?: SseRequest['until']): Promise<SseAnswer> {
    return readSse({
      url: `${this.host.url}/v1/runs/${runId}/events?streamMode=${mode}`,
      headers: { authorization: `Bearer ${this.host.apiKey}` },
      ...(stop ? { until: stop } : {}),
    });
  }

  /** Of every segment of the run, as Temporal has it: payloads are not encrypted here. */
  async history(runId: string): Promise<string> {
    const { temporal, stores } = this.host;
    const connection = connectTemporal(temporal);
    const client = new Client({ connection, namespace: temporal.namespace });
    const { History } = proto.temporal.api.history.v1;
    try {
      const texts: string[] = [];
      for (const { temporalRunId } of await stores.segments.ofRun(runRef(runId))) {
        const raw = await client.workflow.getHandle(runId, temporalRunId).fetchHistory();
        texts.push(Buffer.from(History.encode(raw).finish()).toString('latin1'));
      }
      return texts.join('\n');
    } finally {
      await connection.close();
    }
  }

  // --- the operator's view ---------------------------------------------------------------------------------------------

  async operator<Shape>(path: string): Promise<{ body: Shape; text: string }> {
    const { status, body, text } = await this.host.api<Shape>(`${ADDRESS}${path}`);
    expect([status, path]).toEqual([200, path]);
    return { body, text };
  }

  async agents(): Promise<OpenSentienceAgentList['agents']> {
    return (await this.operator<OpenSentienceAgentList>('/agents')).body.agents;
  }

  async agent(agentId: string): Promise<OpenSentienceAgentDetail> {
    return (await this.operator<OpenSentienceAgentDetail>(`/agents/${agentId}`)).body;
  }

  /** The one session of an agent, once it has registered its tools. */
  async connected(agentId: string): Promise<OpenSentienceAgentDetail> {
    let found: OpenSentienceAgentDetail | undefined;
    await until(async () => {
      found = await this.agent(agentId);
      return found.status === 'connected' && found.toolCount > 0;
    }, `${agentId} is connected`);
    return found as OpenSentienceAgentDetail;
  }

  /** Ended calls of a tool by their end, as the metrics have them. */
  async counts(toolId: string): Promise<Counts> {
    const { metrics } = await this.agent(toolId.slice(0, toolId.indexOf('/')));
    const found = metrics.find((one) => one.toolId === toolId);
    const { calls = 0, succeeded = 0, failed = 0, canceled = 0, unanswered = 0 } = found ?? {};
    return { calls, succeeded, failed, canceled, unanswered };
  }

  /** Everything, newest first. */
  async audit(): Promise<OpenSentienceAuditEntry[]> {
    const entries: OpenSentienceAuditEntry[] = [];
    for (let before = ''; ;) {
      const { body } = await this.operator<OpenSentienceAudit>(
        `/audit?limit=${AUDIT_PAGE}${before}`,
      );
      entries.push(...body.entries);
      if (body.nextBefore === undefined) return entries;
      before = `&before=${body.nextBefore}`;
    }
  }

  /** Pids of the agents' processes that the host started. */
  async launched(): Promise<number[]> {
    const sessions = (await this.agents()).flatMap(({ instances }) =>
      instances.flatMap(({ session }) => session ?? []),
    );
    return sessions.flatMap(({ pid, attached }) => (pid === undefined || attached ? [] : [pid]));
  }

  // --- what agents did -------------------------------------------------------------------------------------------------

  /** Entries of the ledger, as its file has them. */
  async entries(): Promise<JsonObject[]> {
    const text = await readFile(this.path('ledger', 'entries.jsonl'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as JsonObject);
  }

  /** `openwop …` as a process of its own. */
  async cli(
    ...args: readonly string[]
  ): Promise<{ code: number | null; out: string; err: string }> {
    const { url, apiKey } = this.host;
    const { PATH, HOME } = process.env;
    const child = spawn(process.execPath, ['src/app/launch.js', 'openwop', ...args], {
      cwd: ROOT,
      env: { PATH, HOME, OPENWOP_URL: url, OPENWOP_API_KEY: apiKey },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (piece: Buffer) => void (out += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => void (err += piece.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, out, err };
  }
}

export interface Counts {
  readonly calls: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly canceled: number;
  readonly unanswered: number;
}
