// Written by `npm run generate` from schemas/. Do not edit.
export type AgentManifest = {
  agentId: string;
  persona: string;
  modelClass: 'reasoning' | 'writing' | 'coding' | 'research' | 'classification' | 'general';
  systemPrompt?: string;
  systemPromptRef?: string;
  evalSuiteRef?: string;
  role?: 'skill' | 'assistant';
  toolAllowlist?: string[];
  requiresCapabilities?: string[];
  memoryShape?: {
    scratchpad?: boolean;
    conversation?: boolean;
    longTerm?: boolean;
  };
  confidence?: {
    defaultThreshold?: number;
  };
  handoff?: {
    taskSchemaRef?: string;
    returnSchemaRef?: string;
  };
  label?: string;
  description?: string;
  promptLibraryRef?: string;
  promptOverrides?: {
    system?: unknown;
    user?: unknown;
    'few-shot'?: unknown;
    'schema-hint'?: unknown;
  };
} & {
  [k: string]: unknown;
};

export interface AgentRef {
  agentId: string;
  name?: string;
  modelClass?:
    | 'reasoning'
    | 'tool-using'
    | 'chat'
    | 'code'
    | 'vision'
    | 'multimodal'
    | 'embedding'
    | 'classification'
    | 'retrieval';
  memoryRef?: string;
  version?: string;
  channel?: string;
  sourceManifestId?: string;
}

export interface ErrorEnvelope {
  error: string;
  message: string;
  details?: {
    [k: string]: unknown;
  };
}

export interface RunEventDoc {
  eventId: string;
  runId: string;
  type: string;
  payload: unknown;
  timestamp: string;
  sequence: number;
  nodeId?: string;
  causationId?: string;
  schemaVersion?: number;
  engineVersion?: string;
  [k: string]: unknown;
}

export interface RunSnapshot {
  runId: string;
  workflowId: string;
  status:
    | 'pending'
    | 'running'
    | 'paused'
    | 'waiting-approval'
    | 'waiting-input'
    | 'waiting-external'
    | 'cancelling'
    | 'completed'
    | 'failed'
    | 'cancelled';
  owner?: {
    tenant: string;
    workspace?: string;
    principal?: string;
    principalKind?: string;
  };
  currentNodeId?: string;
  startedAt?: string;
  completedAt?: string;
  endedAt?: string;
  parentRunId?: string;
  parentNodeId?: string;
  agent?: AgentRef;
  runOrchestrator?: AgentRef1;
  nodeStates?: {
    [k: string]: unknown;
  };
  variables?: {
    [k: string]: unknown;
  };
  channels?: {
    [k: string]: unknown;
  };
  inputs?: {
    [k: string]: unknown;
  };
  error?: {
    code: string;
    message: string;
    details?: {
      [k: string]: unknown;
    };
  };
  eventLogSchemaVersion?: number;
  tags?: string[];
  metadata?: {
    [k: string]: unknown;
  };
  configurable?: {
    [k: string]: unknown;
  };
  interrupt?: {
    [k: string]: unknown;
  };
  metrics?: {
    openwopCost?: {
      [k: string]: unknown;
    };
    [k: string]: unknown;
  };
  outputs?: {
    [k: string]: unknown;
  };
  [k: string]: unknown;
}
export interface AgentRef1 {
  agentId: string;
  name?: string;
  modelClass?:
    | 'reasoning'
    | 'tool-using'
    | 'chat'
    | 'code'
    | 'vision'
    | 'multimodal'
    | 'embedding'
    | 'classification'
    | 'retrieval';
  memoryRef?: string;
  version?: string;
  channel?: string;
  sourceManifestId?: string;
}

export type PortValue =
  | {
      type: 'static';
      value: unknown;
    }
  | {
      type: 'expression';
      expression: string;
    }
  | {
      type: 'connection';
      nodeId: string;
      outputKey: string;
      optional?: boolean;
    }
  | {
      type: 'variable';
      variableName: string;
      optional?: boolean;
    };

