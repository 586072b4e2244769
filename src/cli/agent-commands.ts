// `openwop agents …` (seed 004; architecture §5): agents as processes, seen and attached over the host's HTTP API.
import { InvalidArgumentError, type Command } from 'commander';
import type {
  OpenSentienceAgentDetail,
  OpenSentienceAgentList,
  OpenSentienceAttachment,
  OpenSentienceAudit,
  OpenSentienceAuditEntry,
} from '../../schemas/types.generated.ts';
import {
  agentsTable,
  agentText,
  attachmentText,
  auditTable,
  callsTable,
  toolsTable,
} from './agent-tables.ts';
import { CALLED, type Cli, type JsonFlag } from './cli.ts';
import { CliFault, codeOf } from './faults.ts';
import type { HostClient } from './host-client.ts';
import { printable } from '../words/printable.js';

const BASE = '/v1/host/openwop-temporal/opensentience';
const DEFAULT_COMMAND = 'list';
const DEFAULT_AUDIT_ENTRIES = 50;
/** Most entries that one command prints; more are read by the API, page by page. */
const MAX_AUDIT_ENTRIES = 10_000;
/** Entries that the host gives at once. */
const AUDIT_PAGE = 200;

export function addAgentCommands(program: Command, cli: Cli): void {
  const agents = program
    .command('agents')
    .description('Agents that run as processes and bring tools to runs.');
  const { screen } = cli;
  const client = agentsClient(cli.client);
  const tell = cli.tell;

  command(agents, DEFAULT_COMMAND, 'All agents, and how they are (the default).')
    // What follows `agents` and is no command arrives here: it is to be called by its name.
    .allowExcessArguments()
    .action(async (options: JsonFlag, list: Command) => {
      const [unknown] = list.args;
      if (unknown !== undefined) list.error(`error: unknown command '${printable(unknown)}'`);
      const answer = await client.get<OpenSentienceAgentList>('/agents');
      tell(options, answer, () => agentsTable(answer.agents, screen));
    });
  command(agents, 'show <agentId>', 'One agent: Cores, sessions, tools, calls, metrics.').action(
    async (agentId: string, options: JsonFlag) => {
      const agent = await agentOf(client, agentId);
      tell(options, agent, () => agentText(agent, screen));
    },
  );
  command(agents, 'tools [agentId]', 'Tools of one agent or of all, with their policy.').action(
    async (agentId: string | undefined, options: JsonFlag) => {
      const tools = (await agentsOf(client, agentId)).flatMap((agent) => agent.tools);
      tell(options, { tools }, () => toolsTable(tools, screen));
    },
  );
  command(agents, 'calls [agentId]', 'Calls in flight and queued, by id.').action(
    async (agentId: string | undefined, options: JsonFlag) => {
      const calls = (await agentsOf(client, agentId)).flatMap((agent) => agent.calls);
      tell(options, { calls }, () => callsTable(calls, screen));
    },
  );
  command(agents, 'audit', 'What happened between host and agents, newest first.')
    .option('--agent <agentId>', 'only of this agent')
    .option('--limit <n>', `entries, up to ${MAX_AUDIT_ENTRIES}`, auditLimit, DEFAULT_AUDIT_ENTRIES)
    .action(async (options: JsonFlag & { agent?: string; limit: number }) => {
      const entries = await auditOf(client, options);
      tell(options, { entries }, () => auditTable(entries, screen));
    });
  command(
    agents,
    'attach <agentId>',
    'A one-time token for an agent that you start yourself.',
  ).action(async (agentId: string, options: JsonFlag) => {
    const path = `/agents/${encodeURIComponent(agentId)}/attach`;
    const attachment = await client.post<OpenSentienceAttachment>(path).catch(named(agentId));
    const { socket, token, expiresAt } = attachment;
    tell(options, { socket, token, expiresAt }, () => attachmentText(attachment));
  });
}

function command(parent: Command, usage: string, description: string): Command {
  return parent
    .command(usage, { isDefault: usage === DEFAULT_COMMAND })
    .description(description)
    .option('--json', 'one JSON document, for programs');
}

type AgentsClient = Pick<HostClient, 'get' | 'post'>;

/** Below the host's addresses of agents; a host that takes none has nothing there. */
function agentsClient(client: HostClient): AgentsClient {
  return {
    get: <Answer>(path: string) => client.get<Answer>(`${BASE}${path}`).catch(takesNone),
    post: <Answer>(path: string) => client.post<Answer>(`${BASE}${path}`).catch(takesNone),
  };
}

function takesNone(error: unknown): never {
  if (!(error instanceof CliFault) || error.code !== 'not_found') throw error;
  throw new CliFault(
    'This host takes no agents as processes. Set OPENWOP_OPENSENTIENCE_DIR where it runs and start it anew.',
    { ...error.facts, cause: error },
  );
}

function auditLimit(text: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  if (value >= 1 && value <= MAX_AUDIT_ENTRIES) return value;
  throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_AUDIT_ENTRIES}.`);
}

function isUnknownAgent(error: unknown): boolean {
  return codeOf(error) === 'agent_not_found';
}

/** The host does not repeat which agent it lacks. */
function named(agentId: string): (error: unknown) => never {
  return (error) => {
    if (!isUnknownAgent(error)) throw error;
    throw new CliFault(`The host knows no agent ${agentId}. \`${CALLED} agents\` lists them.`, {
      code: 'agent_not_found',
      cause: error,
    });
  };
}

function agentOf(client: AgentsClient, agentId: string): Promise<OpenSentienceAgentDetail> {
  return client
    .get<OpenSentienceAgentDetail>(`/agents/${encodeURIComponent(agentId)}`)
    .catch(named(agentId));
}

async function agentsOf(
  client: AgentsClient,
  agentId: string | undefined,
): Promise<OpenSentienceAgentDetail[]> {
  if (agentId !== undefined) return [await agentOf(client, agentId)];
  const { agents } = await client.get<OpenSentienceAgentList>('/agents');
  const found: OpenSentienceAgentDetail[] = [];
  for (const one of agents) {
    try {
      found.push(await agentOf(client, one.agentId));
    } catch (error) {
      // Gone since the list was made.
      if (!isUnknownAgent(error)) throw error;
    }
  }
  return found;
}

async function auditOf(
  client: AgentsClient,
  { agent, limit }: { agent?: string; limit: number },
): Promise<OpenSentienceAuditEntry[]> {
  const entries: OpenSentienceAuditEntry[] = [];
  for (let before: number | undefined; entries.length < limit;) {
    const query = new URLSearchParams({
      limit: String(Math.min(AUDIT_PAGE, limit - entries.length)),
      ...(agent === undefined ? {} : { agentId: agent }),
      ...(before === undefined ? {} : { before: String(before) }),
    });
    const page = await client.get<OpenSentienceAudit>(`/audit?${query.toString()}`);
    entries.push(...page.entries);
    before = page.nextBefore;
    if (before === undefined) break;
  }
  return entries;
}
