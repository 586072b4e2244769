// The run that `npm start` shows: started once per data folder, followed in the terminal, found again by later starts.
import { demoRunRequest } from '../demo/index.ts';
import { openInterrupts } from '../log/fold.ts';
import type { JsonValue } from '../rules/json.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';
import { DEFAULT_CALLER } from '../facade/deps.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { RunCreateResponse } from '../../schemas/types.generated.ts';
import { rest } from '../system/time.ts';
import { createRunPrinter, turnOf, type PrintedEvent } from '../words/run-printer.ts';
import type { DataFolder } from './data-folder.ts';
import type { Host } from './host.ts';
import { post } from './own-api.ts';
import { bearer, questionLines } from './question-lines.ts';

const RUN_FILE = 'demo-run';
/** Makes a start that was cut off find its run instead of starting another. */
const DEMO_KEY = 'openwop-temporal-demo';
/** Following begins again after this when the log could not be read. */
const FOLLOW_AGAIN_MS = 1_000;

export interface DemoParts {
  readonly host: Host;
  readonly folder: DataFolder;
  /** Key to show in requests; absent: it stands in the shell's OPENWOP_API_KEY. */
  readonly shownKey: string | undefined;
  readonly logger: Logger;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Starts or finds the demo run and says how to look at it, follow it and answer it. Then prints it until it ends. */
export async function showDemoRun(parts: DemoParts): Promise<void> {
  const { host, folder, say } = parts;
  const { keepsRuns } = host.temporal.traits;
  const known = keepsRuns ? folder.read(RUN_FILE)?.trim() : undefined;
  const runId = known ?? (await startDemoRun(parts));
  if (known === undefined && keepsRuns) folder.write(RUN_FILE, `${runId}\n`);
  const run = host.stores.runs.ref(DEFAULT_CALLER.tenant, runId);
  const head = await host.log.head(run);
  if (!head) return say(`The demo run ${runId} is not in this database any more.`);
  const ended = TERMINAL_STATUSES.has(head.status);
  say('');
  say(
    known === undefined
      ? `Demo run ${runId}: a refund agent at work.`
      : `Demo run ${runId}: ${head.status}.`,
  );
  say(`  page       ${host.publicUrl}/pages/runs/${encodeURIComponent(runId)}`);
  if (host.temporal.uiUrl) {
    say(
      `  Temporal   ${host.temporal.uiUrl}/namespaces/${host.temporal.namespace}/workflows/${runId}`,
    );
  }
  say(
    `  follow     curl -N -H ${bearer(parts.shownKey)} '${host.publicUrl}/v1/runs/${runId}/events?streamMode=debug'`,
  );
  if (ended)
    return say('  It has ended. Another one: see README.md, or use a new OPENWOP_DATA_DIR.');
  say('');
  void follow(parts, run);
}

async function startDemoRun({ host, say }: DemoParts): Promise<string> {
  const answer = await post<RunCreateResponse>(host, '/v1/runs', {
    body: demoRunRequest,
    idempotencyKey: DEMO_KEY,
  });
  for (const { message } of answer.warnings ?? []) say(`Warning: ${message}`);
  return answer.runId;
}

function printed({ sequence, type, nodeId, payload }: LogRow): PrintedEvent {
  return { sequence, type, nodeId, payload: JSON.parse(payload) as JsonValue };
}

async function follow(parts: DemoParts, run: RunRef): Promise<void> {
  const { host, say, signal, logger } = parts;
  const printer = createRunPrinter((text) => void process.stdout.write(text));
  let after = -1;
  while (!signal.aborted) {
    try {
      for await (const rows of host.log.follow(run, { after, signal })) {
        printer.print(rows.map(printed));
        after = rows.at(-1)?.sequence ?? after;
        if (rows.some(({ type }) => turnOf(type).asks)) await sayQuestion(parts, run);
      }
      if (!signal.aborted) say('\nThe run has ended. Ctrl-C stops the host.');
      return;
    } catch (error) {
      if (signal.aborted) return;
      logger.warn('the demo run cannot be followed now', { runId: run.runId, error });
      await rest(FOLLOW_AGAIN_MS, signal);
    }
  }
}

/** The questions that are open now, with the requests that answer them. */
async function sayQuestion({ host, say, shownKey }: DemoParts, run: RunRef): Promise<void> {
  const head = await host.log.head(run);
  for (const open of head ? openInterrupts(head.snapshot) : [])
    for (const line of questionLines(open, {
      url: host.publicUrl,
      apiKey: shownKey,
      runId: run.runId,
    }))
      say(line);
}
