// What outlives the host: no agent does; runs that wait for a human or for a tool do, and so does what agents
// keep. At the end nothing anywhere holds a secret.
import { describe, expect } from 'vitest';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { isThere } from '../../src/system/processes.ts';
import { TEST_API_KEY, until } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { LASTING_STEPS, TOOL } from './opensentience-callers.ts';
import { asked, CANARY, EXAMPLES, type Scene, type Told } from './opensentience-scene.ts';
import { decisionOf, IDS, isProgress, itWithAll, progressOf } from './opensentience-told.ts';
import { dump } from './suite-lasting.ts';
import { runRef } from '../support/run-ref.ts';

/** Events of a history after which the run goes on in another. */
const FORCED_AFTER = 12;

/** Told once, however many tries it took. */
const REPORT = Array.from(
  { length: LASTING_STEPS },
  (_, index) => `step ${index + 1} of ${LASTING_STEPS}\n`,
).join('');

/** `desk`: a run that ended before. */
export function restartJourneys(scene: Scene, desk: () => Told): void {
  describe('the host stops and starts again', () => {
    let patient = '';
    let working = '';

    itWithAll(
      'it stops while a human is asked and while a tool works: no agent is left',
      async () => {
        patient = await scene.run('poster', { text: 'asked before, posted after' });
        expect((await scene.told(patient, asked)).snapshot.status).toBe('waiting-approval');
        working = await scene.run('reporter');
        await until(
          async () => (await scene.told(working, () => true)).events.some(isProgress),
          'the tool works',
        );
        const pids = await scene.launched();
        expect(pids.length).toBe(EXAMPLES.length + 1);
        await scene.stop();
        expect(pids.filter(isThere)).toEqual([]);
      },
    );

    itWithAll(
      'the next host, which encrypts, has agents anew, with what they kept, and goes on with the runs',
      async () => {
        const before = await scene.entries();
        await scene.start({ encryption: true, facade: { forceContinueAsNewAfter: FORCED_AFTER } });
        const read = await scene.told(await scene.run('reader'));
        expect(decisionOf(read)).toEqual({ count: 1 });
        await scene.answer(patient, 'accept');
        const number = before.length + 1;
        expect(decisionOf(await scene.told(patient))).toMatchObject({ number });
        expect((await scene.entries()).length).toBe(number);
        const report = await scene.told(working);
        expect(decisionOf(report)).toEqual({ done: true });
        expect(report.of('agent.toolReturned').map(({ status }) => status)).toEqual(['ok']);
        expect(progressOf(report, TOOL.slowReport)).toBe(REPORT);
        expect((await scene.told(desk().snapshot.runId)).text).toBe(desk().text);
        for (const id of IDS) await scene.connected(id);
      },
    );

    itWithAll(
      'architecture §4 encrypted, and in many segments: the run is told as one, and history holds none of it',
      async () => {
        const { argument: text, result: word } = CANARY;
        const runId = await scene.run('desk', { title: 'Another', text, word });
        expect((await scene.told(runId, asked)).snapshot.status).toBe('waiting-approval');
        await scene.answer(runId, 'accept');
        const told = await scene.told(runId);
        expect(decisionOf(told)).toMatchObject({ title: 'Another', matches: 1 });
        expect((await scene.host.stores.segments.ofRun(runRef(runId))).length).toBeGreaterThan(1);
        const history = await scene.history(runId);
        for (const said of [text, word, 'agent.toolCalled']) expect(history).not.toContain(said);
        await checkInvariants(scene.host, scene.runs);
        expect((await scene.host.log.rebuildAll()).refused).toEqual([]);
        expect((await scene.told(runId)).text).toBe(told.text);
      },
    );

    itWithAll('seed 004 §5.1 no table and no log line holds a secret or a token', async () => {
      await scene.stop();
      const kept = { kind: 'pglite', dir: scene.path('data', 'postgres') } as const;
      const { db, close } = await openDatabase(kept, quietLogger);
      const rows = await dump(db).finally(close);
      expect(rows).toContain('session.opened');
      for (const secret of [TEST_API_KEY, ...scene.tokens])
        for (const form of [secret, Buffer.from(secret).toString('hex')])
          for (const text of [rows, scene.oldLogs.join('\n')]) expect(text).not.toContain(form);
    });
  });
}
