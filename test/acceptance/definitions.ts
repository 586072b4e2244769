// Workflow definitions as the ecosystem's clients carry them about, written from their descriptions
// (conformance/fixtures.md): files that this release runs to their documented end, and files that it must leave out.
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Json = Record<string, unknown>;

/** Short ids, without the prefix `conformance-`. */
export const SERVED = [
  'noop',
  'identity',
  'delay',
  'cancellable',
  'failure',
  'multi-node',
  'idempotent',
  'version-fold',
  'configurable-schema',
  'cap-breach',
  'run-duration-breach',
  'approval',
  'approval-ask',
  'clarification',
  'interrupt-quorum',
  'approval-timeout',
  'approval-timeout-approve',
  'approval-reject-routed',
  'agent-identity',
  'agent-memory-pin',
  'capability-missing',
  'channel-ttl',
  'message-reducer',
  'conversation-lifecycle',
  'conversation',
  'subworkflow-parent',
  'subworkflow-child',
  'agent-reasoning',
  'orchestrator-dispatch',
] as const;

/** A node as the files write it; `position` lies anywhere. */
function node(id: string, typeId: string, more: Json = {}): Json {
  return { id, typeId, name: id, position: { x: 120, y: 80 }, config: {}, inputs: {}, ...more };
}

function edge(sourceNodeId: string, targetNodeId: string, more: Json = {}): Json {
  return { id: `${sourceNodeId}-to-${targetNodeId}`, sourceNodeId, targetNodeId, ...more };
}

interface File {
  readonly nodes: readonly Json[];
  readonly edges?: readonly Json[];
  readonly variables?: readonly Json[];
  readonly more?: Json;
}

function file(id: string, { nodes, edges = [], variables = [], more = {} }: File): Json {
  return {
    id: `conformance-${id}`,
    name: `Conformance: ${id}`,
    description: 'One behaviour of the host.',
    version: '1.0.0',
    nodes,
    edges,
    // Without an id: files in use are written so.
    triggers: [{ type: 'manual' }],
    variables,
    metadata: { createdBy: 'openwop-conformance', tags: ['conformance'] },
    settings: { timeout: 0 },
    ...more,
  };
}

const delayPort = { delayMs: { type: 'variable', variableName: 'delayMs' } };
const delayed = (defaultValue: number): File => ({
  nodes: [node('wait', 'core.delay', { inputs: delayPort })],
  variables: [{ name: 'delayMs', type: 'number', required: true, defaultValue }],
});
const gate = (config: Json = {}): Json =>
  node('gate', 'core.approvalGate', {
    config: {
      title: 'Approve?',
      description: 'A person decides.',
      actions: ['accept', 'reject'],
      ...config,
    },
  });
const chainOf = (...ids: string[]): File => ({
  nodes: ids.map((id) => node(id, 'core.noop')),
  edges: ids.slice(1).map((id, index) => edge(ids[index] ?? '', id)),
});
const payload: File = {
  nodes: [
    node('echo', 'core.identity', {
      inputs: { payload: { type: 'variable', variableName: 'payload' } },
    }),
  ],
  variables: [{ name: 'payload', type: 'object', required: false }],
};

