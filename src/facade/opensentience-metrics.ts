// Metrics of agents and their tools in Prometheus' text format 0.0.4 (seed 004; architecture §5), summed over the
// living Cores: when one goes its part is missing from the sums, which Prometheus takes for a restarted counter.
import { Counter, Gauge, Registry } from 'prom-client';
import { OUTCOMES } from '../rules/tool-metrics.ts';
import { metricsOf, summaryOf, type AgentGroup } from './opensentience-views.ts';

export const METRICS_CONTENT_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Labels are agents and tools that the registry has: bounded by what it keeps of each Core. */
export function metricsText(groups: readonly AgentGroup[]): Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `openwop_agent_${name}`, help, labelNames, registers });
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `openwop_agent_${name}`, help, labelNames, registers });
  const A = 'agent_id';
  const sessions = gauge('sessions', 'Connected sessions of the agent.', A);
  const restartsText = 'How often the process of the agent was started anew.';
  const restarts = counter('restarts_total', restartsText, A);
  const inFlight = gauge('calls_in_flight', 'Calls that the agent has not ended.', A);
  const queuedText = 'Calls that wait for a free place on the connection of the agent.';
  const queued = gauge('calls_queued', queuedText, A);
  const T = 'tool_id';
  const calls = counter('tool_calls_total', 'Calls of the tool.', A, T);
  const resultsText =
    'Ended calls of the tool by outcome; unanswered: ended without a word of the agent.';
  const results = counter('tool_results_total', resultsText, A, T, 'outcome');
  const secondsText = 'Time that ended calls of the tool took, together.';
  const seconds = counter('tool_duration_seconds_total', secondsText, A, T);
  const longestText = 'Time that the longest ended call of the tool took.';
  const longest = gauge('tool_duration_seconds_max', longestText, A, T);
  for (const group of groups) {
    const { agentId, instances, ...load } = summaryOf(group);
    const agent = { agent_id: agentId };
    sessions.set(agent, instances.filter(({ session }) => session).length);
    const startedAnew = instances.reduce((sum, instance) => sum + instance.restarts, 0);
    restarts.inc(agent, startedAnew);
    inFlight.set(agent, load.inFlight);
    queued.set(agent, load.queued);
    for (const tool of metricsOf(group.instances)) {
      const labels = { ...agent, tool_id: tool.toolId };
      calls.inc(labels, tool.calls);
      for (const outcome of OUTCOMES) results.inc({ ...labels, outcome }, tool[outcome]);
      seconds.inc(labels, tool.totalMs / 1000);
      longest.set(labels, tool.maxMs / 1000);
    }
  }
  return registry.metrics();
}
