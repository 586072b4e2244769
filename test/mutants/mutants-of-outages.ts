// Mutants of outages and of doubts (architecture §11, I34, I98, I99): rows of mutants.ts.
import type { Row } from './mutants.ts';

const FAILURES = 'activities/failures.ts';
const TRIES = 'activities/tries.ts';
const STORED = 'activities/until-stored.ts';
const EFFECT = 'activities/perform-effect.ts';
const LEDGER = 'src/adapters/postgres/effect-ledger.ts';
const OF_STORES = 'test/adapters/postgres-stores.test.ts';
const ENDINGS = 'src/rules/endings.ts';
const SLOTS = 'src/adapters/temporal/gated-slots.ts';
const DB = 'src/adapters/postgres/db.ts';
const OF_STANDING = 'test/activities/standing-effects.test.ts';
const OF_OUTAGES = 'test/activities/outages.test.ts';
const OF_RUNS = 'test/workflows/outages.test.ts';
const OUTCOMES = 'src/opensentience/session/call-outcomes.ts';
const OF_OUTCOMES = 'test/opensentience/session/call-outcomes.test.ts';
const OF_ENDINGS = 'test/rules/endings.test.ts';
const OF_SLOTS = 'test/adapters/gated-slots.test.ts';
const OF_DATABASES = 'test/adapters/database-errors.test.ts';

