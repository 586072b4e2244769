// What the campaign consists of: checks that are too long, or too random, for `npm test`. A seeded part is played in rounds,
// each with the next seed, for as long as its share of the time lasts; any other is run once. A round that is played again shows
// the same where its seed decides all. `sigkill` and `away` plan the same faults again, and when they strike depends on the
// machine; what `fork-kills`, `bench` and `soak` find depends on time too, and the fuzz draws its own cases each time.

export interface Round {
  readonly command: readonly string[];
  /** Added to the environment; with them the command plays the same round again. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Part {
  readonly about: string;
  /** The round with this number, of a campaign with this seed. */
  round(seed: number, index: number): Round;
  /** It has one round, whatever the seed. */
  readonly isOnce?: true;
}

const vitest = (...args: readonly string[]) => ['npx', 'vitest', 'run', ...args];
const once = (about: string, command: readonly string[], env: Round['env'] = {}): Part => ({
  about,
  isOnce: true,
  round: () => ({ command, env }),
});

/** Cases of one round: a few minutes each. */
const GENERATED = 500;
const FORKED = 4;
const OFFLINE = 200;
const KILLED = 10;
const AWAY = 10;
const AWAY_SECONDS = 120;

export const PARTS = {
  generated: {
    about: 'generated runs: every prefix of every log is legal',
    round: (seed, index) => ({
      command: vitest('test/workflows/generated.test.ts'),
      env: {
        OPENWOP_GENERATED_SEED: `campaign-${seed + index}`,
        OPENWOP_GENERATED_CASES: String(GENERATED),
      },
    }),
  },
  forks: {
    about: 'forks of generated runs at every event, and forks of forks of forks',
    round: (seed, index) => ({
      command: vitest('test/workflows/forks.test.ts', '-t', 'prefix equal'),
      env: {
        OPENWOP_FORKED_FROM: String(seed + index * FORKED),
        OPENWOP_FORKED_CASES: String(FORKED),
      },
    }),
  },
  'known-forks': once(
    'forks of forks of forks of each that was otherwise once',
    vitest('test/workflows/forks.test.ts', '-t', 'once otherwise'),
    { OPENWOP_FORKED: 'whole' },
  ),
  offline: {
    about: 'records of generated runs, played again without Temporal',
    round: (seed, index) => ({
      command: vitest('test/workflows/offline.test.ts'),
      env: {
        OPENWOP_OFFLINE_FROM: String(seed + index * OFFLINE),
        OPENWOP_OFFLINE_CASES: String(OFFLINE),
      },
    }),
  },
  sigkill: {
    about: 'rounds of SIGKILL at drawn moments of runs under way',
    round: (seed, index) => ({
      command: vitest('test/faults/sigkill-rounds.test.ts'),
      env: {
        OPENWOP_FAULT_SEED: String(seed + index * KILLED),
        OPENWOP_FAULT_ROUNDS: String(KILLED),
      },
    }),
  },
  away: {
    about:
      'rounds in which a part of the host is away for up to two minutes, with all kinds of work under way',
    round: (seed, index) => ({
      command: vitest('test/faults/away-rounds.test.ts'),
      env: {
        OPENWOP_FAULT_SEED: String(seed + index * AWAY),
        OPENWOP_FAULT_ROUNDS: String(AWAY),
        OPENWOP_AWAY_SECONDS: String(AWAY_SECONDS),
      },
    }),
  },
  outages: once(
    'PostgreSQL away for half a minute and for five, in three ways, while all kinds of work are under way',
    vitest('test/faults/outages.test.ts', '-t', 'PostgreSQL'),
    { OPENWOP_OUTAGE_SECONDS: '30,300' },
  ),
  trees: once(
    'forks of runs with children, and of runs that ask, at every event',
    vitest(
      'test/acceptance/fork-trees.test.ts',
      'test/acceptance/recorded-orders.test.ts',
      'test/acceptance/fork-answers.test.ts',
    ),
    { OPENWOP_FORKED_TREES: 'whole' },
  ),
  walks: once(
    'each command of the first hour and of the example that debugs a refund, as their pages have them',
    vitest('test/acceptance/first-hour.test.ts', 'test/acceptance/refund-example.test.ts'),
    { OPENWOP_WALK: 'whole' },
  ),
  pictures: once(
    'the pictures of docs/ are taken in Chromium',
    vitest('--config', 'test/campaign/vitest.config.ts', 'test/campaign/pictures.campaign.ts'),
  ),
  twins: once(
    'the HTTP suite and the journeys of agents in full on the embedded database, and under encryption',
    vitest(
      'test/facade/http.test.ts',
      'test/facade/encrypted.test.ts',
      'test/journeys/agent-run.test.ts',
      'test/journeys/agent-run-encrypted.test.ts',
    ),
    { OPENWOP_TWINS: 'whole' },
  ),
  'fork-kills': once(
    'SIGKILL at each moment of each kind of fork',
    vitest('test/faults/forks.test.ts'),
    { OPENWOP_FORK_KILLS: 'whole' },
  ),
  nodes: once(
    'start, demo, limit of a workflow task and kill on each supported line of Node',
    vitest('test/app/node-versions.test.ts'),
    { OPENWOP_TEST_NODES: '20.19.0,22,24,26' },
  ),
  'start-by-go': once(
    'a newcomer without a download: a server is built by Go, and the demo run comes to its end',
    ['.ci/first-start', 'go'],
  ),
  'start-by-java': once(
    'a newcomer without a download and without Go: a server by Java, and the demo run comes to its end',
    ['.ci/first-start', 'java'],
  ),
  bench: once(
    'the whole bench at its smallest',
    vitest('--config', 'test/campaign/vitest.config.ts', 'test/campaign/bench.campaign.ts'),
  ),
  mutants: once('every mutant is killed', ['npm', 'run', '-s', 'mutants'], {
    OPENWOP_MUTANTS: 'all',
  }),
  fuzz: {
    about: 'the API against its own description, at length',
    round: (seed, index) => ({
      command: ['.ci/openapi-fuzz'],
      env: {
        OPENWOP_FUZZ_SEED: String(seed + index),
        OPENWOP_FUZZ_EXAMPLES: '200',
        OPENWOP_FUZZ_MINUTES: '40',
      },
    }),
  },
  soak: once('thirty minutes of full load', ['npm', 'run', '-s', 'bench', '--', '--only', 'soak']),
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof PARTS;
export const PART_NAMES = Object.keys(PARTS) as PartName[];
