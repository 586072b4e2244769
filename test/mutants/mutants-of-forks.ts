// Mutants of forks (architecture §6) and of the ends of segments, as mutants.ts has them.
import type { Row } from './mutants.ts';

const SEGMENTS = 'test/workflows/segments.test.ts';
const OFFLINE = 'test/workflows/offline.test.ts';
const OF_CHAINS = [
  'test/workflows/sizes.test.ts',
  'nodes without steps, one after the other',
] as const;
const NEAR_LIMIT = [SEGMENTS, 'once the history comes near the limit'] as const;
const WORDS = 'workflows/former-words.ts';
const OF_WORDS = 'test/workflows/former-words.test.ts';
const OF_EFFECTS = 'test/acceptance/fork-effects.test.ts';
const OF_RECORDS = [OFFLINE, 'a record that is played states'] as const;

const HEARD = 'src/rules/heard.ts';
const OF_HEARD = 'test/rules/heard.test.ts';
const INTERRUPTS = 'workflows/interrupts.ts';
const OF_ANSWERS = 'test/workflows/answers.test.ts';
const FORKED = 'test/workflows/forked-questions.test.ts';
const BY_ITS_SOURCE = [FORKED, 'by the record of its source'] as const;
const BY_PEOPLE = [FORKED, 'where people answer'] as const;
const LEFT_AMID = [OF_ANSWERS, 'left its source while that asked'] as const;