function servedFiles(): Record<(typeof SERVED)[number], Json> {
  return {
    noop: file('noop', { nodes: [node('noop', 'core.noop')], more: { version: '1.0' } }),
    identity: file('identity', payload),
    delay: file('delay', delayed(1_000)),
    cancellable: file('cancellable', delayed(30_000)),
    failure: file('failure', { nodes: [node('boom', 'core.fail')] }),
    'multi-node': file('multi-node', chainOf('a', 'b', 'c')),
    idempotent: file('idempotent', {
      nodes: [node('once', 'core.noop')],
      variables: [{ name: 'nonce', type: 'string', required: true }],
    }),
    'version-fold': file('version-fold', { nodes: [node('only', 'core.noop')] }),
    'configurable-schema': file('configurable-schema', {
      nodes: [node('only', 'core.noop')],
      more: {
        configurableSchema: {
          $schema: 'https://json-schema.org/draft/2020-12/schema',
          type: 'object',
          properties: {
            temperature: { type: 'number', minimum: 0, maximum: 2 },
            mode: { type: 'string' },
          },
          required: ['mode'],
          additionalProperties: false,
        },
      },
    }),
    'cap-breach': file('cap-breach', chainOf('n1', 'n2', 'n3', 'n4', 'n5', 'n6')),
    'run-duration-breach': file('run-duration-breach', {
      nodes: [node('long', 'core.delay', { config: { durationMs: 30_000 } })],
    }),
    'agent-reasoning': file('agent-reasoning', {
      nodes: [node('agent', 'core.conformance.mock-agent', { config: { mockReasoning: true } })],
    }),
    'orchestrator-dispatch': file('orchestrator-dispatch', {
      nodes: [node('lead', 'core.orchestrator.supervisor'), node('dispatch', 'core.dispatch')],
      edges: [edge('lead', 'dispatch'), edge('dispatch', 'lead')],
    }),
    'subworkflow-parent': file('subworkflow-parent', {
      nodes: [
        node('parent-start', 'core.start'),
        node('subwf-call', 'core.subWorkflow', {
          config: {
            workflowId: 'conformance-subworkflow-child',
            waitForCompletion: true,
            onChildFailure: 'fail-parent',
            outputMapping: { childOutcome: 'childResult' },
          },
        }),
        node('parent-end', 'core.end'),
      ],
      edges: [edge('parent-start', 'subwf-call'), edge('subwf-call', 'parent-end')],
      variables: [{ name: 'childOutcome', type: 'string', required: false }],
    }),
    'subworkflow-child': file('subworkflow-child', {
      nodes: [
        node('child-n1', 'core.setVariable', {
          config: { variableName: 'childResult', value: 'child-completed' },
        }),
        node('child-n2', 'core.noop'),
      ],
      edges: [edge('child-n1', 'child-n2')],
      variables: [{ name: 'childResult', type: 'string', required: false }],
    }),
    ...gateFiles(),
    'agent-identity': file('agent-identity', {
      ...payload,
      nodes: [
        node('agent', 'core.identity', {
          agent: {
            agentId: 'core.conformance.agent',
            name: 'Agent',
            modelClass: 'chat',
            version: '1.0.0',
          },
        }),
      ],
    }),
    'agent-memory-pin': file('agent-memory-pin', {
      nodes: [
        node('agent', 'core.noop', {
          agent: { agentId: 'core.conformance.agent', memoryRef: 'memory:tenant:agent' },
        }),
      ],
    }),
    'capability-missing': file('capability-missing', {
      nodes: [node('needs-it', 'conformance.requiresMissing')],
    }),
    ...channelFiles(),
  };
}

function channelFiles() {
  const talk = (config: Json) => node('talk', 'core.conversationGate', { config });
  const write = (id: string, value: string) =>
    node(id, 'core.channelWrite', {
      config: { channelName: 'events', reducer: 'append', ttlMs: 200, value },
    });
  const ids = ['write-a', 'write-b', 'write-c', 'pause', 'write-d'];
  return {
    'channel-ttl': file('channel-ttl', {
      nodes: [
        ...[write('write-a', 'a'), write('write-b', 'b'), write('write-c', 'c')],
        node('pause', 'core.delay', { config: { ms: 300 } }),
        write('write-d', 'd'),
      ],
      edges: ids.slice(1).map((id, at) => edge(ids[at] ?? '', id)),
    }),
    'conversation-lifecycle': file('conversation-lifecycle', {
      nodes: [talk({ lifecycle: 'open-exchange-close', mockAutoResume: true, turnCount: 2 })],
    }),
    conversation: file('conversation', {
      nodes: [talk({ prompt: 'Which colour?', outcomeSchema: { enum: ['red', 'blue'] } })],
    }),
    'message-reducer': file('message-reducer', {
      nodes: [node('agent', 'core.identity', { config: { emitDuplicateMessageId: true } })],
      more: { channels: { messages: { reducer: 'message', schema: { type: 'object' } } } },
    }),
  };
}

