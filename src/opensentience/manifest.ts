// The operator's word on agents (seed 004 §4.1.1, §4.3.1; architecture §5): `<folder>/*/opensentience.agent.json` says
// which agents may connect, how they are started, and what their tools may do. A fault costs that manifest, never Core.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { AgentPermission, AgentTool } from '../ports/agents.ts';
import type { Logger } from '../ports/logger.ts';
import type { OpensentienceAgent, OpensentienceToolPolicy } from '../../schemas/types.generated.ts';
import { fileText } from '../rules/file-text.ts';
import { readJson } from '../rules/json-text.ts';
import { schemaDocument, validate } from '../wire/validators.ts';
import { MAX_TOOL_INPUT_BYTES, MAX_TOOL_OUTPUT_BYTES } from './limits.ts';
import type { DeclaredTool } from './messages.ts';

export const MANIFEST_FILE = 'opensentience.agent.json';
/** Largest manifest that is read, in bytes. */
export const MANIFEST_BYTES = 256 * 1024;
/** Agents of one Core; folders above it are not read. */
const MAX_AGENTS = 256;
/** Faults of one manifest that are logged. */
const MAX_LOGGED_FAULTS = 10;
/** Where the manifest does not say: a call's time, and its wait for a process that has the agent. */
export const DEFAULT_TOOL_TIMEOUT_MS = 60_000;
export const DEFAULT_TOOL_WAIT_MS = 3_600_000;

const KNOWN_MEMBERS = new Set(
  Object.keys(schemaDocument('opensentience-agent').properties as object),
);

/** A manifest in use. */
export interface AgentFolder {
  readonly manifest: OpensentienceAgent;
  /** Absolute; working directory of the agent's process. */
  readonly folder: string;
  /** `sha256:<hex>` of the file's bytes, compared with hello.manifest_hash. */
  readonly hash: string;
}

/** By agent id, in order of folder names. What cannot be used is logged, a line per fault, and left out. */
export async function readAgentFolders(
  folder: string,
  logger: Logger,
): Promise<ReadonlyMap<string, AgentFolder>> {
  const found = new Map<string, AgentFolder>();
  for (const name of await foldersIn(folder, logger)) {
    const agent = await readAgentFolder(resolve(folder, name), logger);
    if (!agent) continue;
    const first = found.get(agent.manifest.id);
    if (first)
      refuse(logger, join(agent.folder, MANIFEST_FILE), {
        pointer: '/id',
        message: `is the id of ${join(first.folder, MANIFEST_FILE)} already`,
      });
    else found.set(agent.manifest.id, agent);
  }
  return found;
}

async function foldersIn(folder: string, logger: Logger): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const names = entries
      .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      .map((entry) => entry.name)
      .sort();
    if (names.length > MAX_AGENTS)
      logger.warn('more agent folders than permitted: the rest is not read', {
        folder,
        permitted: MAX_AGENTS,
      });
    return names.slice(0, MAX_AGENTS);
  } catch (error) {
    logger.warn('the folder of agents cannot be read', { folder, code: systemCode(error) });
    return [];
  }
}

/** Undefined when there is no manifest in the folder, or none that can be used. */
async function readAgentFolder(folder: string, logger: Logger): Promise<AgentFolder | undefined> {
  const file = join(folder, MANIFEST_FILE);
  let bytes: Buffer;
  try {
    bytes = await readBounded(file);
  } catch (error) {
    const code = systemCode(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR')
      refuse(logger, file, { pointer: '', message: `cannot be read (${code})` });
    return undefined;
  }
  const checked = checkManifest(bytes);
  if (!checked.ok) {
    for (const fault of checked.errors.slice(0, MAX_LOGGED_FAULTS)) refuse(logger, file, fault);
    return undefined;
  }
  const hash = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const ignored = Object.keys(checked.value).filter((name) => !KNOWN_MEMBERS.has(name));
  if (ignored.length > 0)
    logger.warn(`agent manifest: ${file} has members that mean nothing`, { ignored });
  const launch = await launchOf(checked.value, folder);
  return { manifest: { ...checked.value, ...(launch ? { launch } : {}) }, folder, hash };
}

/** The operator's word, else the agent's own entry point: never by a shell. */
async function launchOf(
  { launch, entrypoint }: OpensentienceAgent,
  folder: string,
): Promise<OpensentienceAgent['launch']> {
  if (launch || !entrypoint) return launch;
  const { type, value } = entrypoint;
  if (type === 'mix_task') return { command: 'mix', args: [value] };
  const words = (await isFile(resolve(folder, value))) ? [value] : value.trim().split(/\s+/);
  const [command = value, ...args] = words;
  const isHere = !command.includes('/') && (await isFile(resolve(folder, command)));
  return { command: isHere ? `./${command}` : command, args };
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() ?? false;
}

/** At most one byte more than permitted. Does not wait for who writes into a pipe: that is no file. */
async function readBounded(file: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw Object.assign(new Error(), { code: 'no file' });
    const buffer = Buffer.alloc(MANIFEST_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.length) return buffer.subarray(0, length);
    }
  } finally {
    await handle.close();
  }
}