export const OF_OUTAGES_AND_DOUBTS: readonly Row[] = [
  [
    98,
    [FAILURES, '(isOutage(code) || isAwaited(code))', 'isAwaited(code)'],
    [OF_OUTAGES, 'no number'],
  ],
  [
    98,
    [TRIES, 'return tally().failures;', 'return Context.current().info.attempt - 1;'],
    [OF_OUTAGES, 'no number|is counted'],
  ],
  [98, [FAILURES, 'ownFailures() + 1 < tries', 'true'], [OF_OUTAGES, 'its last failure is final']],
  [98, [FAILURES, 'lostTries() >= LOST_TRIES', 'false'], [OF_OUTAGES, 'not begun for ever']],
  [98, [STORED, 'if (!isAway ||', 'if (true ||'], [OF_OUTAGES, 'is asked once|kept until it can']],
  [
    98,
    [
      'workflows/activity-options.ts',
      'maximumInterval: 30_000 };',
      'maximumInterval: 30_000, maximumAttempts: 5 };',
    ],
    [OF_RUNS, 'tries of activities have no number'],
  ],
  [
    98,
    ['workflows/failures.ts', "return retryState === 'TIMEOUT';", 'return false;'],
    [OF_RUNS, 'waits anew'],
  ],
  [
    98,
    ['workflows/tool-calls.ts', 'if (endedInOutage(error))', 'if (false)'],
    [OF_RUNS, 'waits anew'],
  ],
  [
    98,
    ['workflows/live-steps.ts', 'throw stepError(error);', 'throw error;'],
    ['test/workflows/timed-nodes.test.ts', 'was cancelled, and did not fail'],
  ],
  [
    98,
    ['workflows/live-steps.ts', '.then(() => scope.cancel());', '.then(() => undefined);'],
    [OF_RUNS, 'is cancelled when somebody says so'],
  ],
  [
    98,
    [FAILURES, 'if (!ports.watch.isThere()) throw handedBack();', ''],
    [OF_OUTAGES, 'is handed back'],
  ],
  [
    98,
    ['activities/recorded-call.ts', 'if (error instanceof SyntaxError)', 'if (error)'],
    ['test/activities/former-effects.test.ts', 'also where the store was away at first'],
  ],
  [
    98,
    ['workflows/child-runs.ts', 'before().some(([, other]) => other.isComing)', 'false'],
    [OF_RUNS, 'keeps the order of the record'],
  ],
  [
    99,
    [LEDGER, 'word.epoch === epoch)', '(word.epoch === epoch || epoch === INHERITED_EPOCH))'],
    [OF_STORES, 'is about that doubt alone'],
  ],
  [
    98,
    [
      'src/adapters/postgres/effect-ledger.ts',
      "if (head) return head.closed ? 'closed' : 'open';",
      "return head ? (head.closed ? 'closed' : 'open') : 'none';",
    ],
    ['test/adapters/one-row.test.ts', 'its calls wait'],
  ],
  [98, [FAILURES, 'watch.doubt();', ''], [OF_OUTAGES, 'no number']],
  [
    98,
    [
      'src/adapters/content/file-content-store.ts',
      '() => probe(folder)',
      '() => probe(unfinished)',
    ],
    ['test/adapters/content-files.test.ts', 'though other folders take and give files'],
  ],
  [98, [SLOTS, ' || !store.isThere()', ''], [OF_SLOTS, 'while the store is away']],
  [98, [DB, '|44|OW', '|44|XX|OW'], [OF_DATABASES, 'XX001']],
  [
    98,
    [
      'src/adapters/postgres/index.ts',
      'UPDATE store_pings SET at_ms = openwop_now_ms()',
      'SELECT 1 FROM store_pings',
    ],
    ['test/adapters/one-row.test.ts', 'away though it answers'],
  ],
  [
    98,
    ['activities/tool-errors.ts', 'said === undefined || isOutage(said)', 'said === undefined'],
    [OF_OUTAGES, 'a tool is away'],
  ],
  [
    99,
    [FAILURES, 'if (!failed.nonRetryable || !instead) throw failed;', 'throw failed;'],
    [OF_OUTAGES, 'fails for good'],
  ],
  [
    99,
    [
      EFFECT,
      "if (known?.kind === 'in-doubt' && !known.isAsked)",
      "if (known?.kind === 'in-doubt')",
    ],
    [OF_OUTAGES, 'fails for good'],
  ],
  [
    99,
    [OUTCOMES, "meaning === 'unknown' && sideEffects", 'false'],
    [OF_OUTCOMES, 'a throw that nobody foresaw'],
  ],
  [
    99,
    [OUTCOMES, 'agentCode !== undefined && !isReply', 'agentCode !== undefined'],
    [OF_OUTCOMES, 'an error in the place of a result'],
  ],
  [
    99,
    ['src/rules/events.ts', 'sideEffects === true ? inDoubt(message)', 'false ? inDoubt(message)'],
    [OF_ENDINGS, 'made'],
  ],
  [99, [ENDINGS, "actionIn(resumeValue ?? null) === 'accept'", 'false'], [OF_ENDINGS, 'permitted']],
  [
    98,
    ['src/translate/recording.ts', '...(untried ? { untried } : {}),', ''],
    [OF_RUNS, 'waits anew'],
  ],
  [
    98,
    ['workflows/failures.ts', "error.retryState !== 'CANCEL_REQUESTED'", 'true'],
    ['test/workflows/timed-nodes.test.ts', 'was cancelled, and did not fail'],
  ],
  [
    99,
    [LEDGER, 'const epoch = wordEpoch(options) + 1;', 'const epoch = 1;'],
    [OF_STORES, 'where a fork has no row, about epoch 1, is about that doubt'],
  ],
  [
    99,
    [LEDGER, 'Math.max(found.epoch, wordEpoch(options))', 'found.epoch'],
    [OF_STORES, 'about a later doubt than the row has, as after a failover, holds for one claim'],
  ],
  [
    34,
    [LEDGER, 'options.idempotent && found.idempotent', 'options.idempotent'],
    [OF_STORES, 'is not repeated, whatever it says later'],
  ],
  [
    34,
    [LEDGER, 'WHEN NOT $11::boolean AND (run_id = $7 OR', 'WHEN (run_id = $7 OR'],
    [OF_STORES, 'is in-doubt in another node'],
  ],
  [
    34,
    [LEDGER, "WHEN state = 'done-without-result' AND args_hash = $9 THEN 'result'", ''],
    [OF_STORES, 'is done-without-result in the same attempt'],
  ],
  [
    34,
    [
      EFFECT,
      'isHarmless: tool !== undefined && !isAskedAbout(tool),',
      'isHarmless: tool?.idempotent === true,',
    ],
    ['test/activities/standing-effects.test.ts', 'where a human left it'],
  ],
  [
    34,
    [
      EFFECT,
      'if (isRefused && (answer.happened || !claim.inDoubt || !claim.isAsked))',
      'if (isRefused)',
    ],
    [OF_STANDING, 'a refusal of its repeat leaves it in doubt'],
  ],
  [
    34,
    [
      LEDGER,
      'isForeign, leaseMs, inDoubt, epoch };',
      'isForeign, leaseMs, epoch, inDoubt: inDoubt && !isForced };',
    ],
    [OF_STANDING, 'a sending by a human’s word'],
  ],
  [
    34,
    [EFFECT, '(isForeign && !told.happened)', 'false'],
    [OF_STANDING, 'what a fork’s source sent is unknown'],
  ],
  [
    34,
    [
      LEDGER,
      "ARRAY['result', 'doubt', 'attempt', 'busy']",
      "ARRAY['doubt', 'result', 'attempt', 'busy']",
    ],
    [OF_STORES, 'what is certain is told first'],
  ],
  [
    34,
    [
      LEDGER,
      "if (options.isHarmless || force === 'settles') return",
      'if (options.isHarmless || force) return',
    ],
    [OF_STORES, 'what is certain is told first'],
  ],
  [
    34,
    [LEDGER, "why || ' ' || epoch || ' ' || effect_id <> ALL", 'effect_id <> ALL'],
    [OF_STORES, 'what is certain is told first'],
  ],
  [
    34,
    [LEDGER, '(inDoubt && found.is_asked)', 'false'],
    [OF_STORES, 'stays with it, whatever its tool says later'],
  ],
  [
    34,
    [EFFECT, 'heldAt.agoMs() >= mostMs;', 'false;'],
    [OF_OUTAGES, 'looks whether that is still its own'],
  ],
  [
    99,
    [EFFECT, "if (known?.kind === 'in-doubt' && !known.isAsked)", 'if (!known)'],
    [OF_OUTAGES, 'the model is told'],
  ],
  [
    99,
    [LEDGER, 'canonicalJson([tenant, series,', 'canonicalJson([tenant, identity.runId,'],
    [OF_STORES, 'a run of a series finds done'],
  ],
  [
    99,
    [LEDGER, 'h.run_id = effects.run_id AND NOT h.closed', 'h.run_id = effects.run_id'],
    [OF_STORES, 'is asked about once'],
  ],
  [
    34,
    [LEDGER, "!found || found.state === 'failed-before-send'", '!found'],
    [OF_STORES, 'a call that was not sent is new'],
  ],
  [
    99,
    [
      LEDGER,
      "AND 'doubt ' || ${EPOCH} || ' ' || effect_id = ANY($3::text[])`,",
      'AND cardinality($3::text[]) > 0`,',
    ],
    [OF_STORES, 'leaves the others asked about'],
  ],
  [
    99,
    ['workflows/tool-calls.ts', 'if (doubt?.epoch === undefined) return', 'if (false) return'],
    ['test/acceptance/fork-effects.test.ts', 'another call of the tool goes to a human'],
  ],
  [
    99,
    [LEDGER, 'run_id = $6, is_told = false, is_asked', 'run_id = $6, is_asked'],
    [OF_STORES, 'is in doubt again, is asked about again'],
  ],
  [
    99,
    ['src/runs/child-input.ts', 'leftTools ? { ...input, leftTools } : input', 'input'],
    ['test/runs/children.test.ts', 'were left above it'],
  ],
  [
    99,
    ['workflows/visit.ts', 'noteLeft(run, cutCalls(left, frame.nodeId));', ''],
    ['test/workflows/timed-nodes.test.ts', 'says so to later calls'],
  ],
  [
    99,
    ['workflows/invocation.ts', '`${call.toolId}#${count(call.toolId)}`', 'callStep'],
    ['test/workflows/agent-children.test.ts', 'in the place of the n-th'],
  ],
  [
    99,
    [EFFECT, 'return isThere || putBack(effect, settlement);', 'return true;'],
    ['test/activities/outages.test.ts', 'whose claim the database has lost'],
  ],
  [
    99,
    [
      EFFECT,
      "return isHeld || putBack(effect, { claim, state: 'claimed', leaseMs });",
      'return isHeld;',
    ],
    ['test/activities/outages.test.ts', 'for longer than a renewal of its lost claim'],
  ],
];
