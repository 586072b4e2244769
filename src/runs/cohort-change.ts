// What one change means for one run (architecture §6): which of its agents a name stands for, and from which event on a fork
// has to live. What lies before is as it was, and costs nothing.
import { payloadOf } from '../rules/damaged.ts';
import { invalid } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import { isReplay, type CohortChange } from '../rules/cohort.ts';
import { invokesAgent } from '../rules/orchestrator.ts';
import type { RunInput } from '../rules/run-input.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunForkOverlay, RunForkRequest } from '../../schemas/types.generated.ts';

type OverlaidAgents = NonNullable<RunForkOverlay['agents']>;

/**
 * By the agents' own ids; undefined: the run knows none of that name. A name is an agentId, the last part of one, or that
 * of a node that invokes one. Throws validation_error where it stands for several.
 */
export function agentsIn(
  { agents: named = {} }: CohortChange,
  input: Pick<RunInput, 'agents' | 'definition'>,
): OverlaidAgents | undefined {
  const found: OverlaidAgents = {};
  for (const [name, change] of Object.entries(named)) {
    const [agentId, another] = agentIdsOf(name, input);
    if (agentId === undefined) return undefined;
    if (another !== undefined)
      throw invalid(`/change/agents/${name}`, 'stands for several agents: name one by its id', {
        candidates: agentIdsOf(name, input),
      });
    if (Object.hasOwn(found, agentId))
      throw invalid(`/change/agents/${name}`, 'stands for an agent that another name stands for');
    found[agentId] = change;
  }
  return found;
}

/** Whether each name stands for at least one agent of the run. */
export function knowsAgents(
  { agents: named = {} }: CohortChange,
  input: Pick<RunInput, 'agents' | 'definition'>,
): boolean {
  return Object.keys(named).every((name) => agentIdsOf(name, input).length > 0);
}

/** Whom a name stands for, of those that the run has. */
export function agentIdsOf(
  name: string,
  { agents, definition }: Pick<RunInput, 'agents' | 'definition'>,
): string[] {
  if (Object.hasOwn(agents, name)) return [name];
  const ofNodes = definition.nodes.flatMap((node) =>
    node.id === name && invokesAgent(node) && node.agent ? [node.agent.agentId] : [],
  );
  const byEnd = Object.keys(agents).filter((agentId) => agentId.split('.').at(-1) === name);
  return [...new Set([...ofNodes, ...byEnd])].filter((agentId) => Object.hasOwn(agents, agentId));
}

type ChangedRow = Pick<LogRow, 'runId' | 'key' | 'type' | 'nodeId' | 'payload'>;

interface Changed {
  readonly change: CohortChange;
  readonly input: RunInput;
  /** The source's log, which is read where the fork depends on it, and no further. */
  readonly pages: AsyncIterable<readonly ChangedRow[]>;
}

/** The fork of one member. Throws as agentsIn, and HostError history_undecodable: an entry of its source is damaged. */
export async function forkFor({ change, input, pages }: Changed): Promise<RunForkRequest> {
  if (isReplay(change)) return { mode: 'replay', fromSeq: 0 };
  const { configurable } = change;
  const agents = agentsIn(change, input) ?? {};
  return {
    mode: 'branch',
    fromSeq: configurable ? 0 : await firstOf(pages, Object.keys(agents)),
    runOptionsOverlay: overlayFor(change, agents),
  };
}

/** What a member goes by. `agents`: by their own ids (agentsIn). */
export function overlayFor({ configurable }: CohortChange, agents: OverlaidAgents): RunForkOverlay {
  return {
    ...{ tools: 'recorded', answers: 'recorded' },
    ...(Object.keys(agents).length > 0 ? { agents } : {}),
    ...(configurable ? { configurable } : {}),
  };
}

/** Where the visit began in which one of the agents was asked first; where none was: behind the last event. */
async function firstOf(pages: Changed['pages'], agentIds: readonly string[]): Promise<number> {
  const began = new Map<string, number>();
  let sequence = 0;
  for await (const page of pages)
    for (const row of page) {
      const { type, nodeId } = row;
      if (eventRow(type).part === 'node-starts' && nodeId !== undefined)
        began.set(nodeId, sequence);
      const { agentId } = payloadOf(row);
      if (typeof agentId === 'string' && agentIds.includes(agentId))
        return began.get(nodeId ?? '') ?? sequence;
      sequence++;
    }
  return sequence;
}
