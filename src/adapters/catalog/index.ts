// What this process can run: definitions and agents, built in and from the operator's folders, validated at start
// (conformance/fixtures.md, RFC 0003). A bad file is skipped with one line that says where it is wrong; never a crash.
import { basename, join } from 'node:path';
import { LACKING, nodeTypesOf } from '../../rules/capabilities.ts';
import { agentNamed } from '../../rules/children.ts';
import { handoffNamed } from '../../rules/handoffs.ts';
import { isAgentToolId } from '../../rules/ids.ts';
import { canonicalJson } from '../../rules/json.ts';
import type { Catalog, CatalogAgent, CatalogFault, ResolvedAgent } from '../../ports/catalog.ts';
import type { ContentStore } from '../../ports/content.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Tools } from '../../ports/tools.ts';
import { checkDefinition } from '../../wire/load-definition.ts';
import type { AgentManifest, WorkflowDefinition } from '../../../schemas/types.generated.ts';
import { filesIn, isFileProblem, readJsonFile } from './files.ts';
import { agentFaults, resolveManifest, type ManifestFault } from './manifests.ts';

/** Faults of one file that its log line names, and that are kept of it; and those that are kept of all. */
const FILE_FAULTS = 5;
const KEPT_FAULTS = 100;
const MANIFEST_ENDING = '.agent.json';
const SCRIPT_ENDING = '.script.json';

export interface CatalogOptions {
  /** Every *.json directly in it is a workflow definition. */
  readonly fixturesDir?: string;
  /** Every *.agent.json directly in it is a manifest; `<name>.script.json` beside it plays it without a model. */
  readonly agentsDir?: string;
  readonly builtIn: {
    readonly definitions: readonly WorkflowDefinition[];
    readonly agents: readonly ResolvedAgent[];
  };
  readonly content: Pick<ContentStore, 'put'>;
  readonly tenant: string;
  readonly tools: Pick<Tools, 'list'>;
  /** Discovery keys that a manifest's requiresCapabilities may name; others make the agent degraded. */
  readonly capabilities?: ReadonlySet<string>;
  /** Registers the node types of tests. */
  readonly testMode?: boolean;
  readonly logger: Logger;
}

export interface LoadedCatalog extends Catalog {
  /** Scripts found beside manifests, by agentId: JSON as read, for the provider `scripted` to check. */
  readonly scripts: ReadonlyMap<string, unknown>;
  /** Stores the manifests once more: what is there already stays. Throws what the content store throws. */
  store(): Promise<void>;
}

/** What is loaded, and what was left out. */
interface Loading extends CatalogOptions {
  readonly faults: CatalogFault[];
  /** As they are stored. */
  readonly manifests: Uint8Array[];
}

/** Loads once; folders are not watched. Throws what the content store throws, nothing for bad files. */
export async function loadCatalog(given: CatalogOptions): Promise<LoadedCatalog> {
  const options: Loading = { ...given, faults: [], manifests: [] };
  const { builtIn, tenant, faults, manifests, content } = options;
  const scripts = new Map<string, unknown>();
  const agents = new Map<string, CatalogAgent>();
  for (const agent of builtIn.agents)
    await addAgent(agents, agent, { source: 'built in', options });
  for (const { agent, source, script } of await folderAgents(options)) {
    const added = await addAgent(agents, agent, { source, options });
    if (added && script !== undefined) scripts.set(agent.manifest.agentId, script);
  }
  const definitions = new Map<string, WorkflowDefinition>();
  for (const definition of builtIn.definitions)
    addDefinition(definitions, definition, { source: 'built in', agents, options });
  const fixtures: string[] = [];
  for (const { json, source } of await folderDefinitions(options)) {
    const id = addDefinition(definitions, json, { source, agents, options });
    if (id !== undefined) fixtures.push(id);
  }
  const store = async (): Promise<void> => {
    for (const bytes of manifests) await content.put({ tenant }, bytes);
  };
  return { ...catalogOf({ tenant, definitions, agents, fixtures, faults }), scripts, store };
}

