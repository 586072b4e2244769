// GET /.well-known/openwop (capabilities.md): computed from what is registered; nothing is advertised that this process
// does not do. Families stand at the root and once more under `capabilities` (architecture §9).
import { createHash } from 'node:crypto';
import { ENVELOPES, familiesOf, roundsOf } from '../../rules/capabilities.ts';
import type { JsonObject } from '../../rules/json.ts';
import {
  MAX_NODE_EXECUTIONS,
  MAX_RUN_DURATION_MS,
  MAX_SKIP_MS,
  REQUEST_BODY_BYTES,
} from '../../rules/limits.ts';
import { ENGINE_VERSION, ERA } from '../../rules/versions.ts';
import { CONFIGURABLE } from '../../runs/configurable.ts';
import { untakenByAll } from '../../runs/model-options.ts';
import type { FacadeDeps } from '../deps.ts';
import { hostFacts, implementationOf, offersAgents } from '../host-facts.ts';
import { FIRST, MAJORS, type Majors } from '../majors.ts';
import { header, text } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import { BUILDS } from './builds.ts';
import { LIST_WORKFLOWS } from './catalog.ts';
import { OPENSENTIENCE } from './opensentience.ts';
import { CREATE_PAGE_LINK, REVOKE_PAGE_LINKS } from './page-link.ts';
import { RUN_OVERVIEW } from './overview.ts';
import { LIST_CHILDREN } from './children.ts';
import { LIST_QUESTIONS } from './questions.ts';
import { COMPARE_RUNS } from './diff.ts';
import { GET_RETENTION, HOLD_RUN, RELEASE_RUN } from './retention.ts';
import { GET_RUN_BUNDLE } from './run-bundle.ts';
import { GET_RUN_AT } from './run-at.ts';
import { LIST_RUNS } from './runs.ts';
import { GET_ANCESTRY, GET_CAUSES, GET_EFFECTS } from './causation.ts';
import { CANCEL_COHORT, CREATE_COHORT, GET_COHORT, LIST_COHORTS } from './cohorts.ts';
import { GET_CONVERSATION, SAY_IN_SESSION } from './conversation.ts';
import { STREAM_SESSION_EVENTS } from './session-events.ts';
import { GET_SESSION, LIST_SESSIONS } from './sessions.ts';
import { SKIP_TIME } from './skip.ts';
import { CREATE_SIGN_IN_LINK } from './sign-in-link.ts';
import { ERASE_SUBJECT, GET_ERASURE, GET_INTEGRITY, LIST_ERASURES } from './subjects.ts';

const MAX_AGE_SECONDS = 300;

export type DiscoveryDeps = Pick<FacadeDeps, 'catalog' | 'models' | 'tools' | 'config'>;

export const GET_CAPABILITIES = {
  method: 'get',
  path: '/.well-known/openwop',
  operationId: 'getCapabilities',
  summary: 'What this host can do.',
  access: 'public',
  ofNoMajor: true,
  parameters: {
    known: header(
      'If-None-Match',
      text('Tags of the documents that the client has.', { example: '"8ab2c3"' }),
    ),
  },
  success: { status: 200, description: 'The discovery document.', schema: shape('Capabilities') },
  others: [{ status: 304, description: 'The client has this document already.' }],
} as const satisfies Declaration;

export function discoveryRoute(deps: FacadeDeps, majors: Majors): Route {
  return answered(GET_CAPABILITIES, (input) => getCapabilities(deps, majors, input));
}

function getCapabilities(
  deps: FacadeDeps,
  majors: Majors,
  { parameters: { known = '' } }: InputOf<typeof GET_CAPABILITIES>,
): Answer {
  const body = discoveryDocument(deps, majors);
  const digest = createHash('sha256').update(JSON.stringify(body)).digest('hex');
  const etag = `"${digest.slice(0, 32)}"`;
  const headers = { ETag: etag, 'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}` };
  const tags = known.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) ? { status: 304, headers } : { headers, body };
}

