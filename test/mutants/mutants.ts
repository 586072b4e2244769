// Mutants: one-line changes of the product, each breaking one invariant of docs/architecture.md §11, and the test that
// must notice. `npm run mutants` tries them. A line that moves takes its mutant along, in the same commit.

import { OF_EFFECTS } from './mutants-of-effects.ts';
import { OF_APPENDS } from './mutants-of-appends.ts';
import { OF_BUILDS } from './mutants-of-builds.ts';
import { OF_DECISIONS } from './mutants-of-decisions.ts';
import { OF_DOORS } from './mutants-of-doors.ts';
import { OF_ENDPOINTS } from './mutants-of-endpoints.ts';
import { OF_ERASURE } from './mutants-of-erasure.ts';
import { OF_COHORTS } from './mutants-of-cohorts.ts';
import { OF_EXCESS_TOLD } from './mutants-of-excess.ts';
import { OF_EXPIRY } from './mutants-of-expiry.ts';
import { OF_FORKS } from './mutants-of-forks.ts';
import { OF_JSON } from './mutants-of-json.ts';
import { OF_KEYS } from './mutants-of-keys.ts';
import { OF_SHOWN_TEXT } from './mutants-of-shown-text.ts';
import { OF_LOST_TEXT } from './mutants-of-lost-text.ts';
import { OF_OUTAGES_AND_DOUBTS } from './mutants-of-outages.ts';
import { OF_REHEARSALS } from './mutants-of-rehearsals.ts';
import { OF_ROWS } from './mutants-of-rows.ts';

export interface Mutant {
  readonly invariant: number;
  readonly file: string;
  /** Occurs once in the file. */
  readonly before: string;
  readonly after: string;
  /** Test file, and a regular expression over the full names of the tests that must fail. */
  readonly killer: string;
  readonly test: string;
}

/** Shape of a row: invariant, [file, before, after], [killer, test]. */
export type Row = readonly [
  number,
  readonly [file: string, before: string, after: string],
  readonly [killer: string, test: string],
];

const IDS = 'src/rules/ids.ts';
const JOURNAL = 'workflows/journal.ts';
const MESSAGES = 'workflows/messages.ts';
const TRANSLATE = 'src/translate/v1.ts';
const APPEND = 'src/adapters/postgres/log-append.ts';
const LEDGER = 'src/adapters/postgres/effect-ledger.ts';
const EFFECT = 'activities/perform-effect.ts';

const OF_IDS = 'test/rules/ids.test.ts';
const OF_JOURNAL = 'test/workflows/journal.test.ts';
const OF_ANSWERS = 'test/workflows/answers.test.ts';
const OF_CALLS = 'test/workflows/equal-calls.test.ts';
const OF_TRANSLATE = 'test/translate/translate.test.ts';
const OF_STORES = 'test/adapters/postgres-stores.test.ts';
const OF_CALL_TOOL = 'test/activities/call-tool.test.ts';