function catalogOf(loaded: {
  tenant: string;
  definitions: ReadonlyMap<string, WorkflowDefinition>;
  agents: ReadonlyMap<string, CatalogAgent>;
  fixtures: readonly string[];
  faults: readonly CatalogFault[];
}): Catalog {
  const { tenant, definitions, fixtures } = loaded;
  const faults = loaded.faults.slice(0, KEPT_FAULTS);
  const more = loaded.faults.length - faults.length;
  const sorted = [...loaded.agents.values()].sort((a, b) =>
    a.manifest.agentId < b.manifest.agentId ? -1 : 1,
  );
  return {
    definition: (asking, workflowId) =>
      asking === tenant ? definitions.get(workflowId) : undefined,
    definitions: (asking) => (asking === tenant ? [...definitions.values()] : []),
    agent: (asking, agentId) => (asking === tenant ? loaded.agents.get(agentId) : undefined),
    agents: (asking) => (asking === tenant ? sorted : []),
    faults: (asking) => (asking === tenant ? { faults, more } : { faults: [], more: 0 }),
    fixtures: () => fixtures,
  };
}

interface Origin {
  /** File, or `built in`: what a log line names. */
  readonly source: string;
  readonly options: Loading;
}

async function addAgent(
  agents: Map<string, CatalogAgent>,
  agent: ResolvedAgent,
  origin: Origin,
): Promise<boolean> {
  const { options, source } = origin;
  const { manifests, content, tenant, tools, logger, capabilities = new Set() } = options;
  const { manifest } = agent;
  const { agentId, modelClass, toolAllowlist = [], requiresCapabilities = [] } = manifest;
  const faults = agents.has(agentId)
    ? [{ pointer: '/agentId', message: `"${agentId}" is already loaded` }]
    : agentFaults(agent);
  if (faults.length > 0) {
    skipped(options, { what: 'agent', source }, faults);
    return false;
  }
  const registered = new Set(tools.list(tenant).map(({ toolId }) => toolId));
  const degraded = [
    // A tool of an agent process comes and goes, and an agent may be loaded later: absence now says nothing.
    ...toolAllowlist.filter((toolId) => !registered.has(toolId) && !isElsewhere(toolId)),
    ...requiresCapabilities.filter((capability) => !capabilities.has(capability)),
    ...unboundMemory(manifest),
  ];
  if (degraded.length > 0) logger.warn(`agent ${agentId} is degraded`, { degraded });
  const bytes = new TextEncoder().encode(canonicalJson(agent));
  const manifestHash = await content.put({ tenant }, bytes);
  manifests.push(bytes);
  const threshold = manifest.confidence?.defaultThreshold;
  const pinned = {
    ...{ agentId, manifestHash, modelClass, toolAllowlist },
    ...(threshold === undefined ? {} : { confidenceThreshold: threshold }),
  };
  agents.set(agentId, {
    manifest,
    packName: agent.packName,
    packVersion: agent.packVersion,
    pinned,
    ...(agent.taskSchema ? { taskSchema: agent.taskSchema } : {}),
    degraded,
  });
  return true;
}

function isElsewhere(toolId: string): boolean {
  return (
    [agentNamed, handoffNamed].some((named) => named(toolId) !== undefined) || isAgentToolId(toolId)
  );
}

/** Memory that this host does not offer: an agent that wants it runs without. */
function unboundMemory({ memoryShape }: AgentManifest): string[] {
  const asked: Readonly<Record<string, boolean | undefined>> = { ...memoryShape };
  return [...LACKING.memoryShape].flatMap(([name, capability]) =>
    asked[name] ? [capability] : [],
  );
}