export interface WorkflowDefinition {
  id: string;
  name: string;
  version: string;
  /**
   * @minItems 1
   */
  nodes: [WorkflowNode, ...WorkflowNode[]];
  edges: WorkflowEdge[];
  triggers: WorkflowTrigger[];
  variables: WorkflowVariable[];
  metadata: {
    [k: string]: unknown;
  };
  settings: {
    timeout?: number;
    maxRetries?: number;
    logLevel?: 'debug' | 'info' | 'warn' | 'error';
    maxLoopbackIterations?: number;
    [k: string]: unknown;
  };
  description?: string;
  type?: string;
  isActive?: boolean;
  status?: 'active' | 'inactive' | 'draft' | 'archived';
  tenantId?: string;
  scopeId?: string;
  slug?: string;
  groups?: NodeGroup[];
  channels?: {
    [k: string]: ChannelDeclaration;
  };
  configurableSchema?: {
    [k: string]: unknown;
  };
  defaults?: {
    [k: string]: unknown;
  };
  acceptsInheritedArtifacts?: {
    [k: string]: unknown;
  }[];
  createdAt?: string;
  updatedAt?: string;
}
export interface WorkflowNode {
  id: string;
  typeId: string;
  name: string;
  position: {
    x: number;
    y: number;
  };
  config: {
    [k: string]: unknown;
  };
  inputs: {
    [k: string]: PortValue;
  };
  credentialsRef?: string;
  settings?: {
    [k: string]: unknown;
  };
  outputRole?: 'primary' | 'secondary';
  disabled?: boolean;
  notes?: string;
  groupId?: string;
  agent?: AgentRef;
  envelopeContract?: {
    [k: string]: unknown;
  };
  artifactType?: string;
  cardType?: string;
  outputSensitivity?: {
    [k: string]: boolean;
  };
}
export interface WorkflowEdge {
  id: string;
  sourceNodeId: string;
  targetNodeId: string;
  sourceOutput?: string;
  targetInput?: string;
  label?: string;
  condition?: EdgeCondition;
  triggerRule?: 'all_success' | 'any_success' | 'all_complete' | 'none_failed' | 'any_failed';
}
export interface EdgeCondition {
  type: 'expression' | 'equals' | 'notEquals' | 'contains' | 'regex' | 'truthy' | 'falsy';
  left?: string;
  /**
   * Compared as JSON; for regex the pattern.
   */
  right?: {
    [k: string]: unknown;
  };
  expression?: string;
}
export interface WorkflowTrigger {
  id: string;
  type:
    | 'manual'
    | 'schedule'
    | 'webhook'
    | 'event'
    | 'artifact'
    | 'canvas'
    | 'envelope'
    | 'command'
    | 'chat-message'
    | 'channel-write';
  name?: string;
  description?: string;
  config?: {
    [k: string]: unknown;
  };
  enabled?: boolean;
  nodeId?: string;
  eventType?: string;
}
export interface WorkflowVariable {
  name: string;
  type: 'string' | 'number' | 'boolean' | 'object' | 'array';
  description?: string;
  required?: boolean;
  defaultValue?: unknown;
  sensitive?: boolean;
  format?: string;
}
export interface NodeGroup {
  id: string;
  name: string;
  color?: string;
  collapsed?: boolean;
  nodeIds: string[];
  position?: {
    x: number;
    y: number;
  };
  size?: {
    [k: string]: unknown;
  };
}
export interface ChannelDeclaration {
  reducer: string;
  schema?: {
    [k: string]: unknown;
  };
  default?: unknown;
  maxSize?: number;
  ttlMs?: number;
  options?: {
    [k: string]: unknown;
  };
  access?: unknown;
  schemaVersion?: number;
  compatibleWith?: number[];
  sensitive?: boolean;
}
