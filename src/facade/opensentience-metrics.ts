// Metrics of agents and their tools in Prometheus' text format 0.0.4 (seed 004; design §5), summed over the living
// Cores: when one goes its part is missing from the sums, which Prometheus takes for a restarted counter.
import { metricsOf, summaryOf, type AgentGroup } from './opensentience-views.ts';

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly samples: readonly (readonly [Labels, number])[];
}

export function metricsText(groups: readonly AgentGroup[]): string {
  return [...agentMetrics(groups), ...toolMetrics(groups)].map(metricText).join('');
}

function agentMetrics(groups: readonly AgentGroup[]): Metric[] {
  const agents = groups.map(summaryOf);
  const perAgent = (value: (agent: (typeof agents)[number]) => number): Metric['samples'] =>
    agents.map((agent) => [{ agent_id: agent.agentId }, value(agent)]);
  return [
    {
      name: 'openwop_agent_sessions',
      type: 'gauge',
      help: 'Connected sessions of the agent.',
      samples: perAgent(({ instances }) => instances.filter(({ session }) => session).length),
    },
    {
      name: 'openwop_agent_restarts_total',
      type: 'counter',
      help: 'How often the process of the agent was started anew.',
      samples: perAgent(({ instances }) =>
        instances.reduce((sum, { restarts }) => sum + restarts, 0),
      ),
    },
    {
      name: 'openwop_agent_calls_in_flight',
      type: 'gauge',
      help: 'Calls that the agent has not ended.',
      samples: perAgent(({ inFlight }) => inFlight),
    },
    {
      name: 'openwop_agent_calls_queued',
      type: 'gauge',
      help: 'Calls that wait for a free place on the connection of the agent.',
      samples: perAgent(({ queued }) => queued),
    },
  ];
}

const OUTCOMES = ['succeeded', 'failed', 'canceled', 'unanswered'] as const;

function toolMetrics(groups: readonly AgentGroup[]): Metric[] {
  const tools = groups.flatMap(({ agentId, instances }) =>
    metricsOf(instances).map((metrics) => ({
      ...metrics,
      labels: { agent_id: agentId, tool_id: metrics.toolId },
    })),
  );
  return [
    {
      name: 'openwop_agent_tool_calls_total',
      type: 'counter',
      help: 'Calls of the tool.',
      samples: tools.map(({ labels, calls }) => [labels, calls]),
    },
    {
      name: 'openwop_agent_tool_results_total',
      type: 'counter',
      help: 'Ended calls of the tool by outcome; unanswered: ended without a word of the agent.',
      samples: tools.flatMap((tool) =>
        OUTCOMES.map((outcome) => [{ ...tool.labels, outcome }, tool[outcome]] as const),
      ),
    },
    {
      name: 'openwop_agent_tool_duration_seconds_total',
      type: 'counter',
      help: 'Time that ended calls of the tool took, together.',
      samples: tools.map(({ labels, totalMs }) => [labels, totalMs / 1000]),
    },
    {
      name: 'openwop_agent_tool_duration_seconds_max',
      type: 'gauge',
      help: 'Time that the longest ended call of the tool took.',
      samples: tools.map(({ labels, maxMs }) => [labels, maxMs / 1000]),
    },
  ];
}

function metricText({ name, type, help, samples }: Metric): string {
  const lines = samples.map(([labels, value]) => `${name}{${labelText(labels)}} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