function gateFiles() {
  return {
    approval: file('approval', { nodes: [gate()] }),
    'approval-ask': file('approval-ask', {
      nodes: [gate({ actions: ['accept', 'reject', 'ask'] })],
    }),
    clarification: file('clarification', {
      nodes: [
        node('ask', 'core.clarificationGate', {
          config: { questions: [{ id: 'q1', question: 'Which colour?' }] },
        }),
      ],
    }),
    'interrupt-quorum': file('interrupt-quorum', {
      nodes: [
        gate({
          requiredApprovals: 3,
          rejectionPolicy: 'majority',
          approversList: ['approver-1', 'approver-2', 'approver-3'],
          profile: 'openwop-interrupt-quorum',
        }),
      ],
    }),
    'approval-timeout': file('approval-timeout', { nodes: [gate({ timeoutMs: 700 })] }),
    'approval-timeout-approve': file('approval-timeout-approve', {
      nodes: [gate({ timeoutMs: 700, onTimeout: 'approve' })],
    }),
    'approval-reject-routed': file('approval-reject-routed', {
      nodes: [gate(), node('on-reject', 'core.noop'), node('on-accept', 'core.noop')],
      edges: [
        edge('gate', 'on-reject', { triggerRule: 'any_failed' }),
        edge('gate', 'on-accept', { triggerRule: 'all_success' }),
      ],
    }),
  };
}

/** What this release cannot run to its documented end; none of it may enter `fixtures[]`. */
function leftOutFiles(): Record<string, Json> {
  const pinned = { agentId: 'core.conformance.agent', memoryRef: 'memory:tenant:agent' };
  return {
    'agent-memory-roundtrip': file('agent-memory-roundtrip', {
      nodes: [
        node('agent', 'core.identity', {
          agent: pinned,
          config: { memoryAction: 'write-then-read' },
        }),
      ],
    }),
    'agent-memory-ttl': file('agent-memory-ttl', {
      nodes: [
        node('agent', 'core.identity', {
          agent: pinned,
          inputs: { memoryAction: { type: 'static', value: 'ttl-probe' } },
        }),
      ],
    }),
    'agent-channel-dispatch': file('agent-channel-dispatch', {
      nodes: [
        node('agent', 'core.identity', {
          agent: { agentId: 'core.conformance.agent', channel: 'stable' },
        }),
      ],
    }),
    'agent-pack-install': file('agent-pack-install', {
      nodes: [node('agent', 'core.identity')],
      more: { metadata: { requiresInstalledPack: 'core.conformance.pack' } },
    }),
    'agent-pack-handoff-schema-validation': file('agent-pack-handoff-schema-validation', {
      nodes: [node('agent', 'core.identity')],
      more: { metadata: { requiresAgentId: 'core.conformance.pack.agent' } },
    }),
    'interrupt-external-event': file('interrupt-external-event', {
      nodes: [node('wait-for-external', 'core.interrupt', { config: { kind: 'external-event' } })],
    }),
    'stream-text': file('stream-text', {
      nodes: [node('call', 'core.ai.callPrompt', { config: { promptId: 'p' } })],
    }),
  };
}

const SERVED_FILES = servedFiles();

/** The file of a served id, as parsed. */
export function definitionFile(id: (typeof SERVED)[number]): Json {
  return SERVED_FILES[id];
}

/** A folder with all of them, a file that is not JSON, one that is no definition, and a folder inside. */
export async function writeFixtures(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'openwop-acceptance-'));
  const files = { ...SERVED_FILES, ...leftOutFiles() };
  for (const [id, json] of Object.entries(files))
    await writeFile(join(folder, `conformance-${id}.json`), JSON.stringify(json, null, 2));
  await writeFile(join(folder, 'broken.json'), '{"id": ');
  await writeFile(join(folder, 'other.json'), '{"name":"not a workflow"}');
  await mkdir(join(folder, 'packs'));
  const inner = file('inner', { nodes: [node('a', 'core.noop')] });
  await writeFile(join(folder, 'packs', 'inner.json'), JSON.stringify(inner));
  return folder;
}
