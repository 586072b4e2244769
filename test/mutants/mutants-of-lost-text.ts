// Mutants of what a failover of the database has lost (architecture §3.6, §4.1, I118, I119): rows of mutants.ts.
import type { Row } from './mutants.ts';

const PLACES = 'src/log/places.ts';
const REBUILD = 'src/log/rebuild.ts';
const DELTAS = 'src/adapters/postgres/log-deltas.ts';
const RESTORE = 'src/adapters/postgres/log-restore.ts';
const FEED = 'src/adapters/postgres/feed-store.ts';
const STREAM = 'src/log/session-stream.ts';
const STREAM_TEST = 'test/log/session-stream.test.ts';
const LOST_TEXT_TEST = 'test/log/lost-text.test.ts';
const OF_STORES = 'test/adapters/postgres-stores.test.ts';
const TIMELINE = 'src/pages/timeline.js';
const MADE_AGAIN = 'src/pages/made-again.js';
const MADE_AGAIN_TEST = 'test/pages/made-again.test.ts';
const PGLITE = 'PGlite with content in a table.*';

export const OF_LOST_TEXT: readonly Row[] = [
  [
    118,
    [
      'src/log/advance.ts',
      "outcome.kind === 'lost' ? await mended(parts, run, outcome.head) : outcome.head",
      'outcome.head',
    ],
    [LOST_TEXT_TEST, 'stands where it was streamed again'],
  ],
  [
    118,
    [PLACES, 'Math.min(entries.length, entriesBefore)', 'entries.length'],
    [LOST_TEXT_TEST, 'what came after it would stand before it'],
  ],
  [
    118,
    [PLACES, 'free < 0 ||', ''],
    [LOST_TEXT_TEST, 'also where other text has its sequences now'],
  ],
  [
    118,
    [PLACES, 'if (!byKey.has(delta.key))', 'if (true)'],
    [LOST_TEXT_TEST, 'of two recordings of one stream the first counts'],
  ],
  [
    118,
    [REBUILD, 'places.get(eventId) !== sequence', 'false'],
    [LOST_TEXT_TEST, 'where rows have come in its place since'],
  ],
  [
    118,
    [
      REBUILD,
      'if (lost.length > 0 || (await isStreaming(',
      'if (lost.length > 0 && (await isStreaming(',
    ],
    [LOST_TEXT_TEST, 'is no loss while another stream is open'],
  ],
  [
    118,
    [REBUILD, 'if (!seen || seen.closed || !isAtCursor(seen, lacking)) return undefined;', ''],
    [LOST_TEXT_TEST, 'the other one is done, and another stream is open'],
  ],
  [
    118,
    ['activities/delta-appender.ts', "(isOutage(code) || code === 'run_not_found')", 'true'],
    ['test/activities/untold-log.test.ts', 'a later try of a turn goes on'],
  ],
  [
    99,
    ['activities/call-tool.ts', 'isOfEndedRun() || (input', 'true || (input'],
    ['test/activities/untold-log.test.ts', 'has the code of a run that has ended'],
  ],
  [
    118,
    ['src/log/projector.ts', 'log.onReconnect(() => this.#passAgain(this.#lostPasses)),', ''],
    ['test/log/projector.test.ts', 'in the seconds that a failover lost'],
  ],
  [
    118,
    ['src/log/sweeper.ts', 'void (this.#knownEnded = new Recent(MAX_KNOWN_ENDED))', 'undefined'],
    ['test/log/sweeper.test.ts', 'finds an end again that a failover'],
  ],
  [
    17,
    [RESTORE, 'stored?.closed !== seen?.closed ||', ''],
    [LOST_TEXT_TEST, 'opens no log again that somebody has ended'],
  ],
  [
    118,
    [RESTORE, 'if (before.retoldFrom !== undefined && !isRetold) return false;', ''],
    [LOST_TEXT_TEST, 'is not brought back by who has read the log before'],
  ],
  [
    118,
    [
      DELTAS,
      'if (isBehind || head.retoldFrom !== undefined)',
      'if (head.retoldFrom !== undefined)',
    ],
    [OF_STORES, `${PGLITE}whose predecessor the database has lost`],
  ],
  [
    118,
    [DELTAS, 'if (isBehind || head.retoldFrom !== undefined)', 'if (isBehind)'],
    [LOST_TEXT_TEST, 'a stream that begins later'],
  ],
  [
    118,
    [
      RESTORE,
      '(!isRetold && stored?.nextSequence !== seen?.nextSequence)',
      'stored?.nextSequence !== seen?.nextSequence',
    ],
    [OF_STORES, `${PGLITE}drops what is streamed, and closes every block`],
  ],
  [
    118,
    [RESTORE, 'await leaveFeed(tx, run, from);', ''],
    [OF_STORES, `${PGLITE}rows that were told again stand at new positions`],
  ],
  [
    118,
    ['src/log/followers.ts', 'await channel.begunAgain(sequence);', ''],
    ['test/log/projector.test.ts', 'has another row there: they begin again'],
  ],
  [
    118,
    ['src/log/followers.ts', '|| eventId !== (seen.eventId ?? eventId)', ''],
    ['test/log/projector.test.ts', 'has another row there: they begin again'],
  ],
  [
    118,
    ['src/log/followers.ts', '...(eventId === undefined ? {} : { eventId })', ''],
    ['test/log/projector.test.ts', 'though they have read nothing yet'],
  ],
  [
    118,
    [
      'src/facade/event-query.ts',
      'Math.min(sequence ?? Infinity, retoldFrom - 1)',
      'sequence ?? -1',
    ],
    ['test/facade/retold.test.ts', 'after 7'],
  ],
  [
    118,
    [RESTORE, 'else if (movedFrom !== undefined) await leaveFeed(tx, run, movedFrom);', ''],
    [LOST_TEXT_TEST, 'the feed gives them again'],
  ],
  [
    118,
    [FEED, 'if (end.given >= after) return end;', 'if (end.given >= 0) return end;'],
    [OF_STORES, `${PGLITE}is not read after a position that nobody was given`],
  ],
  [
    118,
    ['src/log/changes.ts', 'after = undefined;', ''],
    ['test/log/changes.test.ts', 'a position that the database has lost'],
  ],
  [
    118,
    ['src/log/changes.ts', 'onReconnect(endPass)', 'onReconnect(() => {})'],
    ['test/log/changes.test.ts', 'one that a failover has given to others'],
  ],
  [
    118,
    [FEED, 'least(e.sequence, r.retold_from - 1)', 'e.sequence'],
    [OF_STORES, `${PGLITE}a stream goes on after the event it had`],
  ],
  [
    118,
    [STREAM, 'if (found && own && places.isLast(own))', 'if (found && own)'],
    [STREAM_TEST, 'gave it to another event'],
  ],
  [118, [STREAM, '.catch(lostPosition)', ''], [STREAM_TEST, 'has never given their position']],
  [
    118,
    ['src/log/session-places.ts', 'now === position', 'now !== undefined'],
    [STREAM_TEST, 'has their event elsewhere'],
  ],
  [
    118,
    ['src/log/session-places.ts', 'const isGone = now === undefined;', 'const isGone = false;'],
    [STREAM_TEST, 'what they saw last has expired'],
  ],
  [
    118,
    [
      'src/log/session-resume.ts',
      "if (await feed.resumeAfter(tenant, sessionId, eventId)) return 'first';",
      '',
    ],
    ['test/log/session-resume.test.ts', 'at the first event'],
  ],
  [
    118,
    ['src/log/session-resume.ts', 'if (areAsked) return undefined;', 'return undefined;'],
    ['test/log/session-resume.test.ts', 'is refused for now'],
  ],
  [
    119,
    ['src/opensentience/registry-writer.ts', 'this.#unsure.add(agentId);', ';'],
    ['test/opensentience/registry-writer.test.ts', 'puts back'],
  ],
  [
    119,
    ['src/adapters/postgres/agent-registry.ts', 'AND version >= $3', 'AND version = $3'],
    [OF_STORES, `${PGLITE}one that was replaced is not`],
  ],
  [
    118,
    [TIMELINE, 'if (known !== event.eventId) timeline.isRetold = true;', ''],
    [MADE_AGAIN_TEST, 'is in the place of an earlier one'],
  ],
  [
    118,
    [TIMELINE, 'timeline.isRetold || event.sequence <=', 'event.sequence <='],
    [MADE_AGAIN_TEST, 'is not shown, nor is what comes after it'],
  ],
  [
    118,
    [MADE_AGAIN, 'noticeOf(from) !== noticeOf(to) &&', ''],
    [MADE_AGAIN_TEST, 'once: not where it was loaded for this reason'],
  ],
  [
    118,
    [MADE_AGAIN, ' && ![...forms].some(isInUse)', ''],
    [MADE_AGAIN_TEST, 'with text that was typed'],
  ],
  [
    119,
    ['src/app/stored-again.ts', 'isWanted = true;\n        logger', 'logger'],
    ['test/app/stored-again.test.ts', 'stored again'],
  ],
];