export const OF_FORKS: readonly Row[] = [
  [
    73,
    ['src/translate/recording.ts', 'if (answered && !answered.outcome?.failure)', 'if (answered)'],
    ['test/translate/recording.test.ts', 'a message that the run refused'],
  ],
  [
    73,
    [HEARD, 'if (this.#kept.some((known) => known.updateId === updateId)) return true;', ''],
    [OF_HEARD, 'came again in another segment'],
  ],
  [
    73,
    [HEARD, 'this.#ofRecord.get(interruptId) ?? 0', '0'],
    [OF_HEARD, 'in the record that had told it before'],
  ],
  [
    73,
    [HEARD, 'if (goesByOther(this.#overlay, now)) ', ''],
    [OF_HEARD, 'goes on with what is left of it'],
  ],
  [
    73,
    [HEARD, 'if (!this.#overlay?.recordedAnswers) return;', ''],
    [OF_HEARD, 'takes nothing that a step has read'],
  ],
  [
    73,
    [INTERRUPTS, 'heardBefore = open.heardOfRecord ?? 0', 'heardBefore = open.heard'],
    [OF_ANSWERS, 'is sent while the record is asked'],
  ],
  [
    73,
    [INTERRUPTS, '(open, answer)) open.heard++;', '(open, answer));'],
    [OF_ANSWERS, 'that is not taken has its place'],
  ],
  [73, [INTERRUPTS, 'if (!state.overlay?.recordedAnswers) return;', ''], LEFT_AMID],
  [
    73,
    [
      'workflows/overlay.ts',
      "name === 'recordedAnswers' && recordedAnswers ?",
      "name !== 'recordedAnswers' && recordedAnswers ?",
    ],
    BY_ITS_SOURCE,
  ],
  [73, ['workflows/overlay.ts', '{ isLeft: true }', '{}'], BY_PEOPLE],
  [73, ['workflows/fork.ts', 'delete open.isSought;', ''], BY_ITS_SOURCE],
  [
    73,
    ['workflows/recorded-steps.ts', "if (name === 'recordedAnswers' && isLeft &&", 'if (false &&'],
    BY_ITS_SOURCE,
  ],
  [
    73,
    [INTERRUPTS, 'open.heardOfRecord = heardBefore + left.length;', ''],
    [FORKED, 'by the record that its source went by'],
  ],
  [
    73,
    [INTERRUPTS, ' || isToNote(run, open);', ';'],
    [FORKED, 'is noted once, wherever a segment ends'],
  ],
  [
    73,
    ['src/rules/recording.ts', 'cuts.has(stimulus) ? withAnswers(', 'false ? withAnswers('],
    BY_PEOPLE,
  ],
  [
    73,
    [HEARD, 'this.#ofRecord.set(interruptId, heardBefore + left.length);', ''],
    [OF_HEARD, 'asks it again after each that it leaves'],
  ],
  [
    73,
    [HEARD, 'mayRepeat: mayRepeat === true', 'mayRepeat: false'],
    [OF_HEARD, 'has a call performed'],
  ],
  [
    73,
    ['workflows/fork.ts', 'open.heardOfRecord = open.heard;', 'open.heardOfRecord = 0;'],
    BY_ITS_SOURCE,
  ],
  [
    79,
    [
      'src/rules/fork-trees.ts',
      'filter((timeMs) => timeMs <= atMs)',
      'filter((timeMs) => timeMs < 0)',
    ],
    ['test/rules/fork-trees.test.ts', 'nothing of it is done again'],
  ],
  [
    90,
    [
      'workflows/divergence.ts',
      'takeFaultsBy((error) => breakOff(run, played, error))',
      'takeFaultsBy((error) => !played && breakOff(run, played, error))',
    ],
    ['test/acceptance/changed-code.test.ts', 'code between the steps that throws'],
  ],
  [
    91,
    [
      'activities/former-effects.ts',
      'await ports.stores.effects.inherit([...former.values()])',
      'await ports.stores.effects.inherit([])',
    ],
    ['test/acceptance/fork-effects.test.ts', 'the same call of a later attempt'],
  ],
  [
    91,
    ['activities/former-effects.ts', '(isBefore || sideEffects)', '(isBefore && sideEffects)'],
    ['test/activities/former-effects.test.ts', 'in this very attempt'],
  ],
  [
    91,
    ['activities/former-effects.ts', 'isLeft(told) && !unsent.has(callId)', 'isLeft(told)'],
    ['test/activities/former-effects.test.ts', 'would not have made is nobody'],
  ],
  [
    91,
    ['activities/former-effects.ts', '(isOther && !isOfWholeRun)', 'isOther'],
    ['test/activities/former-effects.test.ts', 'for the sake of one'],
  ],
  [
    91,
    ['activities/child-runs.ts', 'if (length !== undefined)', 'if (false)'],
    ['test/activities/former-effects.test.ts', 'is noted for it'],
  ],
  [
    91,
    ['activities/former-effects.ts', '!sideEffects && tool', '!answers.has(callId) && tool'],
    ['test/activities/former-effects.test.ts', 'one that reads now, and wrote then'],
  ],
  [
    91,
    ['activities/former-effects.ts', "return here === 'everywhere';", 'return false;'],
    ['test/activities/former-effects.test.ts', 'for those that come in its place'],
  ],
  [
    91,
    ['src/runs/fork-children.ts', '    starts.push(start);', '    await start();'],
    ['test/runs/fork-children.test.ts', 'notes what its source performed before it starts'],
  ],
  [
    91,
    ['src/runs/fork-children.ts', 'for (const one of noted) await note(one, parent);', ''],
    ['test/runs/fork-children.test.ts', 'has what all generations below performed noted'],
  ],
  [
    91,
    ['src/runs/fork-children.ts', 'all.push(...next.map((one) => ({ ...one, top })));', ''],
    ['test/runs/fork-children.test.ts', 'has what all generations below performed noted'],
  ],
  [
    91,
    ['src/runs/fork-children.ts', 'below.top === run.runId', 'below.top !== below.top'],
    ['test/runs/fork-children.test.ts', 'has what all generations below performed noted'],
  ],
  [
    91,
    [
      'src/adapters/postgres/effect-ledger.ts',
      "state = CASE WHEN state = 'in-doubt' THEN $5 ELSE state END,",
      'state = state,',
    ],
    ['test/adapters/postgres-stores.test.ts', 'what was in doubt above and is known by then'],
  ],
  ...['epoch < $3 AND run_id IN (SELECT parent_run_id FROM above)', 'epoch = $3'].map(
    (mutated): Row => [
      91,
      [
        'src/adapters/postgres/effect-ledger.ts',
        'epoch = $3 AND run_id IN (SELECT parent_run_id FROM above)',
        mutated,
      ],
      ['test/adapters/postgres-stores.test.ts', 'one row, of that run'],
    ],
  ),
  [
    91,
    ['activities/recording.ts', 'inheritAll(ports,', 'void (ports,'],
    ['test/acceptance/child-effects.test.ts', 'has only the log of that one'],
  ],
  [
    91,
    [WORDS, "if (call.resolution?.kind === 'perform') call.resolution = undefined;", ''],
    [OF_WORDS, 'a frame keeps none that performs'],
  ],
  [
    91,
    [WORDS, 'doubt.askedAbout = doubt.shown.length;', ''],
    [OF_EFFECTS, 'asked about where a branch leaves'],
  ],
  ...['!isInherited || ', '!isSame || '].map((part): Row => [
    91,
    ['activities/perform-effect.ts', part, ''],
    ['test/activities/former-effects.test.ts', 'a word on what its source asked'],
  ]),
  [
    91,
    ['activities/perform-effect.ts', ' || earlier.length !== askedAbout', ''],
    ['test/activities/former-effects.test.ts', 'a word on fewer calls'],
  ],
  [
    91,
    ['activities/standing.ts', '(${count} calls)', ''],
    ['test/activities/former-effects.test.ts', 'a word on as many calls'],
  ],
  [
    91,
    ['activities/perform-effect.ts', 'shown: wider };', 'shown };'],
    ['test/activities/former-effects.test.ts', 'more than five'],
  ],
  [
    91,
    [WORDS, '{ ...open.resolution, isRecorded: true }', 'open.resolution'],
    [OF_WORDS, 'that its frame has not taken yet'],
  ],
  [
    91,
    // The ledger's epochs hold most such words as well.
    [
      WORDS,
      "if (resolution?.kind !== 'perform') return request;",
      'if (!resolution) return request;',
    ],
    [OF_WORDS, 'a step that is begun again has no word that performs'],
  ],
  [
    91,
    ['workflows/tool-calls.ts', "word.kind === 'perform' && isRecorded ? undefined : word", 'word'],
    [OF_EFFECTS, 'was asked about at'],
  ],
  [
    91,
    [HEARD, "actionIn(value) === 'accept'", "actionIn(value) === ''"],
    [OF_EFFECTS, 'does not have a call performed either'],
  ],
  [
    92,
    [
      'src/runs/recorded-children.ts',
      'if (!closed || lastTimestampMs > atMs) {',
      'if (!closed || lastTimestampMs > atMs + 600_000) {',
    ],
    [
      'test/acceptance/fork-trees.test.ts',
      'what a child came to behind the end of the record is none of it',
    ],
  ],
  [
    93,
    [
      'src/adapters/temporal/engine.ts',
      'input.fork?.build?.buildId ?? source.pinTo()',
      'source.pinTo()',
    ],
    ['test/acceptance/cohort-builds.test.ts', 'is replayed by the workers of that build alone'],
  ],
  [105, ['workflows/segments.ts', "(holding.has('full') && inFlight === 0)", 'false'], OF_CHAINS],
  [
    105,
    ['workflows/segments.ts', "holding.has('limit') ||", "holding.has('segment') ||"],
    [SEGMENTS, 'near the limit of the server'],
  ],
  [
    105,
    ['workflows/segments.ts', "if (holding.has('segment')) holding.add('full');", ''],
    OF_CHAINS,
  ],
  [
    105,
    ['workflows/segments.ts', 'if (!isDue && isNearLimit()) return endSegment(run);', ''],
    NEAR_LIMIT,
  ],
  [105, ['workflows/segments.ts', 'isOnlyQueued() || isDue()', 'isOnlyQueued()'], NEAR_LIMIT],
  [
    105,
    ['workflows/segments.ts', "run.holding.add('limit');", "run.holding.add('segment');"],
    NEAR_LIMIT,
  ],
  [
    106,
    ['workflows/visit.ts', 'run.steps.waitForSource(run, factsOfStart(visit)) ??', ''],
    OF_RECORDS,
  ],
  [106, ['workflows/recorded-steps.ts', '!run.ending && !when', '!when'], OF_RECORDS],
  [
    106,
    [
      'workflows/comparison.ts',
      "=== undefined ? 'later' : 'never'",
      "=== undefined ? 'never' : 'never'",
    ],
    [OFFLINE, 'a fork of a run that waited for a task with room'],
  ],
  [
    106,
    ['workflows/comparison.ts', 'expected?.isDerived ? undefined : expected', 'expected'],
    ['test/workflows/comparison.test.ts', 'one that was ended from outside'],
  ],
  [106, ['workflows/fork.ts', 'batch.begins && count > 0 && !run.ending', 'false'], OF_RECORDS],
  [
    106,
    ['workflows/recorded-player.ts', '!isOpen && kind', 'isOpen && kind'],
    [OFFLINE, 'a fork that is played states it, too'],
  ],
  [
    106,
    ['workflows/comparison.ts', 'sequence < next', 'sequence <= next'],
    ['test/workflows/comparison.test.ts', 'is the first that is not stated yet'],
  ],
  [
    106,
    ['workflows/visit.ts', 'keys: [attemptKey(visit), breached]', 'keys: [attemptKey(visit)]'],
    OF_RECORDS,
  ],
  [106, ['workflows/visit.ts', 'waitsIfNone: true', 'waitsIfNone: false'], OF_RECORDS],
  [
    106,
    ['workflows/visit.ts', 'run.steps.waitForSource(run, { keys, waitsIfNone: false }) ??', ''],
    [OFFLINE, 'a fork that is played states it'],
  ],
  [
    106,
    ['workflows/rehearsal.ts', 'if (!held) return undefined;', 'if (held ?? true) return held;'],
    [OFFLINE, 'the clock of a rehearsal waits'],
  ],
  [
    106,
    ['workflows/recorded-steps.ts', '      player.whenStated = whenStated;', ''],
    [OFFLINE, 'a fork of a run whose first task was full'],
  ],
  [106, ['workflows/interrupts.ts', 'if (run.ending && isStopped(run))', 'if (false)'], OF_RECORDS],
  [
    106,
    [
      'workflows/recorded-steps.ts',
      'uncancelled(() => player.waits',
      '(async (wait: () => Promise<unknown>) => wait())(() => player.waits',
    ],
    OF_RECORDS,
  ],
  [106, ['workflows/pause.ts', ' && !run.steps.isUnstated(pausedKey(asked))', ''], OF_RECORDS],
];
