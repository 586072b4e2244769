// The lines of the table about agents as processes.
import { DEFAULT_LIMITS } from '../src/opensentience/limits.ts';
import type { AgentCalls, AgentsReport } from './agents.ts';
import type { Line } from './report-lines.ts';

function callLines(
  what: string,
  { inProcess, agent, addedP50Ms, addedP95Ms, callsPerSecond, cpuMsPerCall }: AgentCalls,
  inFlight: AgentsReport['inFlight'],
): Line[] {
  const { p50Ms, p95Ms, samples } = agent;
  const perSecond = (load: keyof AgentsReport['inFlight']): Line => [
    `${what}: calls per second, ${inFlight[load]} at one time, unpaced`,
    `${callsPerSecond[load]} (${cpuMsPerCall[load]} ms of the host's CPU each)`,
    '',
  ];
  return [
    [
      `${what}: one call, p50 / p95`,
      `${p50Ms} / ${p95Ms} ms (${samples} samples; in process ${inProcess.p50Ms} / ${inProcess.p95Ms} ms)`,
      '',
    ],
    [`${what}: added to a call in process, p50 / p95`, `${addedP50Ms} / ${addedP95Ms} ms`, ''],
    perSecond('some'),
    perSecond('full'),
  ];
}

export function agentLines({ inFlight, alone, many, memory, runs }: AgentsReport): Line[] {
  const { messagesPerSecond } = DEFAULT_LIMITS;
  const { oneAgent, allAgents, heapKiBPerAgent } = memory;
  const { historyEvents, historyEventsRatio, wallMsPerCall, addedMsPerCall, wallRatio } = runs;
  return [
    ...callLines('One agent', alone, inFlight),
    ['Messages per second that Core takes from one agent', `${messagesPerSecond}`, 'a limit'],
    ...callLines(`${many.agents} agents`, many, inFlight),
    [
      `Memory of the host, 1 → ${many.agents} agents connected`,
      `heap ${oneAgent.heapMiB} → ${allAgents.heapMiB} MiB (${heapKiBPerAgent} KiB each), resident ${oneAgent.residentMiB} → ${allAgents.residentMiB} MiB`,
      '',
    ],
    [
      `Run with ${runs.calls} calls: history events, agent / in process`,
      `${historyEvents.agent} / ${historyEvents.inProcess}; ratio ${historyEventsRatio.toFixed(2)}`,
      '1.00',
    ],
    [
      `Run with ${runs.calls} calls: time of a call with its model turn, agent / in process`,
      `${wallMsPerCall.agent} / ${wallMsPerCall.inProcess} ms; ratio ${wallRatio.toFixed(2)} (+${addedMsPerCall} ms)`,
      '',
    ],
  ];
}
