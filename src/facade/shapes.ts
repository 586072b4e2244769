// The shapes that the OpenAPI document publishes: the schema files by name, and small ones of its own.
import type { JsonObject } from '../rules/json.ts';
import { BUILD_STATES } from '../rules/builds.ts';
import { ANCESTRY_CAUSES } from '../rules/children.ts';
import { RUN_STATUSES } from '../rules/status.ts';
import { schemaDocument } from '../wire/validators.ts';

/** Published shapes by the name of their file. */
const SCHEMAS: Readonly<Record<string, string>> = {
  ErrorEnvelope: 'error-envelope',
  RunCreateRequest: 'run-create-request',
  RunCreateResponse: 'run-create-response',
  RunCancelRequest: 'run-cancel-request',
  RunForkRequest: 'run-fork-request',
  RunDiffResponse: 'run-diff-response',
  RunComparison: 'run-comparison',
  CohortCreateRequest: 'cohort-create-request',
  Cohort: 'cohort',
  RunPauseRequest: 'run-pause-request',
  BuildPromoteRequest: 'build-promote-request',
  RunsMoveRequest: 'runs-move-request',
  RunResumeRequest: 'run-resume-request',
  RunSkipRequest: 'run-skip-request',
  SessionMessageRequest: 'session-message-request',
  SubjectEraseRequest: 'subject-erase-request',
  RunSnapshot: 'run-snapshot',
  RunOverviewList: 'run-overview-list',
  RunEventDoc: 'run-event',
  EventPollResponse: 'events-poll-response',
  DebugBundle: 'debug-bundle',
  RunBundle: 'run-bundle',
  InterruptResolveRequest: 'interrupt-resolve-request',
  WorkflowDefinition: 'workflow-definition',
  AgentInventoryResponse: 'agent-inventory',
  Capabilities: 'capabilities',
};

/** An index of answers: each of its `$defs` is a component by its own name. */
const INDEX_SCHEMA = 'opensentience-operations';

const text: JsonObject = { type: 'string' };

/** An event without what it says. */
const question: JsonObject = {
  type: 'object',
  properties: {
    nodeId: text,
    interruptId: text,
    kind: text,
    requestedAt: { type: 'string', format: 'date-time' },
    deadline: { type: 'string', format: 'date-time' },
    resumeSchema: { type: 'object' },
  },
  required: ['nodeId', 'interruptId', 'kind', 'requestedAt'],
};

/** Of a row of a list: `what` is not told of it, or not all. */
const unreadable = (what: string): JsonObject => ({
  type: 'object',
  description: `Why ${what} cannot be read now: what does not open is left out.`,
  properties: { code: text, message: text },
  required: ['code', 'message'],
});

const EVENT_LINK: JsonObject = {
  type: 'object',
  properties: {
    ...{ eventId: text, runId: text, type: text, nodeId: text, causationId: text },
    ...{ sequence: { type: 'integer' }, depth: { type: 'integer' } },
    timestamp: { type: 'string', format: 'date-time' },
    unreadable: unreadable('its time'),
  },
  required: ['eventId', 'runId', 'sequence', 'type', 'timestamp'],
};

const SESSION = {
  properties: {
    sessionId: text,
    title: text,
    tags: { type: 'array', items: text },
    unreadable: unreadable('the title, or a tag,'),
    createdAt: { type: 'string', format: 'date-time' },
    lastActivityAt: { type: 'string', format: 'date-time' },
  },
  required: ['sessionId', 'tags', 'createdAt', 'lastActivityAt'],
};

const BUILD: JsonObject = {
  type: 'object',
  properties: {
    ...{ buildId: text, state: { enum: [...BUILD_STATES] } },
    since: { type: 'string', format: 'date-time' },
    share: { type: 'number', minimum: 0, maximum: 100, description: 'Percent of new runs.' },
    openRuns: { type: 'integer', minimum: 0, description: 'Whose last task it performed.' },
    heldRuns: { type: 'integer', minimum: 0, description: 'That no other build goes on with.' },
    hasWorker: { type: 'boolean', description: 'One asked for work in the last 90 seconds.' },
  },
  required: ['buildId', 'state', 'share', 'openRuns', 'heldRuns', 'hasWorker'],
};

