// The facts of this deployment that decide what it offers (rules/capabilities).
import type { HostFacts } from '../rules/capabilities.ts';
import type { Models } from '../ports/models.ts';
import type { Tools } from '../ports/tools.ts';
import { DEFAULT_CALLER, type FacadeConfig, type FacadeDeps } from './deps.ts';

/** Agents run here only when there is one; else their addresses are 404 as well. */
export function offersAgents({ catalog }: Pick<FacadeDeps, 'catalog'>): boolean {
  return catalog.agents(DEFAULT_CALLER.tenant).length > 0;
}

/** Who this host is, as discovery and bundles say it. */
export function implementationOf({
  version,
  inMemory,
}: Pick<FacadeConfig, 'version' | 'inMemory'>) {
  return {
    name: 'openwop-temporal',
    // A closed object: what is special about this one is build metadata of its version.
    version: inMemory ? `${version}+in-memory-temporal` : version,
    vendor: 'openwop-temporal',
  };
}

interface Known {
  /** An agent's own manifest is read where there is one: itself. */
  readonly agents: boolean;
  readonly models: Pick<Models, 'isLive' | 'providers'>;
  readonly tools: Pick<Tools, 'list'>;
  readonly config: Pick<
    FacadeConfig,
    'opensentience' | 'testMode' | 'escalation' | 'rehearsals' | 'retentionDays' | 'testSeams'
  >;
}

/** For discovery, and for the loading of manifests that ask for what is offered. */
export function hostFacts({ agents, models, tools, config }: Known): HostFacts {
  return {
    agents,
    // Agents' tools come and go with their processes: that there may be some is what stays.
    tools: tools.list(DEFAULT_CALLER.tenant).length > 0 || config.opensentience === true,
    live: models.isLive(),
    providers: models.providers(),
    testMode: config.testMode,
    escalation: config.escalation,
    ...(config.retentionDays === undefined ? {} : { retentionDays: config.retentionDays }),
    // As createSeams has it.
    forcesExpiry: config.testMode && config.testSeams === true,
    rehearsals: config.rehearsals === true,
  };
}
