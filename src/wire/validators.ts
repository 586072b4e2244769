// Validators of everything that the host receives or emits, compiled from schemas/ on first use (rest-endpoints.md,
// workflow-definition.schema.json, capabilities.md; run-event.schema.json, run-event-payloads.schema.json;
// RFC 0002 §A). One Ajv for our own schemas, strict; schemas of others: user-schema.ts.
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { EventType } from '../rules/events.ts';
import { jsonBytes, nestsAbove } from '../rules/json.ts';
import { addFormats } from './formats.ts';
import { faultsOf, type Checked, type Fault } from './checked.ts';
import type {
  AgentInventoryResponse,
  AgentManifest,
  AgentScript,
  Capabilities,
  Cohort,
  CohortCreateRequest,
  DebugBundle,
  ErrorEnvelope,
  EventsPollResponse,
  InterruptResolveRequest,
  NodeSettings,
  OpenSentienceEnvelope,
  OpensentienceAgent,
  RunBundle,
  RunCancelRequest,
  RunForkRequest,
  BuildPromoteRequest,
  RunsMoveRequest,
  RunPauseRequest,
  SessionMessageRequest,
  SubjectEraseRequest,
  RunResumeRequest,
  RunSkipRequest,
  RunCreateRequest,
  RunCreateResponse,
  RunEventDoc,
  RunOverviewList,
  RunSnapshot,
  WorkflowDefinition,
} from '../../schemas/types.generated.ts';

/** `metadata` of a run as UTF-8 bytes of JSON, and its levels of nesting (run-options.md). */
const METADATA_BYTES = 8192;
const METADATA_LEVELS = 4;
/** Bytes of a request's body up to which all its faults are told. */
const ALL_FAULTS_BYTES = 64 * 1024;
/** Types that are ours alone: shown in `debug` only (run-event.schema.json). */
const VENDOR_PREFIX = 'openwop-temporal.';

const folder = new URL('../../schemas/', import.meta.url);
const RULES = {
  strict: true,
  strictRequired: false,
  verbose: true,
  allowUnionTypes: true,
  discriminator: true,
  logger: false,
} as const;
const ajv = new Ajv2020({ ...RULES, allErrors: true });
addFormats(ajv);
const firstRule = new Ajv2020({ ...RULES, allErrors: false });
addFormats(firstRule);
/** For messages of agents: stops at the first fault, so that a hostile message costs no more than a good one. */
const firstFault = new Ajv2020({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  logger: false,
});
addFormats(firstFault);

/** The JSON Schema of a shape, as it is published: `run-event` reads schemas/run-event.schema.json. */
export function schemaDocument(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(new URL(`${name}.schema.json`, folder), 'utf8')) as Record<
    string,
    unknown
  >;
}

function lazily(compile: () => ValidateFunction): () => ValidateFunction {
  let compiled: ValidateFunction | undefined;
  return () => (compiled ??= compile());
}

/** A check of values that came as JSON; never throws, changes nothing. */
export type Check<Value> = (value: unknown) => Checked<Value>;

function checkOf<Value>(compile: () => ValidateFunction): Check<Value> {
  const validator = lazily(compile);
  return (value) => {
    const validate = validator();
    return validate(value)
      ? { ok: true, value: value as Value }
      : { ok: false, errors: faultsOf(validate.errors) };
  };
}

function shape<Value>(name: string, compiler = ajv): Check<Value> {
  return checkOf(() => compiler.compile(schemaDocument(name)));
}

/** All faults of a body of an ordinary size; of a larger one the first, so that wrong costs no more than right. */
function bodyShape<Value>(name: string): Check<Value> {
  const first = shape<Value>(name, firstRule);
  const all = shape<Value>(name);
  return (value) => {
    const checked = first(value);
    return checked.ok || jsonBytes(value) > ALL_FAULTS_BYTES ? checked : all(value);
  };
}

/** Checks by the names of an index schema: event types, node types. */
function indexed(
  name: string,
  compiler = ajv,
): {
  keys: readonly string[];
  check: (key: string, value: unknown) => Checked<unknown>;
} {
  const document = schemaDocument(name);
  const keys = Object.keys(document.properties as object);
  const checks = new Map<string, Check<unknown>>();
  compiler.addSchema(document);
  for (const key of keys) {
    checks.set(
      key,
      checkOf(() => compiler.compile({ $ref: `openwop:${name}#/properties/${key}` })),
    );
  }
  return {
    keys,
    check: (key, value) =>
      checks.get(key)?.(value) ?? failure('', `there is no schema for ${key.slice(0, 128)}`),
  };
}

function failure(
  pointer: string,
  message: string,
): { readonly ok: false; readonly errors: readonly [Fault] } {
  return { ok: false, errors: [{ pointer, message }] };
}