/** Returns the id when the definition is in. */
function addDefinition(
  definitions: Map<string, WorkflowDefinition>,
  json: unknown,
  origin: Origin & { agents: ReadonlyMap<string, CatalogAgent> },
): string | undefined {
  const { options, source } = origin;
  const { logger, testMode = false } = options;
  const checked = checkDefinition(json, {
    nodeTypes: nodeTypesOf({ testMode }),
    agents: (agentId) => origin.agents.has(agentId),
    testMode,
  });
  if (!checked.ok) {
    skipped(options, { what: 'workflow', source }, checked.faults);
    return undefined;
  }
  const { definition } = checked;
  if (definitions.has(definition.id)) {
    const fault = { pointer: '/id', message: `"${definition.id}" is already loaded` };
    skipped(options, { what: 'workflow', source }, [fault]);
    return undefined;
  }
  for (const { id, agent } of definition.nodes) {
    const [sharing = ''] = agent?.agentSharing?.split(':') ?? [];
    if (LACKING.agentSharing.has(sharing))
      logger.warn(
        `workflow definition of ${source}: node "${id}" asks for a shared context; each node has its own`,
      );
  }
  definitions.set(definition.id, definition);
  return definition.id;
}

/** How log lines call it. */
const CALLED = { workflow: 'workflow definition', agent: 'agent' } as const;

/** Told in the log, and kept for who asks later. */
function skipped(
  { logger, faults: kept }: Loading,
  { what, source }: { readonly what: keyof typeof CALLED; readonly source: string },
  faults: readonly ManifestFault[],
): void {
  const first = faults.slice(0, FILE_FAULTS);
  for (const { pointer, message } of first) kept.push({ what, source, pointer, message });
  const named = first.map(({ pointer, message }) => `${pointer || '/'} ${message}`);
  const more = faults.length > FILE_FAULTS ? ` (and ${faults.length - FILE_FAULTS} more)` : '';
  logger.warn(`${CALLED[what]} of ${source} skipped: ${named.join('; ')}${more}`);
}

async function folderDefinitions(options: Loading): Promise<{ json: unknown; source: string }[]> {
  const { fixturesDir, logger } = options;
  if (fixturesDir === undefined) return [];
  const names = await namesIn(fixturesDir, '.json', options);
  const found = await Promise.all(
    names.map(async (name) => ({
      source: name,
      json: await jsonOf(join(fixturesDir, name), 'workflow', options),
    })),
  );
  logger.info(`workflow definitions in ${fixturesDir}: ${names.length} files`);
  return found.filter(({ json }) => json !== undefined);
}

async function folderAgents(
  options: Loading,
): Promise<{ agent: ResolvedAgent; source: string; script: unknown }[]> {
  const { agentsDir, logger } = options;
  if (agentsDir === undefined) return [];
  const names = await namesIn(agentsDir, MANIFEST_ENDING, options);
  const scripts = new Set(await namesIn(agentsDir, SCRIPT_ENDING, options));
  const found: { agent: ResolvedAgent; source: string; script: unknown }[] = [];
  for (const name of names) {
    const json = await jsonOf(join(agentsDir, name), 'agent', options);
    if (json === undefined) continue;
    const resolved = await resolveManifest(json, agentsDir);
    if (!resolved.ok) {
      skipped(options, { what: 'agent', source: name }, resolved.faults);
      continue;
    }
    const script = `${basename(name, MANIFEST_ENDING)}${SCRIPT_ENDING}`;
    found.push({
      agent: resolved.agent,
      source: name,
      script: scripts.has(script)
        ? await jsonOf(join(agentsDir, script), 'script', options)
        : undefined,
    });
  }
  logger.info(`agent manifests in ${agentsDir}: ${names.length} files`);
  return found;
}

/** An unreadable folder is told loudly and counts as empty. */
async function namesIn(
  folder: string,
  ending: string,
  { logger, faults }: Loading,
): Promise<readonly string[]> {
  try {
    return await filesIn(folder, ending);
  } catch (error) {
    if (!faults.some(({ source }) => source === folder))
      faults.push({ what: 'folder', source: folder, pointer: '', message: 'cannot be read' });
    logger.error(`the folder ${folder} cannot be read: nothing of it is loaded`, {
      reason: (error as Error).message,
    });
    return [];
  }
}

async function jsonOf(
  path: string,
  what: CatalogFault['what'],
  { logger, faults }: Loading,
): Promise<unknown> {
  try {
    return await readJsonFile(path);
  } catch (error) {
    if (!isFileProblem(error)) throw error;
    const { pointer, message } = error;
    faults.push({ what, source: basename(path), pointer, message });
    logger.warn(`${basename(path)} skipped: ${error.words}`);
    return undefined;
  }
}
