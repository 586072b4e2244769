// GET and POST /pages/runs/{runId}/fork?from=: a run is forked from one of its events by a form (replay.md), for who is
// signed in. It goes the way of the API's route, once per form.
import type { Router } from 'express';
import { livedBy } from '../../rules/divergence.ts';
import { codeOf, ERRORS, HostError, invalid, type ErrorCode } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { canonicalJson, jsonBytes, type JsonObject } from '../../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../../rules/limits.ts';
import {
  controlOf,
  FORK_CONTROLS,
  promptTexts,
  renderForkPage,
  sentFork,
  type ForkAgent,
  type ForkFault,
  type ForkPageModel,
  type FormTexts,
} from '../../pages/index.ts';
import type { ResolvedAgent } from '../../ports/catalog.ts';
import type { LogRow } from '../../ports/log.ts';
import type { RunRow } from '../../ports/runs.ts';
import { runAt } from '../../runs/at.ts';
import { requireRun } from '../../runs/find.ts';
import { forkRun } from '../../runs/fork.ts';
import { answererOf } from '../../runs/overlay.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import { guardJson } from '../body.ts';
import type { Standing } from '../../words/standing.ts';
import type { RunSnapshot } from '../../../schemas/types.generated.ts';
import { FIRST } from '../majors.ts';
import { queryText } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
import { renderSnapshot } from '../snapshot.ts';
import { isForm, newForm, runIdOf, whenNotInFlight } from './form-number.ts';
import { page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';

/** Stands in stored records and never changes. */
const ENDPOINT = 'POST /pages/fork';
/** Agents whose prompts the form has. More are for the API. */
const MAX_AGENTS = 32;
const SEQUENCE = /^\d{1,9}$/;

/** A run that is asked about, with what the form shows of it. */
interface Place {
  readonly row: RunRow;
  readonly from: number;
  readonly agents: readonly ForkAgent[];
  readonly shown: Pick<
    ForkPageModel,
    'runId' | 'name' | 'length' | 'at' | 'agents' | 'configurable' | 'inputs'
  >;
}

export function mountForkPage(router: Router, deps: PageDeps): void {
  router
    .get('/pages/runs/:runId/fork', page(deps, signedIn(showForm)))
    .post('/pages/runs/:runId/fork', page(deps, signedIn(takeForm)));
}

async function showForm(deps: PageDeps, call: SignedInCall): Promise<void> {
  const { request, response } = call;
  const place = await placeOf(deps, call);
  const form = queryText(request, 'form') ?? '';
  if (!isForm(form)) {
    response.redirect(303, addressOf(place, newForm()));
    return;
  }
  sendForm(call, { place, form, texts: promptTexts(place.agents) });
}

function addressOf({ row, from }: Pick<Place, 'row' | 'from'>, form: string): string {
  return `/pages/runs/${encodeURIComponent(row.runId)}/fork?from=${from}&form=${form}`;
}

/** Throws run_not_found, and invalid_from_seq where the log has no such place. */
async function placeOf(deps: PageDeps, call: SignedInCall): Promise<Place> {
  const { request, response, session } = call;
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  const row = await requireRun(deps, session.caller, runId);
  if (row.erasedAtMs !== undefined) throw new HostError('subject_erased');
  const { head, stale } = await deps.log.fresh(row);
  if (stale) response.setHeader(STALE_HEADER, 'true');
  const asked = (queryText(request, 'from') ?? '0').trim();
  const from = SEQUENCE.test(asked) ? Number(asked) : Infinity;
  if (from > head.nextSequence) throw new HostError('invalid_from_seq');
  const at = await rowAt(deps, row, from);
  const agents = await agentsOf(deps, row);
  const snapshot = renderSnapshot(FIRST, head, row) as RunSnapshot;
  return {
    ...{ row, from, agents },
    shown: {
      ...{ runId, name: row.input.definition.name, length: head.nextSequence, agents },
      at: {
        ...{ sequence: from },
        ...(at ? { ...eventFacts(row, at), ...(await questionOf(deps, row, at)) } : {}),
      },
      configurable: (snapshot.configurable ?? {}) as JsonObject,
      inputs: from === 0 ? ((snapshot.inputs ?? {}) as JsonObject) : {},
    },
  };
}

async function rowAt(
  { log }: PageDeps,
  run: RunRow,
  sequence: number,
): Promise<LogRow | undefined> {
  for await (const rows of log.rows(run, { after: sequence - 1, limit: 1 })) return rows[0];
  return undefined;
}

function eventFacts(
  { input }: RunRow,
  row: LogRow,
): Pick<ForkPageModel['at'], 'type' | 'nodeName' | 'answerer' | 'answer'> {
  const { type, nodeId, payload } = row;
  const nodeName = input.definition.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId;
  const answerer = answererOf(row, input);
  const { outcome, resumeValue } = JSON.parse(payload) as JsonObject;
  const answer = answerer === 'human' ? resumeValue : outcome;
  const isShown = answerer && answer !== undefined && jsonBytes(answer) <= INLINE_VALUE_BYTES;
  return {
    type,
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(answerer ? { answerer } : {}),
    ...(isShown ? { answer } : {}),
  };
}

/** What the event's answer was given to, and how the run stood then: whoever answers otherwise decides it. */
async function questionOf(
  deps: PageDeps,
  run: RunRow,
  event: LogRow,
): Promise<Pick<ForkPageModel['at'], 'question'>> {
  const { definition } = run.input;
  if (answererOf(event, run.input) !== 'human' || event.sequence === 0) return {};
  const was = await runAt(deps, run, event.sequence - 1).catch((error: unknown) => {
    // The log is too long to be folded for a page: the form says that it shows no question.
    if (codeOf(error) === 'capability_not_provided') return undefined;
    throw error;
  });
  const { interruptId } = JSON.parse(event.payload) as JsonObject;
  const interrupt = was?.open.find((open) => open.interruptId === interruptId);
  if (!was || !interrupt) return {};
  const nodes = (was.snapshot.nodeStates ?? {}) as Standing['nodes'];
  const variables = (was.snapshot.variables ?? {}) as JsonObject;
  return { question: { interrupt, standing: { definition, nodes, variables } } };
}

/** Those that the run invokes, as they speak in it. */
async function agentsOf({ stores }: PageDeps, { input, tenant }: RunRow): Promise<ForkAgent[]> {
  const pinned = Object.values(livedBy(input).agents).slice(0, MAX_AGENTS);
  return Promise.all(
    pinned.map(async ({ agentId, manifestHash }) => {
      const text = new TextDecoder().decode(await stores.content.get(tenant, manifestHash));
      return { agentId, prompt: (JSON.parse(text) as ResolvedAgent).systemPrompt };
    }),
  );
}

interface SentPage {
  readonly place: Place;
  readonly form: string;
  readonly texts: FormTexts;
  readonly status?: number;
  readonly faults?: readonly ForkFault[];
  readonly notice?: string;
}

function sendForm({ response, session }: SignedInCall, sent: SentPage): void {
  const { place, form, texts, status = 200, faults, notice } = sent;
  const html = renderForkPage({
    ...place.shown,
    ...{ form: texts, faults, notice },
    action: addressOf(place, form),
    csrfToken: session.csrfToken,
  });
  response.status(status).type('html').send(html);
}

async function takeForm(deps: PageDeps, call: SignedInCall): Promise<void> {
  const { request, response, form: texts } = call;
  const place = await placeOf(deps, call);
  const form = queryText(request, 'form') ?? '';
  if (!isForm(form)) throw invalid('form', 'is not of this page');
  const { mode, overlay, faults } = sentFork(texts, place);
  if (faults.length > 0) {
    const { status } = FIRST.errors.validation_error;
    sendForm(call, { place, form, texts, faults, status });
    return;
  }
  const body: JsonObject = {
    ...{ mode, fromSeq: place.from },
    ...(Object.keys(overlay).length > 0 ? { runOptionsOverlay: overlay } : {}),
  };
  try {
    const runId = await forked(deps, call, { place, form, body });
    response.locals.runId = runId;
    response.redirect(303, `/pages/runs/${encodeURIComponent(runId)}?notice=forked`);
  } catch (error) {
    const code = codeOf(error);
    if (!code || code === 'internal_error') throw error;
    const { status } = FIRST.errors[code];
    const details = (error as HostError).details ?? {};
    sendForm(call, { place, form, texts, status, ...refusal(code, details, place.agents) });
  }
}

interface Wanted {
  readonly place: Place;
  readonly form: string;
  readonly body: JsonObject;
}

/** The fork's runId, also of a form that had made it before. */
async function forked(
  deps: PageDeps,
  { session: { caller, csrfToken } }: SignedInCall,
  { place: { row }, form, body }: Wanted,
): Promise<string> {
  guardJson(body);
  const asked = mustBeValid(validate.runForkRequest(body));
  const key = sha256Hex(canonicalJson([csrfToken, row.runId, form]));
  const once = {
    asked: { endpoint: ENDPOINT, target: [row.runId], body, key },
    telling: { told: ({ runId }: { runId: string }) => ({ status: 303, body: { runId } }) },
  };
  return runIdOf(await whenNotInFlight(() => forkRun(deps, caller, { source: row, asked, once })));
}

/** What is wrong in words, and in which form it is said. */
function refusal(
  code: ErrorCode,
  details: Readonly<Record<string, unknown>>,
  agents: readonly ForkAgent[],
): Partial<Pick<SentPage, 'faults' | 'notice' | 'form'>> {
  const { errors, field, reason, limit, capability, runId } = details;
  switch (code) {
    case 'validation_error': {
      const found = Array.isArray(errors)
        ? (errors as Found[])
        : [{ pointer: '', message: String(reason) }];
      return { faults: found.map((each) => faultOf(each, { field, agents })) };
    }
    case 'payload_too_large': {
      const message = `is larger than permitted: at most ${Number(limit) / 1024} KiB`;
      const control = controlOf(String(field), agents);
      return { faults: [{ control, message: control ? message : `All together ${message}.` }] };
    }
    case 'model_not_configured':
    case 'model_unavailable':
      return { faults: [{ control: FORK_CONTROLS.model, message: 'is none that this host has' }] };
    // A form that was changed behind Back: the next click is meant, and makes another fork.
    case 'idempotency_key_mismatch':
      return { form: newForm(), notice: CHANGED };
    case 'capability_not_provided':
      return { notice: `${ERRORS[code].message} (${String(capability)})` };
    case 'service_unavailable':
      return { notice: typeof runId === 'string' ? ACCEPTED : AWAY };
    default:
      return { notice: ERRORS[code].message };
  }
}

interface Found {
  readonly pointer: string;
  readonly message: string;
}

/** Pointers lead into the request, those of an answer into its value. */
function faultOf(
  { pointer, message }: Found,
  { field, agents }: { readonly field: unknown; readonly agents: readonly ForkAgent[] },
): ForkFault {
  const named = typeof field === 'string' ? field : '';
  const isAnswer = named.startsWith('/runOptionsOverlay/answer');
  const place = isAnswer || pointer === '' ? named : pointer;
  // Of the whole overlay alone is said that a replay has none.
  const isWhole = place === '/runOptionsOverlay';
  const control = isWhole ? FORK_CONTROLS.mode : controlOf(place, agents);
  if (control === '') return { control, message: `${place} ${message}`.trim() };
  if (isWhole) return { control, message: `is not right: ${message}` };
  const [, , name] = place.replace(/^\/runOptionsOverlay/, '').split('/');
  const isPart = control === FORK_CONTROLS.inputs || control === FORK_CONTROLS.configurable;
  return { control, message: isPart && name ? `(${name}) ${message}` : message };
}

const CHANGED =
  'This form has made a fork before, with other values. Nothing was made now. To make another with the values below, send the form again.';
const ACCEPTED =
  'The fork is accepted, but the engine cannot be reached: it starts by itself when the engine is back.';
const AWAY = 'The engine cannot be reached. Nothing was made: try again later.';