/** No clock, no randomness: the same deployment gives the same document. */
export function discoveryDocument(deps: DiscoveryDeps, majors: Majors = MAJORS): JsonObject {
  const { config, catalog } = deps;
  const facts = hostFacts({ ...deps, agents: offersAgents(deps) });
  const families = familiesOf(facts);
  return {
    protocolVersion: majors[0].version,
    protocolVersions: majors.map(({ version }) => version),
    implementation: implementationOf(config),
    engineVersion: ENGINE_VERSION,
    eventLogSchemaVersion: ERA,
    supportedTransports: ['rest'],
    supportedEnvelopes: Object.keys(ENVELOPES),
    schemaVersions: { ...ENVELOPES },
    limits: {
      ...roundsOf(facts),
      maxNodeExecutions: MAX_NODE_EXECUTIONS,
      maxRunDurationMs: MAX_RUN_DURATION_MS,
      maxRequestBodyBytes: REQUEST_BODY_BYTES,
    },
    configurable: configurableKeys(deps),
    runtimeCapabilities: [],
    ...families,
    capabilities: families,
    ...(config.testMode ? { fixtures: [...catalog.fixtures()] } : {}),
    extensions: {
      'openwop-temporal': {
        listRuns: addressOf(LIST_RUNS, FIRST),
        overview: addressOf(RUN_OVERVIEW, FIRST),
        sessions: addressOf(LIST_SESSIONS, FIRST),
        session: addressOf(GET_SESSION, FIRST),
        sessionEvents: addressOf(STREAM_SESSION_EVENTS, FIRST),
        sessionConversation: addressOf(GET_CONVERSATION, FIRST),
        sessionMessages: addressOf(SAY_IN_SESSION, FIRST),
        ancestry: addressOf(GET_ANCESTRY, FIRST),
        causes: addressOf(GET_CAUSES, FIRST),
        effects: addressOf(GET_EFFECTS, FIRST),
        pageLink: addressOf(CREATE_PAGE_LINK, FIRST),
        revokePageLinks: addressOf(REVOKE_PAGE_LINKS, FIRST),
        signInLink: addressOf(CREATE_SIGN_IN_LINK, FIRST),
        questions: addressOf(LIST_QUESTIONS, FIRST),
        children: addressOf(LIST_CHILDREN, FIRST),
        compareRuns: addressOf(COMPARE_RUNS, FIRST),
        runAt: addressOf(GET_RUN_AT, FIRST),
        cohorts: addressOf(LIST_COHORTS, FIRST),
        createCohort: addressOf(CREATE_COHORT, FIRST),
        cohort: addressOf(GET_COHORT, FIRST),
        cancelCohort: addressOf(CANCEL_COHORT, FIRST),
        runBundle: addressOf(GET_RUN_BUNDLE, FIRST),
        retention: addressOf(GET_RETENTION, FIRST),
        holdRun: addressOf(HOLD_RUN, FIRST),
        releaseRun: addressOf(RELEASE_RUN, FIRST),
        runIntegrity: addressOf(GET_INTEGRITY, FIRST),
        ...(config.erasure ? { erasure: erasureAddresses() } : {}),
        workflows: addressOf(LIST_WORKFLOWS, FIRST),
        staleReadHeader: STALE_HEADER,
        deployments: addressesOf(BUILDS),
        ...(facts.rehearsals
          ? { skipTime: addressOf(SKIP_TIME, FIRST), maxSkipMs: MAX_SKIP_MS }
          : {}),
        ...(config.opensentience === true ? { opensentience: addressesOf(OPENSENTIENCE) } : {}),
      },
    },
  };
}

/** Runs may name a subject (`dataSubject`), whose data can be erased. */
function erasureAddresses(): JsonObject {
  return {
    eraseSubject: addressOf(ERASE_SUBJECT, FIRST),
    listErasures: addressOf(LIST_ERASURES, FIRST),
    getErasure: addressOf(GET_ERASURE, FIRST),
  };
}

function addressesOf(declarations: Readonly<Record<string, Declaration>>): JsonObject {
  return Object.fromEntries(
    Object.entries(declarations).map(([name, declared]) => [name, addressOf(declared, FIRST)]),
  );
}

/** Without the options of models that no provider takes. */
function configurableKeys({ models }: Pick<DiscoveryDeps, 'models'>): JsonObject {
  const untaken = untakenByAll(models);
  const keys = Object.entries(CONFIGURABLE).filter(([key]) => !untaken.has(key));
  return Object.fromEntries(
    keys.map(([key, { type, min, max, values, description }]) => [
      key,
      {
        type,
        ...(type === 'string' || min === undefined ? {} : { min }),
        ...(type === 'string' || max === undefined ? {} : { max }),
        ...(values ? { values: [...values] } : {}),
        description,
      },
    ]),
  );
}