const ROWS: readonly Row[] = [
  [
    1,
    [IDS, 'sha256(utf8ToBytes(`${runId}\\0${key}`))', 'sha256(utf8ToBytes(key))'],
    [OF_IDS, 'are evt- and the KSUID'],
  ],
  [
    2,
    [IDS, '/${tuple.visit}/${tuple.attempt}/', '/${tuple.attempt}/'],
    [OF_IDS, 'differs for every two tuples'],
  ],
  [3, [JOURNAL, 'keys.add(key);', ''], [OF_JOURNAL, 'a key names one fact']],
  [
    4,
    [JOURNAL, 'if (ended) return;\n  claimKey(options.key);', 'claimKey(options.key);'],
    [OF_JOURNAL, 'behind the end nothing is stated'],
  ],
  [
    5,
    [TRANSLATE, '    if (this.#state.ended) return;\n    const { type,', '    const { type,'],
    [OF_TRANSLATE, 'nothing follows the terminal entry'],
  ],
  [
    6,
    [TRANSLATE, '.sort((a, b) => a.at - b.at)', ''],
    [OF_TRANSLATE, 'entries taken back from a cancelled command'],
  ],
  [
    7,
    [
      'src/translate/payloads.ts',
      'return metadataText(payload, CARRIER_METADATA_KEY) === MARK;',
      'return Buffer.from(payload.data ?? []).includes(\'"entries"\');',
    ],
    [OF_TRANSLATE, 'a payload that looks like a carrier without the mark is content'],
  ],
  [
    8,
    [
      'src/translate/payloads.ts',
      '.filter(isCarrier).map(readCarrier)',
      '.filter(isCarrier).flatMap((one) => { try { return [readCarrier(one)]; } catch { return []; } })',
    ],
    [OF_TRANSLATE, 'a marked payload that is no JSON stops the projection'],
  ],
  [
    9,
    [
      TRANSLATE,
      'this.#state.results[activityId] = { timeMs, events: [...result.events] };',
      'for (const event of result.events) this.#write({ key: activityId, event, timeMs });',
    ],
    [OF_TRANSLATE, 'what arrives for an abandoned branch and is never admitted leaves no entry'],
  ],
  [
    10,
    [TRANSLATE, 'result.events[k] = null;', ''],
    [OF_TRANSLATE, 'an event admitted twice is a bug that stops the projection'],
  ],
  [
    11,
    [TRANSLATE, "this.#close('cancelled', timeMs);", '{}'],
    [OF_TRANSLATE, 'Canceled without an ending is run.cancelled'],
  ],
  [
    12,
    ['src/rules/endings.ts', '.sort((a, b) => a.opens.order - b.opens.order)', ''],
    ['test/rules/endings.test.ts', 'closes calls before brackets before nodes'],
  ],
  [
    13,
    [TRANSLATE, 'structuredClone(stored as State)', '(stored as State)'],
    [OF_TRANSLATE, 'leaves the state that it is given as it is'],
  ],
  [
    14,
    [
      'src/translate/translate.ts',
      'VERSIONS[run.translateVersion];',
      'VERSIONS[run.translateVersion] ?? VERSIONS[1];',
    ],
    [OF_TRANSLATE, 'a version of the rules that this release does not know is refused'],
  ],
  [
    15,
    [APPEND, 'sequence: head.nextSequence + index,', 'sequence: head.nextSequence + index + 1,'],
    [OF_STORES, 'PGlite with content in a table.*gives dense sequences and clamped times'],
  ],
  [
    16,
    ['src/rules/clamp.ts', 'Math.max(last, timeMs)', 'timeMs'],
    ['test/rules/clamp.test.ts', 'times never go back'],
  ],
  [
    17,
    [APPEND, "else if (head.closed) outcomes.push({ kind: 'closed', head });", ''],
    [OF_STORES, 'PGlite with content in a table.*after the terminal entry everything is refused'],
  ],
  [
    18,
    [APPEND, 'head.historyEventId !== behind.historyEventId ||', ''],
    [
      OF_STORES,
      'PGlite with content in a table.*a batch behind another cursor is stale and changes nothing',
    ],
  ],
  [
    19,
    ['src/log/places.ts', 'const free = row.sequence - rows.length;', 'const free = 0;'],
    ['test/log/catch-up.test.ts', 'the rebuild gives the same bytes'],
  ],
  [
    19,
    ['src/rules/deltas.ts', 'timestampMs += times[k] ?? 0;', 'timestampMs = times[k] ?? 0;'],
    ['test/rules/deltas.test.ts', 'rebuilt byte for byte'],
  ],
  [
    20,
    ['src/adapters/postgres/log-restore.ts', 'if (open.length > 0 && !isRetold) return false;', ''],
    [OF_STORES, 'PGlite with content in a table.*is refused while a block is open'],
  ],
  [
    21,
    [
      'src/adapters/postgres/log-deltas.ts',
      "if (block?.closed) return { kind: 'refused', reason: 'block-closed' };",
      '',
    ],
    [OF_STORES, 'PGlite with content in a table.*behind a close, and by an older try'],
  ],
  [
    22,
    ['src/adapters/postgres/feed-store.ts', 'endsAt: end?.ends_at ?? 0', 'endsAt: end?.given ?? 0'],
    ['test/adapters/postgres-feed.test.ts', 'a row is read only when no lower one may still come'],
  ],
  [
    23,
    [
      'src/adapters/postgres/feed-store.ts',
      'greatest(feed_cursors.position, excluded.position)',
      'excluded.position',
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*a named consumer has a durable cursor that never goes back',
    ],
  ],
  [
    24,
    [
      'src/adapters/postgres/log-restore.ts',
      'WHERE run_id = $1 AND tenant_id = $3 AND sequence >= $2',
      'WHERE run_id = $1 AND tenant_id = $3 AND sequence >= 0 * $2::int',
    ],
    [OF_STORES, 'PGlite with content in a table.*a rebuild keeps the positions of rows that stay'],
  ],
  [
    25,
    ['src/log/log.ts', 'return { head, stale: true,', 'return { head, stale: false,'],
    ['test/log/catch-up.test.ts', 'Temporal away: what is stored, marked stale'],
  ],
  [
    26,
    [
      MESSAGES,
      "if (open.schemaDigest !== message.schemaDigest) return 'interrupt_already_resolved';",
      '',
    ],
    [OF_ANSWERS, 'checked against another schema is refused'],
  ],
  [
    27,
    [MESSAGES, 'deadlineMs !== undefined && atMs >= deadlineMs', 'atMs > (deadlineMs ?? Infinity)'],
    [OF_ANSWERS, 'at the end of its time or later is refused'],
  ],
  [
    27,
    [MESSAGES, 'const ends = [open.deadlineMs, ', 'const ends = ['],
    [OF_ANSWERS, 'at the end of its time or later is refused'],
  ],
  [
    28,
    [
      MESSAGES,
      'const open = run.state.interrupts[message.interruptId];\n  if (open?.nodeId',
      'const open = Object.values(run.state.interrupts).at(0);\n  if (open?.nodeId',
    ],
    [OF_ANSWERS, 'to another question of the same node is refused'],
  ],
  [
    28,
    ['src/runs/answer.ts', 'interrupt.interruptId === interruptId)', 'nodeId !== interruptId)'],
    ['test/runs/answer.test.ts', 'one that is named is answered'],
  ],
  [
    29,
    [MESSAGES, 'if (known) return known;', ''],
    [OF_ANSWERS, 'comes again under its id gets the first outcome'],
  ],
  [
    30,
    [
      'workflows/interrupts.ts',
      "open.resolution = 'timeout';",
      "open.resolution = { value: { action: 'accept' }, resolvedBy: '', key: open.suspendedKey };",
    ],
    [OF_ANSWERS, 'a gate that nobody answers never grants'],
  ],
  [
    31,
    ['workflows/invocation.ts', 'occurrences[name] = before + 1;', 'occurrences[name] = before;'],
    [OF_CALLS, 'two equal calls of one turn are two effects'],
  ],
  [
    31,
    [LEDGER, 'toolId, argsHash, occurrence]))}`;', 'toolId, argsHash]))}`;'],
    [OF_CALL_TOOL, 'another occurrence of the same call is another effect'],
  ],
  [
    32,
    [
      EFFECT,
      'const claim = await claimEffect(effect, word);',
      "const claim = { kind: 'perform' as const, effectId: `e-${word}`, epoch: 1, inDoubt: false, isAsked: true, isForeign: false };",
    ],
    // Its settlement alone would be put back, as after a failover.
    [OF_CALL_TOOL, 'a done effect is returned, not performed'],
  ],
  [
    33,
    [LEDGER, "if (run === 'closed') return { kind: 'run-closed' };", ''],
    [OF_CALL_TOOL, 'nothing is performed for a run that has ended'],
  ],
  [
    34,
    [LEDGER, 'options.idempotent && found.idempotent && isSameKey', 'isSameKey'],
    [OF_CALL_TOOL, 'not idempotent: a throw after sending is in doubt and never repeated'],
  ],
  [
    35,
    [EFFECT, 'return tool?.idempotent === true;', 'return tool?.idempotent !== false;'],
    [OF_CALL_TOOL, 'a tool that does not say that it is idempotent is not'],
  ],
  [
    36,
    [
      'activities/call-tool.ts',
      'const isInSurface = input.tools.includes(toolId);',
      'const isInSurface = input.tools.push(toolId) > 0;',
    ],
    [OF_CALL_TOOL, 'a tool outside it is forbidden and not performed'],
  ],
  [
    37,
    [
      EFFECT,
      'const outcome = ports.redactor.json(answer.outcome ?? null);',
      'const outcome = answer.outcome ?? null;',
    ],
    [OF_CALL_TOOL, 'secrets in outcomes and messages are redacted'],
  ],
  [
    38,
    [
      'src/rules/redaction.ts',
      'Math.min(openSecretAt(this.#held, this.#secrets), openShapeAt(this.#held));',
      'this.#held.length;',
    ],
    ['test/rules/redaction.test.ts', 'in pieces of every size it shows what the whole shows'],
  ],
  [
    39,
    ['src/rules/untrusted.ts', "text.replace(CLOSING_INSIDE, '<$1\\\\/$2')", 'text'],
    ['test/rules/reducers.test.ts', 'cannot break out'],
  ],
  [
    40,
    ['src/rules/confidence.ts', 'confidence < threshold;', 'confidence <= threshold;'],
    ['test/rules/confidence.test.ts', 'equal goes on'],
  ],
  [
    41,
    [
      'src/adapters/postgres/run-store.ts',
      'return inserted.length > 0 ? { kind:',
      'return inserted.length >= 0 ? { kind:',
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*of concurrent acceptances with one key exactly one inserts its run',
    ],
  ],
  [
    42,
    [
      'src/adapters/postgres/idempotency-store.ts',
      "if (!(await isSameRequest(db, record, claim))) return { kind: 'mismatch' };",
      '',
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*another body is a mismatch: running, abandoned and answered',
    ],
  ],
  [
    43,
    [
      'src/adapters/postgres/run-store.ts',
      'FROM runs WHERE run_id = $1 AND tenant_id = $2`',
      "FROM runs WHERE run_id = $1 AND $2::text <> ''`",
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*a run of another tenant is not found and not listed',
    ],
  ],
  [
    43,
    [
      'src/adapters/postgres/log-append.ts',
      'FROM run_heads WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE`',
      "FROM run_heads WHERE run_id = $1 AND $2::text <> '' FOR UPDATE`",
    ],
    [
      OF_STORES,
      'PGlite with content in a table.*under the ref of another tenant nothing is changed of it: append',
    ],
  ],
  [
    44,
    ['workflows/nodes/delay.ts', 'steps.now(key) + value', 'Date.now() + value'],
    [
      'test/tidy.test.ts',
      'workflow code reaches time, the world and people through live Steps alone',
    ],
  ],
  [
    45,
    [
      'src/rules/clamp.ts',
      'export function clampTimestamps(',
      "import 'node:fs';\nexport function clampTimestamps(",
    ],
    ['test/tidy.test.ts', 'every room imports only what its row names'],
  ],
  [
    46,
    [
      'src/app/config.ts',
      'if (key === undefined && !isLoopback(host)) {',
      'if (!isLoopback(host) && host === key) {',
    ],
    ['test/app/config.test.ts', 'another host without key'],
  ],
  [
    47,
    ['src/opensentience/tokens.ts', 'if (found) outstanding.delete(found);', ''],
    ['test/opensentience/tokens.test.ts', 'used twice: refused'],
  ],
  [
    48,
    ['src/pages/timeline-html.js', ".replaceAll('<', '&lt;')", ''],
    ['test/pages/render.test.ts', 'in events, questions, names, notices and errors'],
  ],
  [
    48,
    ['src/pages/question.ts', 'data-live="${escapeExact(name)}">', 'data-live="${name}">'],
    ['test/pages/render.test.ts', 'in events, questions, names, notices and errors'],
  ],
  [
    49,
    [
      'src/adapters/temporal/codec.ts',
      '      decipher.final(),\n    ];\n    const { metadata',
      '    ];\n    const { metadata',
    ],
    ['test/adapters/codec.test.ts', 'every tampered byte, a cut payload and a swapped key id'],
  ],
  [
    50,
    [TRANSLATE, '      this.#state.results = {};\n', ''],
    [OF_TRANSLATE, 'continue-as-new drains its carrier'],
  ],
  [
    50,
    [TRANSLATE, '      this.#state.activities = {};\n', ''],
    [OF_TRANSLATE, 'continue-as-new drains its carrier'],
  ],
  [
    51,
    ['src/facade/auth.ts', 'authorization !== undefined ||', ''],
    ['test/facade/access.test.ts', 'a page: a wrong bearer too'],
  ],
  [
    51,
    [
      'src/facade/auth.ts',
      'if (!caller.scopes.includes(scope))',
      'if (caller.scopes.length === 0)',
    ],
    ['test/facade/access.test.ts', 'asks for a scope that its cookie has not'],
  ],
  [
    52,
    [
      'src/facade/urls.ts',
      "return major.ids.bind('run', runId, caller.tenant)",
      'return runId || String(major) + caller.tenant',
    ],
    ['test/facade/majors.test.ts', 'ids are bound in bodies'],
  ],
  [
    52,
    ['src/facade/sse.ts', 'shown.typeOf(row.type)', 'row.type'],
    ['test/facade/majors.test.ts', 'rows are rendered by the era of the run and the major'],
  ],
  [
    53,
    [
      'src/facade/pages/start.ts',
      'canonicalJson([csrfToken, kind, id, form])',
      'canonicalJson([csrfToken, kind, id, form, randomBytes(8).toString("hex")])',
    ],
    ['test/facade/host-session.test.ts', 'starts one run, however many clicks come'],
  ],
  [
    55,
    [
      'src/facade/host-sessions.ts',
      'if (found) return sessionOf(found.tenant, token, HOST_SESSION);',
      "if (found) return sessionOf('default', token, HOST_SESSION);",
    ],
    ['test/facade/host-session.test.ts', 'of another tenant sees no run of this one'],
  ],
  [
    56,
    [
      'src/facade/wrong-keys.ts',
      'by.endsMs.push(atMs + WINDOW_MS);',
      'setTimeout(() => by.endsMs.push(atMs + WINDOW_MS), 1_000);',
    ],
    ['test/facade/wrong-keys.test.ts', 'beyond the limit of one client'],
  ],
  [
    57,
    [
      'src/log/fold.ts',
      'const timed = run ? timedInterrupts(snapshot, run) : [];',
      'const timed = run ? openInterrupts(snapshot) : [];',
    ],
    [OF_STORES, 'what a list tells of a run is what its snapshot tells'],
  ],
  [
    60,
    ['src/pages/start-form.ts', "sensitive ? '' : (model.form", '(model.form'],
    ['test/pages/start-form.test.ts', 'a sensitive value is never in the page'],
  ],
  [
    61,
    ['src/words/printable.js', 'return value.replace(IN_VALUE, shown);', 'return value;'],
    ['test/cli/agents.test.ts', 'nothing that an agent says is obeyed by the terminal'],
  ],
  [
    62,
    [
      'src/rules/ids.ts',
      'const name = JSON.stringify([parentRunId, callId, index]);',
      'const name = JSON.stringify([parentRunId, callId]) + String(index - index);',
    ],
    ['test/workflows/child-runs.test.ts', 'its id is a function of parent, call and index'],
  ],
  [
    63,
    ['src/adapters/postgres/family-store.ts', 'AND NOT closed FOR SHARE', 'FOR SHARE'],
    [OF_STORES, 'no child begins for a parent that has ended'],
  ],
  [
    64,
    [
      'workflows/child-runs.ts',
      'const open = children.filter((child) => !isLeft(child) && isOpen(run, child));',
      'const open = children.filter((child) => isLeft(child) && isOpen(run, child));',
    ],
    ['test/workflows/child-runs.test.ts', 'while it is waited for: the child is told'],
  ],
  [
    65,
    [
      'src/adapters/postgres/family-store.ts',
      'WHERE run_families.descendants < ${limit}::bigint',
      'WHERE ${limit}::bigint > 0',
    ],
    [OF_STORES, 'counts below the root over all generations'],
  ],
  [
    66,
    [
      'src/runs/child-input.ts',
      '({ name, sensitive }) => sensitive && harvest.includes(name)',
      '({ name, sensitive }) => !name && sensitive && harvest.includes(name)',
    ],
    ['test/runs/children.test.ts', 'a mapping takes no sensitive variable'],
  ],
  ...OF_COHORTS,
  ...OF_DECISIONS,
  ...OF_EXCESS_TOLD,
  ...OF_EXPIRY,
  ...OF_REHEARSALS,
  ...OF_FORKS,
  ...OF_BUILDS,
  ...OF_APPENDS,
  ...OF_DOORS,
  ...OF_ERASURE,
  ...OF_EFFECTS,
  ...OF_ROWS,
  ...OF_KEYS,
  ...OF_JSON,
  ...OF_SHOWN_TEXT,
  ...OF_OUTAGES_AND_DOUBTS,
  ...OF_LOST_TEXT,
  ...OF_ENDPOINTS,
];

export const MUTANTS: readonly Mutant[] = ROWS.map(
  ([invariant, [file, before, after], [killer, test]]) => ({
    invariant,
    file,
    before,
    after,
    killer,
    test,
  }),
);
