// One agent manifest with everything that it refers to (RFC 0003): prompt and schemas are read and
// compiled when it is loaded, so that a run never meets a missing one.
import type { JsonObject } from '../../rules/json.ts';
import type { ResolvedAgent } from '../../ports/catalog.ts';
import type { AgentManifest } from '../../../schemas/types.generated.ts';
import { compileUserSchema } from '../../wire/user-schema.ts';
import { validate } from '../../wire/validators.ts';
import { FileProblem, insideFolder, isFileProblem, readJsonFile, readText } from './files.ts';

export interface ManifestFault {
  /** JSON pointer into the manifest. */
  readonly pointer: string;
  readonly message: string;
}

export type ManifestOutcome =
  | { readonly ok: true; readonly agent: ResolvedAgent }
  | { readonly ok: false; readonly faults: readonly ManifestFault[] };

/** Version of agents that come from a folder and not from a versioned pack. */
const UNPACKED_VERSION = '0.0.0';

/** Resolves the references of a manifest against its folder. */
export async function resolveManifest(json: unknown, folder: string): Promise<ManifestOutcome> {
  const checked = validate.manifest(json);
  if (!checked.ok) return { ok: false, faults: checked.errors };
  const manifest = checked.value;
  const faults: ManifestFault[] = [...roleFaults(manifest)];
  const attempt = async <Value>(
    pointer: string,
    load: () => Promise<Value>,
  ): Promise<Value | undefined> => {
    try {
      return await load();
    } catch (error) {
      if (!isFileProblem(error)) throw error;
      faults.push({ pointer, message: error.message });
      return undefined;
    }
  };
  const { systemPromptRef, evalSuiteRef, handoff } = manifest;
  const systemPrompt = await attempt('/systemPromptRef', async () =>
    systemPromptRef === undefined ? manifest.systemPrompt : promptFile(folder, systemPromptRef),
  );
  const taskSchema = await attempt('/handoff/taskSchemaRef', async () =>
    schemaFile(folder, handoff?.taskSchemaRef),
  );
  const returnSchema = await attempt('/handoff/returnSchemaRef', async () =>
    schemaFile(folder, handoff?.returnSchemaRef),
  );
  await attempt('/evalSuiteRef', async () =>
    evalSuiteRef === undefined ? '' : insideFolder(folder, evalSuiteRef),
  );
  if (faults.length > 0 || systemPrompt === undefined) return { ok: false, faults };
  return {
    ok: true,
    agent: {
      manifest,
      packName: manifest.agentId.split('.').slice(0, -1).join('.'),
      packVersion: UNPACKED_VERSION,
      systemPrompt,
      ...(taskSchema ? { taskSchema } : {}),
      ...(returnSchema ? { returnSchema } : {}),
    },
  };
}

/** What holds for every agent, from a folder or built in: RFC 0131 roles, and schemas that compile. */
export function agentFaults(agent: ResolvedAgent): ManifestFault[] {
  const checked = validate.manifest(agent.manifest);
  return [
    ...(checked.ok ? [] : checked.errors),
    ...roleFaults(agent.manifest),
    ...schemaFaults('/handoff/taskSchemaRef', agent.taskSchema),
    ...schemaFaults('/handoff/returnSchemaRef', agent.returnSchema),
  ];
}

function schemaFaults(pointer: string, schema: JsonObject | undefined): ManifestFault[] {
  const compiled = schema === undefined ? undefined : compileUserSchema(schema);
  if (!compiled || compiled.ok) return [];
  return compiled.errors.map((error) => ({
    pointer,
    message: `schema ${error.pointer}: ${error.message}`,
  }));
}

/** A skill takes a task and keeps nothing (RFC 0131): anything else is malformed, not degraded. */
function roleFaults({ role, handoff, memoryShape }: AgentManifest): ManifestFault[] {
  if (role !== 'skill') return [];
  return [
    ...(handoff ? [] : [{ pointer: '/handoff', message: 'a skill must have it' }]),
    ...(['conversation', 'longTerm'] as const)
      .filter((dimension) => memoryShape?.[dimension])
      .map((dimension) => ({
        pointer: `/memoryShape/${dimension}`,
        message: 'a skill must not have it',
      })),
  ];
}

async function promptFile(folder: string, reference: string): Promise<string> {
  const path = await insideFolder(folder, reference);
  const text = await readText(path).catch((error: unknown) => refer(reference, error));
  if (text.trim() === '') throw new FileProblem(`"${reference}" is empty`);
  return text;
}

async function schemaFile(
  folder: string,
  reference: string | undefined,
): Promise<JsonObject | undefined> {
  if (reference === undefined) return undefined;
  const path = await insideFolder(folder, reference);
  const schema = await readJsonFile(path).catch((error: unknown) => refer(reference, error));
  const compiled = compileUserSchema(schema);
  if (!compiled.ok) {
    const [{ pointer, message }] = compiled.errors;
    throw new FileProblem(`"${reference}" ${pointer}: ${message}`);
  }
  if (typeof schema !== 'object') throw new FileProblem(`"${reference}" must be an object`);
  return schema as JsonObject;
}

/** Says which file a problem is about. */
function refer(reference: string, error: unknown): never {
  if (!isFileProblem(error)) throw error;
  throw new FileProblem(`"${reference}" ${error.words}`, { cause: error });
}
