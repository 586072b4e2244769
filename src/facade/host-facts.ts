// The facts of this deployment that decide what it offers (rules/capabilities).
import type { HostFacts } from '../rules/capabilities.ts';
import { DEFAULT_CALLER, type FacadeDeps } from './deps.ts';

/** Agents run here only when there is one; else their addresses are 404 as well. */
export function offersAgents({ catalog }: Pick<FacadeDeps, 'catalog'>): boolean {
  return catalog.agents(DEFAULT_CALLER.tenant).length > 0;
}

export function hostFacts({
  catalog,
  models,
  tools,
  config,
}: Pick<FacadeDeps, 'catalog' | 'models' | 'tools' | 'config'>): HostFacts {
  return {
    agents: offersAgents({ catalog }),
    // Agents' tools come and go with their processes: that there may be some is what stays.
    tools: tools.list(DEFAULT_CALLER.tenant).length > 0 || config.opensentience === true,
    live: models.isLive(),
    providers: models.providers(),
    testMode: config.testMode,
    escalation: config.escalation,
  };
}
