// The page that starts a run of a workflow or of an agent, by a form (architecture §10). The form is accepted as a
// request of the API is, once per form: its address has a number of its own, which stays through Back, reload and a
// second click, and is the idempotency key together with the session and what is started.
import type { Request, Router } from 'express';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../rules/json.ts';
import { mask, maskedAt } from '../../rules/redaction.ts';
import {
  AGENT_FIELDS,
  fieldsOf,
  filledForm,
  REHEARSAL_CONTROL,
  renderStartPage,
  sentInputs,
  TAGS_POINTER,
  type FormTexts,
  type InputFault,
  type SentInputs,
  type StartField,
  type StartPageModel,
} from '../../pages/index.ts';
import type { Caller } from '../../ports/caller.ts';
import type { RunRow } from '../../ports/runs.ts';
import { acceptRun, type AcceptedRun } from '../../runs/accept.ts';
import { requireRun } from '../../runs/find.ts';
import { inputFaults } from '../../runs/input.ts';
import type { Asked, Once } from '../../runs/once.ts';
import { parseRunRequest } from '../../runs/request.ts';
import type { WorkflowVariable } from '../../../schemas/types.generated.ts';
import { guardJson } from '../body.ts';
import type { FacadeDeps } from '../deps.ts';
import { FIRST } from '../majors.ts';
import { queryText } from '../parameters.ts';
import { isForm, newForm, runIdOf, whenNotInFlight } from './form-number.ts';
import { HOME, page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';

/** Stands in stored records and never changes. */
const ENDPOINT = 'POST /pages/start';
/** How each mask of a value begins. */
const MASKED = mask().slice(0, -1);

/** What a form starts. */
interface Startable {
  readonly kind: StartPageModel['kind'];
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly fields: readonly StartField[];
  /** Of an agent none are declared. */
  readonly variables: readonly WorkflowVariable[];
}

export function mountStartPages(router: Router, deps: PageDeps): void {
  for (const [path, of] of [
    ['/pages/start/:workflowId', workflowOf],
    ['/pages/start-agent/:agentId', agentOf],
  ] as const) {
    const show = signedIn((given, call) => showForm(given, call, of));
    const take = signedIn((given, call) => takeForm(given, call, of));
    router.get(path, page(deps, show)).post(path, page(deps, take));
  }
}

type StartableOf = (deps: FacadeDeps, caller: Caller, request: Request) => Startable;

const workflowOf: StartableOf = ({ catalog }, { tenant }, request) => {
  const definition = catalog.definition(tenant, parameter(request, 'workflowId'));
  if (!definition) throw new HostError('workflow_not_found');
  const { id, name, description, variables } = definition;
  return { kind: 'workflow', id, name, description, variables, fields: fieldsOf(variables) };
};

const agentOf: StartableOf = ({ catalog }, { tenant }, request) => {
  const agent = catalog.agent(tenant, parameter(request, 'agentId'));
  if (!agent) throw new HostError('agent_not_found');
  const { agentId: id, label, persona, description } = agent.manifest;
  return {
    kind: 'agent',
    id,
    name: label ?? persona,
    description,
    variables: [],
    fields: AGENT_FIELDS,
  };
};

/** Address of the form that starts what this run is a run of, filled as it was. */
export function startAnotherUrl({ runId, input }: RunRow): string {
  const { definition, source } = input;
  const [node] = definition.nodes;
  const from = `?from=${encodeURIComponent(runId)}`;
  return source !== 'workflow-node'
    ? `${addressOf({ kind: 'agent', id: node?.agent?.agentId ?? '' })}${from}`
    : `${addressOf({ kind: 'workflow', id: definition.id })}${from}`;
}

function addressOf({ kind, id }: Pick<Startable, 'kind' | 'id'>): string {
  return `/pages/${kind === 'agent' ? 'start-agent' : 'start'}/${encodeURIComponent(id)}`;
}

async function showForm(deps: PageDeps, call: SignedInCall, of: StartableOf): Promise<void> {
  const { request, response, session } = call;
  const startable = of(deps, session.caller, request);
  const from = queryText(request, 'from');
  const form = queryText(request, 'form') ?? '';
  if (!isForm(form)) {
    const query = new URLSearchParams({ ...(from === undefined ? {} : { from }), form: newForm() });
    response.redirect(303, `${addressOf(startable)}?${query.toString()}`);
    return;
  }
  const like = from === undefined ? undefined : await requireRun(deps, session.caller, from);
  sendForm(deps, call, {
    startable,
    form,
    ...(like ? filledAs(startable, like) : { texts: filledForm(startable.fields) }),
  });
}

/**
 * Sensitive values, and those of which only a mask was kept, are left empty. What the run's own definition calls sensitive
 * is so in every form: this one may be of something else, which has a variable of that name or takes them all.
 */
function filledAs(
  { kind, fields }: Startable,
  { input }: RunRow,
): Pick<SentPage, 'texts' | 'withheld'> {
  const entries = Object.entries(input.variables);
  const declared = input.definition.variables;
  const secret = new Set(declared.filter(({ sensitive }) => sensitive).map(({ name }) => name));
  const known = entries.filter(
    ([name, value]) => !secret.has(name) && !JSON.stringify(value).includes(MASKED),
  );
  const inputs = Object.fromEntries(known);
  const lost = new Set(
    entries.filter(([name]) => !Object.hasOwn(inputs, name)).map(([name]) => name),
  );
  const withheld = fields
    .filter(
      ({ label, sensitive }) => lost.has(label) || (sensitive && Object.hasOwn(inputs, label)),
    )
    .map(({ label }) => label);
  return {
    texts: filledForm(fields, inputs),
    withheld: kind === 'agent' && lost.size > 0 ? fields.map(({ label }) => label) : withheld,
  };
}

interface SentPage {
  readonly startable: Startable;
  readonly form: string;
  readonly texts: FormTexts;
  readonly withheld?: readonly string[];
  readonly status?: number;
  readonly faults?: readonly InputFault[];
  readonly notice?: StartPageModel['notice'];
}

function sendForm(
  { config }: PageDeps,
  { response, session }: SignedInCall,
  shown: SentPage,
): void {
  const { startable, form, texts, status = 200 } = shown;
  const html = renderStartPage({
    ...startable,
    form: texts,
    faults: shown.faults,
    notice: shown.notice,
    withheld: shown.withheld,
    ...(config.rehearsals ? { rehearsal: { isChosen: isRehearsal(texts) } } : {}),
    action: `${addressOf(startable)}?form=${form}`,
    csrfToken: session.csrfToken,
    homeUrl: HOME,
  });
  response.status(status).type('html').send(html);
}

async function takeForm(deps: PageDeps, call: SignedInCall, of: StartableOf): Promise<void> {
  const { request, response, session, form: texts } = call;
  const startable = of(deps, session.caller, request);
  const form = queryText(request, 'form') ?? '';
  if (!isForm(form)) throw new HostError('validation_error', { field: 'form' });
  const sent = sentInputs(startable.fields, texts);
  const faults = allFaults(deps, startable, sent);
  const shown = { startable, form, texts };
  if (faults.length > 0) {
    sendForm(deps, call, { ...shown, faults, status: FIRST.errors.validation_error.status });
    return;
  }
  try {
    const once = await accepted(deps, call, {
      ...{ startable, form, ...sent },
      isRehearsal: isRehearsal(texts),
    });
    response.locals.runId = runIdOf(once);
    const notice = once.replayed ? 'started-before' : 'started';
    response.redirect(303, `/pages/runs/${encodeURIComponent(runIdOf(once))}?notice=${notice}`);
  } catch (error) {
    const code = codeOf(error);
    if (!code || code === 'internal_error') throw error;
    const status = FIRST.errors[code].status;
    sendForm(deps, call, {
      ...shown,
      status,
      ...refusal(code, (error as HostError).details ?? {}),
    });
  }
}

/** What the form itself got wrong, and what the API would say of the rest: one for each field, in their order. */
function allFaults(
  { redactor }: Pick<PageDeps, 'redactor'>,
  { kind, fields, variables }: Startable,
  { inputs, faults, tags }: SentInputs,
): InputFault[] {
  const pointerOf = (name: string): string =>
    fields.find(({ label }) => kind === 'agent' || label === name)?.pointer ?? '';
  const forbidden = Object.entries(inputs).flatMap(([name, value]) => {
    const reason = refusedKey({ [name]: value });
    return reason === undefined
      ? []
      : [{ pointer: pointerOf(name), message: `cannot be sent: ${reason}` }];
  });
  const secret = (pointer: string, value: JsonValue): InputFault[] =>
    maskedAt(redactor, value) === undefined ? [] : [{ pointer, message: SECRET }];
  const secrets = Object.entries(inputs).flatMap(([name, value]) =>
    secret(pointerOf(name), { [name]: value }),
  );
  const inTags = secret(TAGS_POINTER, [...tags]);
  const all = [...faults, ...forbidden, ...secrets, ...inputFaults(variables, inputs)];
  const atFields = fields.flatMap(
    ({ pointer }) => all.find((each) => each.pointer === pointer) ?? [],
  );
  return [...atFields, ...inTags];
}

const SECRET = 'looks like it holds a secret. Secrets are never stored, so it was not taken.';

function refusedKey(value: JsonValue): string | undefined {
  try {
    guardJson(value);
    return undefined;
  } catch (error) {
    if (codeOf(error) !== 'validation_error') throw error;
    return (error as HostError).message;
  }
}

interface Wanted {
  readonly startable: Startable;
  readonly form: string;
  readonly inputs: JsonObject;
  readonly tags: readonly string[];
  readonly isRehearsal: boolean;
}

function isRehearsal(texts: FormTexts): boolean {
  return texts[REHEARSAL_CONTROL] === 'yes';
}

async function accepted(
  deps: PageDeps,
  { session: { caller, csrfToken } }: Pick<SignedInCall, 'session'>,
  { startable: { kind, id }, form, inputs, tags, isRehearsal }: Wanted,
): Promise<Once<AcceptedRun>> {
  const body = {
    ...{ [`${kind}Id`]: id, inputs },
    ...(tags.length === 0 ? {} : { tags: [...tags] }),
    ...(isRehearsal ? { rehearsal: true } : {}),
  };
  const run = parseRunRequest(caller, body);
  const key = sha256Hex(canonicalJson([csrfToken, kind, id, form]));
  const asked: Asked = { endpoint: ENDPOINT, target: [kind, id], body, key };
  const telling = { told: ({ runId }: AcceptedRun) => ({ status: 303, body: { runId } }) };
  return whenNotInFlight(() => acceptRun(deps, caller, { run, once: { asked, telling } }));
}

/** What is wrong in words, and in which form it is said. */
function refusal(
  code: ErrorCode,
  details: Readonly<Record<string, unknown>>,
): Partial<Pick<SentPage, 'faults' | 'notice' | 'form'>> {
  const { runId } = details;
  if (code === 'validation_error') return wrong(details);
  // A form that was changed behind Back: the next click is meant, and starts another run.
  if (code === 'idempotency_key_mismatch') return { form: newForm(), notice: said(CHANGED) };
  if (code === 'service_unavailable' && typeof runId === 'string')
    return { notice: { ...said(ACCEPTED), runUrl: `/pages/runs/${encodeURIComponent(runId)}` } };
  return { notice: said(REFUSALS[code]?.(details) ?? ERRORS[code].message) };
}

const CHANGED =
  'This form has started a run before, with other values. Nothing was started now. To start another run with the values below, send the form again.';
const ACCEPTED =
  'The run is accepted, but the engine cannot be reached: it starts by itself when the engine is back.';
const NO_SETTINGS =
  'This workflow wants settings (configurable) that the form does not offer: start it by the API.';
const REFUSALS: Partial<
  Readonly<Record<ErrorCode, (details: Readonly<Record<string, unknown>>) => string>>
> = {
  idempotency_in_flight: () =>
    'This form is being sent already. Wait a moment and send it again: it starts one run.',
  payload_too_large: ({ limit }) =>
    `The inputs are larger than permitted: at most ${Number(limit) / 1024} KiB together.`,
  agent_not_found: ({ agentId }) =>
    typeof agentId === 'string' ? `No such agent: ${agentId}.` : ERRORS.agent_not_found.message,
  service_unavailable: () => 'The engine cannot be reached. Nothing was started: try again later.',
};

function said(text: string): NonNullable<StartPageModel['notice']> {
  return { kind: 'error', text };
}

/** The API's own check, at the fields that its pointers name. */
function wrong({
  errors,
  field,
  reason,
}: Readonly<Record<string, unknown>>): Partial<Pick<SentPage, 'faults' | 'notice'>> {
  const faults = Array.isArray(errors)
    ? (errors as InputFault[])
    : [{ pointer: String(field), message: String(reason) }];
  const isSettings = faults.some(({ pointer }) => pointer.startsWith('/configurable'));
  return { faults, ...(isSettings ? { notice: said(NO_SETTINGS) } : {}) };
}
