// What can be run: definitions and agents (architecture §5).
import type { AgentManifest, WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { JsonObject } from '../rules/json.ts';
import type { PinnedAgent } from '../rules/run-input.ts';

export interface CatalogAgent {
  readonly manifest: AgentManifest;
  readonly packName: string;
  readonly packVersion: string;
  readonly pinned: PinnedAgent;
  /** What a task of it must match. */
  readonly taskSchema?: JsonObject;
  readonly degraded: readonly string[];
}

/** Everything of an agent that activities need, stored as content under `pinned.manifestHash` (JSON). */
export interface ResolvedAgent {
  readonly manifest: AgentManifest;
  readonly packName: string;
  readonly packVersion: string;
  readonly systemPrompt: string;
  readonly taskSchema?: JsonObject;
  readonly returnSchema?: JsonObject;
}

/** Something that loading left out, and why. */
export interface CatalogFault {
  readonly what: 'workflow' | 'agent' | 'script' | 'folder';
  /** Name of the file without its folder, of the folder as it was given, or `built in`. */
  readonly source: string;
  /** JSON pointer into the file; '' is the whole. */
  readonly pointer: string;
  readonly message: string;
}

/** Definitions and agents of this process, loaded and validated at start. */
export interface Catalog {
  definition(tenant: string, workflowId: string): WorkflowDefinition | undefined;
  definitions(tenant: string): readonly WorkflowDefinition[];
  agent(tenant: string, agentId: string): CatalogAgent | undefined;
  /** Sorted by agentId. */
  agents(tenant: string): readonly CatalogAgent[];
  /**
   * What loading left out, in its order, and how many more there are than are kept. A file names no tenant: it was to be
   * loaded for the tenant of the catalog, which could read it by the API had it been right.
   */
  faults(tenant: string): { readonly faults: readonly CatalogFault[]; readonly more: number };
  /** Ids of definitions that came from OPENWOP_FIXTURES_DIR. */
  fixtures(): readonly string[];
}