const payloads = indexed('run-event-payloads');
const kinds = indexed('node-kinds');
const envelope = shape<RunEventDoc>('run-event');
const agentMessages = indexed('opensentience-messages', firstFault);
const createRequest = bodyShape<RunCreateRequest>('run-create-request');

/** Every event type that this host may emit, in catalogue order. */
export const EVENT_TYPE_NAMES = payloads.keys as readonly EventType[];
/** Every node type that this release registers. */
export const NODE_TYPE_IDS = kinds.keys;

export const validate = {
  definition: shape<WorkflowDefinition>('workflow-definition'),
  manifest: shape<AgentManifest>('agent-manifest'),
  nodeSettings: shape<NodeSettings>('node-settings'),
  runBundle: shape<RunBundle>('run-bundle', firstFault),
  runCancelRequest: bodyShape<RunCancelRequest>('run-cancel-request'),
  runForkRequest: bodyShape<RunForkRequest>('run-fork-request'),
  cohortCreateRequest: bodyShape<CohortCreateRequest>('cohort-create-request'),
  cohort: shape<Cohort>('cohort'),
  buildPromoteRequest: bodyShape<BuildPromoteRequest>('build-promote-request'),
  runsMoveRequest: bodyShape<RunsMoveRequest>('runs-move-request'),
  runPauseRequest: bodyShape<RunPauseRequest>('run-pause-request'),
  sessionMessageRequest: bodyShape<SessionMessageRequest>('session-message-request'),
  subjectEraseRequest: bodyShape<SubjectEraseRequest>('subject-erase-request'),
  runResumeRequest: bodyShape<RunResumeRequest>('run-resume-request'),
  runSkipRequest: bodyShape<RunSkipRequest>('run-skip-request'),
  runCreateResponse: shape<RunCreateResponse>('run-create-response'),
  interruptResolveRequest: bodyShape<InterruptResolveRequest>('interrupt-resolve-request'),
  debugBundle: shape<DebugBundle>('debug-bundle'),
  eventsPollResponse: shape<EventsPollResponse>('events-poll-response'),
  runOverviewList: shape<RunOverviewList>('run-overview-list'),
  snapshot: shape<RunSnapshot>('run-snapshot'),
  errorEnvelope: shape<ErrorEnvelope>('error-envelope'),
  capabilities: shape<Capabilities>('capabilities'),
  agentInventory: shape<AgentInventoryResponse>('agent-inventory'),
  /** Scripts of the provider `scripted`, when they are loaded: a script file is input like any other. */
  agentScript: shape<AgentScript>('agent-script'),
  opensentienceAgent: shape<OpensentienceAgent>('opensentience-agent'),
  /** What every message of the OpenSentience protocol has (seed 004 §3). */
  openSentienceEnvelope: shape<OpenSentienceEnvelope>('opensentience-envelope', firstFault),
  /** Payload of a message that an agent sends, by the message's type; `declared-tool`: one tool. */
  agentMessage: (type: string, payload: unknown): Checked<unknown> =>
    agentMessages.check(type, payload),
  runCreateRequest: (value: unknown): Checked<RunCreateRequest> => {
    const checked = createRequest(value);
    return checked.ok ? (metadataFault(checked.value.metadata) ?? checked) : checked;
  },
  /** `config` of a node of a registered type. */
  nodeConfig: (typeId: string, config: unknown): Checked<unknown> => kinds.check(typeId, config),
  payload: (type: string, payload: unknown): Checked<unknown> => payloads.check(type, payload),
} as const;

/** Envelope and, of known types, payload. A type that is neither known nor in our own name space is a fault. */
export function validateEvent(doc: unknown): Checked<RunEventDoc> {
  const checked = envelope(doc);
  if (!checked.ok || checked.value.type.startsWith(VENDOR_PREFIX)) return checked;
  const payload = payloads.check(checked.value.type, checked.value.payload);
  if (payload.ok) return checked;
  const [first, ...rest] = payload.errors;
  const inPayload = (fault: Fault): Fault => ({ ...fault, pointer: `/payload${fault.pointer}` });
  return { ok: false, errors: [inPayload(first), ...rest.map(inPayload)] };
}

function metadataFault(metadata: unknown): ReturnType<typeof failure> | undefined {
  if (metadata === undefined) return undefined;
  if (jsonBytes(metadata) > METADATA_BYTES)
    return failure('/metadata', `is larger than ${METADATA_BYTES} bytes`);
  if (nestsAbove(metadata, METADATA_LEVELS))
    return failure('/metadata', `is nested deeper than ${METADATA_LEVELS} levels`);
  return undefined;
}