/** What the bytes of a manifest file say, or what is wrong with them. */
export function checkManifest(bytes: Uint8Array): ReturnType<typeof validate.opensentienceAgent> {
  const fault = (message: string) => ({ ok: false, errors: [{ pointer: '', message }] }) as const;
  if (bytes.length > MANIFEST_BYTES) return fault(`is larger than ${MANIFEST_BYTES} bytes`);
  const said = fileText(bytes);
  if (!said.ok) return fault(said.message);
  const read = readJson(said.text);
  if (read.ok) return validate.opensentienceAgent(read.value);
  return read.isJson ? { ok: false, errors: [read.fault] } : fault('is not JSON');
}

function refuse(logger: Logger, file: string, fault: { pointer: string; message: string }): void {
  logger.warn(`agent manifest not used: ${file} ${fault.pointer || '/'} ${fault.message}`, {
    file,
    pointer: fault.pointer,
  });
}

function systemCode(error: unknown): string {
  return (error as { code?: string } | null)?.code ?? 'unknown';
}

/**
 * What the agent asks for. Of files, network and processes the host bounds nothing, so it enforces no permission: what
 * the operator has not acknowledged, letter for letter, is refused.
 */
export function permissionsOf({
  permissions = [],
  policy,
}: OpensentienceAgent): readonly AgentPermission[] {
  const acknowledged = new Set(policy?.acknowledgedPermissions);
  return [...new Set(permissions)].map((permission) => ({
    permission,
    state: acknowledged.has(permission) ? 'acknowledged' : 'refused',
  }));
}

/** It asks for a permission that the operator has not acknowledged: it is neither started nor let in. */
export function isRefused(manifest: OpensentienceAgent): boolean {
  return permissionsOf(manifest).some(({ state }) => state === 'refused');
}

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;
type Word = keyof typeof STRICTNESS;
const APPROVAL = { allow: 'none', ask: 'ask', deny: 'deny' } as const;

type OperatorFields = Pick<
  AgentTool,
  'approval' | 'timeoutMs' | 'waitMs' | 'maxInputBytes' | 'maxOutputBytes'
>;

/** The operator's own line on a tool. */
function ownPolicy(
  { policy }: OpensentienceAgent,
  { name }: DeclaredTool,
): OpensentienceToolPolicy {
  const tools = policy?.tools ?? {};
  return Object.hasOwn(tools, name) ? (tools[name] ?? {}) : {};
}

/** By the operator's word, else the tool's; a tool of which neither says anything has effects. */
function hasSideEffects(manifest: OpensentienceAgent, tool: DeclaredTool): boolean {
  return ownPolicy(manifest, tool).sideEffects ?? tool.side_effects ?? true;
}

/** The operator's word on repeats stands in for what the tool declares. */
function capabilitiesOf(
  manifest: OpensentienceAgent,
  tool: DeclaredTool,
): AgentTool['capabilities'] {
  const { capabilities = [] } = tool;
  const { idempotent } = ownPolicy(manifest, tool);
  if (idempotent === undefined) return capabilities;
  const others = capabilities.filter((capability) => capability !== 'idempotency');
  return idempotent ? [...others, 'idempotency'] : others;
}

/** What the operator permits a tool: its own line in the manifest, else the strictest rule that it falls under. */
export function toolPolicy(manifest: OpensentienceAgent, tool: DeclaredTool): OperatorFields {
  const { sideEffects = 'ask', directives = 'ask' } = manifest.policy ?? {};
  const own = ownPolicy(manifest, tool);
  const rules: Word[] = [
    'allow',
    ...(hasSideEffects(manifest, tool) ? [sideEffects] : []),
    ...(tool.requires_directive ? [directives] : []),
  ];
  const strictest = rules.reduce((a, b) => (STRICTNESS[b] > STRICTNESS[a] ? b : a));
  return {
    approval: APPROVAL[own.approval ?? strictest],
    timeoutMs: own.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS,
    waitMs: own.waitMs ?? DEFAULT_TOOL_WAIT_MS,
    maxInputBytes: own.maxInputBytes ?? MAX_TOOL_INPUT_BYTES,
    maxOutputBytes: own.maxOutputBytes ?? MAX_TOOL_OUTPUT_BYTES,
  };
}

/** A declared tool as runs see it. */
export function agentToolOf(manifest: OpensentienceAgent, tool: DeclaredTool): AgentTool {
  return {
    toolId: tool.tool_id,
    agentId: manifest.id,
    name: tool.name,
    description: tool.description,
    inputSchema: tool.input_schema,
    ...(tool.output_schema ? { outputSchema: tool.output_schema } : {}),
    capabilities: capabilitiesOf(manifest, tool),
    sideEffects: hasSideEffects(manifest, tool),
    requiresDirective: tool.requires_directive ?? false,
    tags: tool.tags ?? [],
    ...toolPolicy(manifest, tool),
  };
}
