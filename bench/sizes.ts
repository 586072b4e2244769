// How much the bench does. The full run stays below forty minutes on two cores, the quick one below four.

export interface Sizes {
  readonly name: 'full' | 'quick' | 'smallest';
  /** Interleaved rounds of the overhead, on our server and on one with default settings. */
  readonly overheadRounds: number;
  readonly defaultServerRounds: number;
  readonly throughputRounds: number;
  readonly throughputRuns: number;
  readonly latencyRuns: number;
  readonly tokenRuns: number;
  readonly tokensPerRun: number;
  /** Runs that speak at once, beside the one that speaks alone. */
  readonly tokenStreams: readonly number[];
  readonly agentTurns: number;
  readonly rebuildRuns: number;
  /** How long translate is repeated, in ms. */
  readonly translateMs: number;
  readonly waitingRuns: number;
  /** Calls of an agent's tool one after the other, in process as often. */
  readonly agentCalls: number;
  /** Rounds of many calls at one time, and the calls of each. */
  readonly agentCallRounds: number;
  readonly agentCallsPerRound: number;
  readonly connectedAgents: number;
  /** Interleaved rounds of runs with an agent's tool and with the host's, and the calls of each run. */
  readonly agentRunRounds: number;
  readonly callsPerAgentRun: number;
  /** Children of one run that wait for a human, and chains of runs that start each other, down to the last generation. */
  readonly wideChildren: number;
  readonly chainsOfChildren: number;
  /** Nodes of the run that is forked, replayed, compared and exported: about 35 events each. */
  readonly forkedAgentNodes: number;
  /** Runs that end before memory is first looked at. */
  readonly memoryWarmUpRuns: number;
  /** Rounds of short runs and answers over HTTP; subscribers of one run; runs whose disk is counted. */
  readonly turnaroundRounds: number;
  readonly subscribers: number;
  readonly diskRuns: number;
  /** SIGKILLs of a host, and the runs that are under way at each. */
  readonly kills: number;
  readonly runsPerKill: number;
  /** Starts of the host in empty folders, each to its demo's first event. */
  readonly demoStarts: number;
  /** Rows of ended runs, runs that wait beside them, and reads of each kind that are timed; answers. */
  readonly endedRuns: number;
  readonly waitingBesides: number;
  readonly timedReads: number;
  readonly timedAnswers: number;
  /** Full load that goes on and on, in ms; of its first sixth no memory is counted. */
  readonly soakMs: number;
  /** Longest wait for memory to come to rest, in ms. */
  readonly settleMs: number;
}

export const FULL: Sizes = {
  name: 'full',
  overheadRounds: 25,
  defaultServerRounds: 9,
  throughputRounds: 5,
  throughputRuns: 128,
  latencyRuns: 12,
  tokenRuns: 6,
  tokensPerRun: 150,
  tokenStreams: [10, 100],
  agentTurns: 50,
  rebuildRuns: 100,
  translateMs: 2_000,
  waitingRuns: 1_000,
  agentCalls: 2_000,
  agentCallRounds: 5,
  agentCallsPerRound: 8_000,
  connectedAgents: 50,
  agentRunRounds: 9,
  callsPerAgentRun: 20,
  wideChildren: 104,
  chainsOfChildren: 12,
  forkedAgentNodes: 145,
  memoryWarmUpRuns: 300,
  turnaroundRounds: 25,
  subscribers: 500,
  diskRuns: 400,
  kills: 20,
  runsPerKill: 4,
  demoStarts: 9,
  endedRuns: 100_000,
  waitingBesides: 10_000,
  timedReads: 500,
  timedAnswers: 50,
  soakMs: 1_800_000,
  settleMs: 60_000,
};

export const QUICK: Sizes = {
  name: 'quick',
  overheadRounds: 5,
  defaultServerRounds: 2,
  throughputRounds: 1,
  throughputRuns: 64,
  latencyRuns: 3,
  tokenRuns: 2,
  tokensPerRun: 80,
  tokenStreams: [10],
  agentTurns: 50,
  rebuildRuns: 30,
  translateMs: 500,
  waitingRuns: 150,
  agentCalls: 500,
  agentCallRounds: 1,
  agentCallsPerRound: 4_000,
  connectedAgents: 50,
  agentRunRounds: 3,
  callsPerAgentRun: 20,
  wideChildren: 20,
  chainsOfChildren: 4,
  forkedAgentNodes: 30,
  memoryWarmUpRuns: 30,
  turnaroundRounds: 8,
  subscribers: 200,
  diskRuns: 100,
  kills: 3,
  runsPerKill: 2,
  demoStarts: 3,
  endedRuns: 20_000,
  waitingBesides: 300,
  timedReads: 200,
  timedAnswers: 20,
  soakMs: 60_000,
  settleMs: 10_000,
};

/** To see that everything works: its numbers mean nothing but the event counts. */
export const SMALLEST: Sizes = {
  name: 'smallest',
  overheadRounds: 1,
  defaultServerRounds: 1,
  throughputRounds: 1,
  throughputRuns: 4,
  latencyRuns: 1,
  tokenRuns: 1,
  tokensPerRun: 20,
  tokenStreams: [2],
  agentTurns: 6,
  rebuildRuns: 4,
  translateMs: 50,
  waitingRuns: 4,
  agentCalls: 20,
  agentCallRounds: 1,
  agentCallsPerRound: 400,
  connectedAgents: 4,
  agentRunRounds: 1,
  callsPerAgentRun: 3,
  wideChildren: 2,
  chainsOfChildren: 1,
  forkedAgentNodes: 3,
  memoryWarmUpRuns: 2,
  turnaroundRounds: 1,
  subscribers: 3,
  diskRuns: 4,
  kills: 1,
  runsPerKill: 1,
  demoStarts: 1,
  endedRuns: 50,
  waitingBesides: 3,
  timedReads: 4,
  timedAnswers: 2,
  soakMs: 3_000,
  settleMs: 1_000,
};