const ERASURE_RECEIPT: JsonObject = {
  type: 'object',
  description: 'What the signature is over. `runs` names the first 1,000; `logs.root` is over all.',
  properties: {
    kind: { const: 'openwop-temporal.erasure-receipt' },
    version: { const: 1 },
    ...{ erasureId: text, tenant: text, subject: text, requestedBy: text, reason: text },
    keys: { type: 'array', items: text },
    requestedAt: { type: 'string', format: 'date-time' },
    destroyedAt: { type: 'string', format: 'date-time' },
    cancelledOpenRuns: { type: 'boolean' },
    logs: {
      type: 'object',
      properties: {
        ...{ runs: { type: 'integer' }, events: { type: 'integer' }, root: text },
        notKept: { type: 'integer', description: 'Runs without a row.' },
      },
      required: ['runs', 'events', 'root'],
    },
    runs: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          runId: text,
          events: { type: 'integer' },
          root: text,
          isKept: { const: false },
        },
        required: ['runId', 'events', 'root'],
      },
    },
    truncated: { const: true },
  },
  required: [
    ...['kind', 'version', 'erasureId', 'tenant', 'subject', 'keys', 'requestedBy', 'requestedAt'],
    ...['destroyedAt', 'cancelledOpenRuns', 'logs', 'runs'],
  ],
};

const ERASURE: JsonObject = {
  type: 'object',
  properties: {
    ...{ erasureId: text, subject: text, keyId: text, requestedBy: text, reason: text },
    state: { enum: ['closing', 'destroyed', 'erased'] },
    cancelOpen: { type: 'boolean' },
    requestedAt: { type: 'string', format: 'date-time' },
    destroyedAt: { type: 'string', format: 'date-time' },
    waitsFor: {
      type: 'object',
      description:
        'What it waited for when the host went on with it last, while it has no receipt.',
      properties: {
        kind: {
          enum: ['open-runs', 'processes', 'logs', 'database', 'failed'],
          description:
            'Runs that have not ended, processes that may still open with the key, logs that are not kept yet, who can read the key in the database, or a step that failed and is tried again.',
        },
        reason: { type: 'string', description: 'For who operates the host.' },
      },
      required: ['kind', 'reason'],
    },
    receipt: ERASURE_RECEIPT,
    unreadable: unreadable('the receipt, what it waits for, or who asked and when,'),
    signature: {
      type: 'object',
      properties: { algorithm: text, over: text, publicKey: text, value: text },
      required: ['algorithm', 'over', 'publicKey', 'value'],
    },
  },
  required: [
    ...['erasureId', 'subject', 'keyId', 'state', 'cancelOpen', 'requestedAt', 'requestedBy'],
  ],
};

