// Recorded histories stay true for ever (architecture §2.5, §8): the workflow code of today replays them, states the same
// journal, and translate makes the same log of them, byte for byte.
import { fileURLToPath } from 'node:url';
import proto from '@temporalio/proto';
import { bundleWorkflowCode, type InjectedSinks } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';
import { inOneScope } from '../../src/adapters/temporal/bundle-config.ts';
import type { Carrier, JournalEntry } from '../../src/rules/journal.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { asStreamed } from '../../src/log/places.ts';
import { translate, type LogEntry, type PlacedDeltas } from '../../src/translate/translate.ts';
import type { JournalSinks } from '../../workflows/interceptors.ts';
import type { GoldenSinks } from '../support/golden/interceptor.ts';
import { cohortRecordings, recordings, type Recording } from '../support/golden/recording.ts';
import { openReplayer, type Replayer } from '../support/replayer.ts';
import { carriersOf, quietRuntime } from '../support/run-workflow.ts';

const History = proto.temporal.api.history.v1.History;
const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

let replayer: Replayer;
/** What the replay under way states. */
let today: Carrier[] = [];
const sinks: InjectedSinks<JournalSinks & GoldenSinks> = {
  journal: { hint: { fn: () => undefined, callDuringReplay: false } },
  golden: { carriers: { fn: (_info, carriers) => void today.push(...carriers), callDuringReplay: true } },
};

beforeAll(async () => {
  quietRuntime();
  const silent = () => undefined;
  const bundle = await bundleWorkflowCode({
    workflowsPath: path('../../workflows/index.ts'),
    workflowInterceptorModules: [path('../support/golden/interceptor.ts'), path('../../workflows/interceptors.ts')],
    webpackConfigHook: inOneScope,
    logger: { log: silent, trace: silent, debug: silent, info: silent, warn: silent, error: silent },
  });
  replayer = openReplayer({ bundle, sinks });
});

/** By ordinal: an entry taken back from a dropped command is told twice and counts once. */
function inOrder(carriers: readonly Carrier[]): JournalEntry[] {
  const entries = new Map<number, JournalEntry>();
  for (const { at, entries: carried } of carriers) carried.forEach((entry, index) => entries.set(at[index] ?? -1, entry));
  return [...entries].sort(([a], [b]) => a - b).map(([, entry]) => entry);
}

function logOf({ runId, translateVersion, segments }: Recording) {
  let state: JsonValue = null;
  const entries: LogEntry[] = [];
  const deltas: PlacedDeltas[] = [];
  for (const segment of segments) {
    const events = History.decode(Buffer.from(segment, 'base64')).events;
    const told = translate(events, state, { runId, translateVersion });
    ({ state } = told);
    for (const recorded of told.deltas)
      deltas.push({ ...recorded, entriesBefore: entries.length + recorded.entriesBefore });
    entries.push(...told.entries);
  }
  return asStreamed(runId, entries, { recorded: deltas }) ?? [];
}

describe.each(recordings())('$name', (recording) => {
  it('is translated to the same log, byte for byte', () => {
    expect(logOf(recording)).toEqual(recording.rows);
  });

  it('replays, and the journal of today is the recorded one', async () => {
    for (const segment of recording.segments) {
      const history = History.decode(Buffer.from(segment, 'base64'));
      today = [];
      expect(await replayer.replay({ workflowId: recording.runId, history })).toBeUndefined();
      const recorded = inOrder(history.events.flatMap((event) => carriersOf(event)));
      expect(inOrder(today).slice(0, recorded.length)).toEqual(recorded);
    }
  });
});

/** A cohort is no run and states no journal: its commands alone are compared, by Temporal's own check. */
describe.each(cohortRecordings())('the cohort $name', ({ cohortId, segments }) => {
  it('replays', async () => {
    for (const segment of segments) {
      const history = History.decode(Buffer.from(segment, 'base64'));
      expect(await replayer.replay({ workflowId: cohortId, history })).toBeUndefined();
    }
  });
});
