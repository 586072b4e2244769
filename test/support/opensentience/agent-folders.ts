// Folders as operators write them, for tests: an OPENWOP_OPENSENTIENCE_DIR with agents that are TypeScript files of this
// checkout, and the OPENWOP_AGENTS_DIR and OPENWOP_FIXTURES_DIR of runs that call their tools.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentScriptTurn, WorkflowDefinition } from '../../../schemas/types.generated.ts';
import { programArgs } from '../prepared.ts';

export interface AgentFolderSpec {
  readonly id: string;
  /** A TypeScript file that runs the agent. */
  readonly script: URL;
  readonly env?: Readonly<Record<string, string>>;
  /** Further members of the manifest: restart, limits, policy, context. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** `<folder>/<id>/opensentience.agent.json`; returns the agent's folder. */
export async function writeAgentFolder(folder: string, spec: AgentFolderSpec): Promise<string> {
  const own = join(folder, spec.id);
  await mkdir(own, { recursive: true });
  const manifest = {
    id: spec.id,
    version: '1.0.0',
    launch: {
      command: process.execPath,
      args: programArgs(spec.script),
      ...(spec.env ? { env: spec.env } : {}),
    },
    ...spec.more,
  };
  await writeFile(join(own, 'opensentience.agent.json'), JSON.stringify(manifest, null, 2));
  return own;
}

export interface CallerSpec {
  readonly agentId: string;
  readonly toolAllowlist: readonly string[];
  readonly turns: readonly [AgentScriptTurn, ...AgentScriptTurn[]];
}

/** An agent of a run with its script, as files of OPENWOP_AGENTS_DIR. */
export async function writeCaller(folder: string, caller: CallerSpec): Promise<void> {
  const { agentId, toolAllowlist, turns } = caller;
  await mkdir(folder, { recursive: true });
  const manifest = {
    agentId,
    persona: agentId,
    modelClass: 'general',
    systemPrompt: 'Do what the script says.',
    toolAllowlist,
  };
  await writeFile(join(folder, `${agentId}.agent.json`), JSON.stringify(manifest));
  await writeFile(join(folder, `${agentId}.script.json`), JSON.stringify({ turns }));
}

/** A definition as a file of OPENWOP_FIXTURES_DIR. */
export async function writeDefinition(
  folder: string,
  definition: WorkflowDefinition,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${definition.id}.json`), JSON.stringify(definition));
}