/** Shapes of answers that no schema file describes: small, and read by nobody but clients. */
const INLINE: JsonObject = {
  RunEventList: {
    type: 'object',
    properties: {
      events: { type: 'array', items: { $ref: '#/components/schemas/RunEventDoc' } },
      isComplete: { type: 'boolean' },
    },
    required: ['events', 'isComplete'],
  },
  RunStatusAnswer: {
    type: 'object',
    properties: { runId: text, status: { enum: [...RUN_STATUSES] } },
    required: ['runId', 'status'],
  },
  RunSkipAnswer: {
    type: 'object',
    properties: { runId: text, status: { const: 'skipping' } },
    required: ['runId', 'status'],
  },
  InterruptAnswer: {
    type: 'object',
    properties: { runId: text, nodeId: text, status: { enum: ['resolved', 'open'] } },
    required: ['runId', 'nodeId', 'status'],
  },
  RunList: {
    type: 'object',
    properties: {
      runs: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            runId: text,
            workflowId: text,
            status: { enum: [...RUN_STATUSES] },
            createdAt: { type: 'string', format: 'date-time' },
            tags: { type: 'array', items: text },
            unreadable: unreadable('its tags'),
            statusUrl: text,
            eventsUrl: text,
          },
          required: ['runId', 'workflowId', 'status', 'createdAt', 'tags'],
        },
      },
      nextCursor: text,
    },
    required: ['runs'],
  },
  RunForkResponse: {
    type: 'object',
    properties: {
      ...{ runId: text, sourceRunId: text, statusUrl: text, eventsUrl: text },
      fromSeq: { type: 'integer', minimum: 0 },
      mode: { enum: ['replay', 'branch'] },
      status: { enum: [...RUN_STATUSES] },
    },
    required: ['runId', 'sourceRunId', 'fromSeq', 'mode', 'status', 'eventsUrl'],
  },
  SessionList: {
    type: 'object',
    properties: {
      sessions: { type: 'array', items: { type: 'object', ...SESSION } },
      nextCursor: text,
    },
    required: ['sessions'],
  },
  Session: {
    type: 'object',
    properties: {
      ...SESSION.properties,
      runs: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ...{ runId: text, workflowId: text, parentRunId: text, causationId: text },
            status: { enum: [...RUN_STATUSES] },
            createdAt: { type: 'string', format: 'date-time' },
            tags: { type: 'array', items: text },
            unreadable: unreadable('its tags'),
            ...{ statusUrl: text, eventsUrl: text },
          },
          required: ['runId', 'workflowId', 'status', 'createdAt', 'tags'],
        },
      },
      nextCursor: text,
    },
    required: [...SESSION.required, 'runs'],
  },
  Conversation: {
    type: 'object',
    properties: {
      messages: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ...{ messageId: text, from: text, to: text, groupId: text },
            content: { description: 'Any JSON value.' },
            ts: { type: 'integer', minimum: 0, description: 'Milliseconds of the epoch.' },
            ...{ role: text, speakerId: text, toolName: text, toolCallId: text },
            turnIndex: { type: 'integer', minimum: 0 },
            agent: { type: 'object' },
            ...{ runId: text, eventId: text },
          },
          required: ['messageId', 'from', 'content', 'ts', 'runId', 'eventId'],
        },
      },
      unreadable: unreadable('something that was said, or may have been,'),
      nextCursor: text,
    },
    required: ['messages'],
  },
  SessionMessage: {
    type: 'object',
    properties: {
      ...{ messageId: text, sessionId: text, runId: text },
      status: { enum: [...RUN_STATUSES] },
      ...{ statusUrl: text, eventsUrl: text },
    },
    required: ['messageId', 'sessionId', 'runId', 'status', 'eventsUrl'],
  },
  RunAncestry: {
    type: 'object',
    properties: {
      ...{ runId: text, hostId: text },
      parent: {
        type: ['object', 'null'],
        properties: {
          ...{ runId: text, hostId: text, wellKnownUrl: text },
          cause: { enum: [...new Set(Object.values(ANCESTRY_CAUSES))] },
        },
        required: ['runId', 'hostId', 'cause'],
        additionalProperties: false,
      },
    },
    required: ['runId', 'hostId', 'parent'],
    additionalProperties: false,
  },
  EventCauses: {
    type: 'object',
    properties: {
      event: EVENT_LINK,
      causes: { type: 'array', items: EVENT_LINK },
      truncated: { const: true },
      beyond: text,
    },
    required: ['event', 'causes'],
  },
  RunAt: {
    type: 'object',
    properties: {
      ...{ runId: text, sequence: { type: 'integer' }, length: { type: 'integer' } },
      ...{ eventId: text, type: text, timestamp: { type: 'string', format: 'date-time' } },
      unreadable: unreadable('the time of the event'),
      ...{ status: { enum: [...RUN_STATUSES] }, nodeStates: { type: 'object' } },
      ...{ variables: { type: 'object' }, currentNodeId: text, interrupt: { type: 'object' } },
      ...{ outputs: {}, error: { type: 'object' }, metrics: { type: 'object' } },
    },
    required: [
      ...['runId', 'sequence', 'length', 'eventId', 'type', 'timestamp'],
      ...['status', 'nodeStates', 'variables'],
    ],
    additionalProperties: false,
  },
  EventEffects: {
    type: 'object',
    properties: {
      ...{ event: EVENT_LINK, effects: { type: 'array', items: EVENT_LINK } },
      truncated: { const: true },
    },
    required: ['event', 'effects'],
  },
  Health: {
    type: 'object',
    properties: { status: { const: 'ok' } },
    required: ['status'],
  },
  Readiness: {
    type: 'object',
    properties: {
      status: { enum: ['ready', 'not-ready'] },
      temporal: text,
      engine: text,
      database: text,
      sqlState: text,
      worker: { enum: ['ok', 'waits-for-store', 'waits-for-temporal'] },
      keys: { const: 'missing' },
      projection: {
        oneOf: [
          { enum: ['ok', 'unknown'] },
          { type: 'object', additionalProperties: { type: 'integer' } },
        ],
      },
      builds: {
        type: 'object',
        description: 'Absent where no worker names a build.',
        properties: {
          current: text,
          runsWithoutWorker: { type: 'integer', minimum: 0 },
        },
        required: ['runsWithoutWorker'],
      },
      draining: { const: true },
    },
    required: ['status', 'temporal', 'engine', 'database', 'projection'],
  },
  BuildList: {
    type: 'object',
    properties: {
      builds: { type: 'array', items: BUILD },
      currentBuildId: text,
      runsWithoutWorker: {
        type: 'integer',
        minimum: 0,
        description: 'Open runs that wait for a worker of their build.',
      },
    },
    required: ['builds', 'runsWithoutWorker'],
  },
  BuildRunList: {
    type: 'object',
    properties: {
      runs: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ...{ runId: text, buildId: text, held: { type: 'boolean' } },
            failing: {
              type: 'object',
              properties: { attempt: { type: 'integer', minimum: 2 }, reason: text },
              required: ['attempt'],
            },
          },
          required: ['runId', 'held'],
        },
      },
    },
    required: ['runs'],
  },
  MovedRuns: {
    type: 'object',
    properties: {
      moved: { type: 'array', items: text },
      failed: {
        type: 'array',
        items: {
          type: 'object',
          properties: { runId: text, reason: text },
          required: ['runId', 'reason'],
        },
      },
      nextCursor: text,
    },
    required: ['moved', 'failed'],
  },
  QuestionList: {
    type: 'object',
    properties: { questions: { type: 'array', items: question } },
    required: ['questions'],
  },
  RunsBelow: {
    type: 'object',
    properties: {
      runs: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            runId: text,
            parentRunId: text,
            workflowId: text,
            status: text,
            createdAt: { type: 'string', format: 'date-time' },
            unreadable: unreadable('what it asks'),
            questions: {
              type: 'array',
              items: question,
              description:
                'Absent where it may ask and was not looked at: read its own questions. Absent, too, where it cannot be read.',
            },
          },
          required: ['runId', 'parentRunId', 'workflowId', 'status', 'createdAt'],
        },
      },
      more: { type: 'boolean', description: 'There are runs below that are not told.' },
    },
    required: ['runs', 'more'],
  },
  WorkflowList: {
    type: 'object',
    properties: {
      workflows: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            workflowId: text,
            name: text,
            version: text,
            description: text,
            inputs: {
              type: 'array',
              items: {
                $ref: '#/components/schemas/WorkflowDefinition/properties/variables/items',
              },
            },
          },
          required: ['workflowId', 'name', 'version', 'inputs'],
        },
      },
    },
    required: ['workflows'],
  },
  Retention: {
    type: 'object',
    properties: {
      days: { type: 'integer' },
      ...{ held: { type: 'integer' }, expiredRuns: { type: 'integer' } },
      next: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ...{ runId: text, workflowId: text, held: { type: 'boolean' } },
            endedAt: { type: 'string', format: 'date-time' },
            expiresAt: { type: 'string', format: 'date-time' },
            unreadable: unreadable('when it ended'),
          },
          required: ['runId', 'workflowId', 'endedAt', 'held'],
        },
      },
      expired: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            ...{ runId: text, workflowId: text, deleted: { type: 'boolean' } },
            expiredAt: { type: 'string', format: 'date-time' },
            unreadable: unreadable('when it expired'),
          },
          required: ['runId', 'workflowId', 'expiredAt', 'deleted'],
        },
      },
    },
    required: ['held', 'expiredRuns', 'next', 'expired'],
  },
  RunHold: {
    type: 'object',
    properties: {
      ...{ runId: text, held: { type: 'boolean' }, reason: text },
      heldAt: { type: 'string', format: 'date-time' },
    },
    required: ['runId', 'held'],
  },
  CohortList: {
    type: 'object',
    properties: {
      cohorts: { type: 'array', items: { $ref: '#/components/schemas/Cohort' } },
      nextCursor: text,
    },
    required: ['cohorts'],
  },
  Erasure: ERASURE,
  ErasureList: {
    type: 'object',
    properties: { erasures: { type: 'array', items: { $ref: '#/components/schemas/Erasure' } } },
    required: ['erasures'],
  },
  RunIntegrity: {
    type: 'object',
    properties: {
      ...{ runId: text, events: { type: 'integer' }, root: text, isIntact: { type: 'boolean' } },
      erased: {
        type: 'object',
        properties: { erasureId: text, events: { type: 'integer' }, root: text },
        required: ['erasureId', 'events', 'root'],
      },
    },
    required: ['runId', 'events', 'root'],
  },
  PageLink: {
    type: 'object',
    properties: { url: text, expiresAt: { type: 'string', format: 'date-time' } },
    required: ['url', 'expiresAt'],
  },
  PageLinkRevocation: {
    type: 'object',
    properties: { runId: text, links: { type: 'integer' }, sessions: { type: 'integer' } },
    required: ['runId', 'links', 'sessions'],
  },
};

/** References inside a schema file point into that file; here they must point below its place in the document. */
function rebased(value: unknown, prefix: string): unknown {
  if (Array.isArray(value)) return value.map((item) => rebased(item, prefix));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== '$id' && key !== '$schema')
      .map(([key, inner]) => [
        key,
        key === '$ref' && typeof inner === 'string' && inner.startsWith('#')
          ? prefix + inner.slice(1)
          : rebased(inner, prefix),
      ]),
  );
}

/** Every published shape by its name in the document (`components.schemas`). */
export function components(): JsonObject {
  const files = Object.entries(SCHEMAS).map(([name, file]) => [
    name,
    rebased(schemaDocument(file), `#/components/schemas/${name}`),
  ]);
  return { ...(Object.fromEntries(files) as JsonObject), ...indexed(INDEX_SCHEMA), ...INLINE };
}

function indexed(file: string): JsonObject {
  const { $defs } = schemaDocument(file) as { $defs: JsonObject };
  const lifted = JSON.stringify($defs).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(lifted) as JsonObject;
}
