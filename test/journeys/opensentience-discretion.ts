// What must not be told (seed 004 §7): secrets that an agent says, and to operators anything that a run said.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { TEST_API_KEY } from '../support/host.ts';
import { GUEST } from '../support/opensentience/guest-agent.ts';
import { RUDE } from '../support/opensentience/rude-agent.ts';
import { TOOL } from './opensentience-callers.ts';
import { CANARY, type Scene, type Told } from './opensentience-scene.ts';
import { decisionOf, IDS, itHere, itWithAll, progressOf } from './opensentience-told.ts';

const MARK = '[REDACTED:OPENWOP_API_KEY]';

/** What the agents' processes wrote, as the host keeps it. */
async function capturedOutput(scene: Scene): Promise<string> {
  const names = await readdir(scene.path('data'), { recursive: true });
  const logs = names.filter((name) => name.endsWith('.log'));
  return (await Promise.all(logs.map((name) => readFile(scene.path('data', name), 'utf8')))).join(
    '',
  );
}

/** All files of the host's data folder but the database's: content, captured output, lists of processes. */
async function keptFiles(scene: Scene): Promise<string> {
  const entries = await readdir(scene.path('data'), { recursive: true, withFileTypes: true });
  const texts = entries
    .filter(
      (entry) => entry.isFile() && !entry.parentPath.startsWith(scene.path('data', 'postgres')),
    )
    .map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1'));
  return (await Promise.all(texts)).join('\n');
}

export function mannersJourneys(scene: Scene): void {
  describe('seed 004 §7 an agent of bad manners', () => {
    itHere('output against its own schema is an error for the model, and no result', async () => {
      const runId = await scene.run('broken');
      const told = await scene.told(runId);
      expect(told.snapshot.status).toBe('completed');
      expect(decisionOf(told)).toEqual({ code: 'tool_invalid_output', number: null });
      expect(told.text).not.toContain('seven');
    });

    itHere(
      'a secret of the host in output, progress and errors is in no event and no history',
      async () => {
        const runId = await scene.run('gossip');
        const told = await scene.told(runId);
        expect(told.snapshot.status).toBe('completed');
        expect(decisionOf(told)).toEqual({
          heard: `It is ${MARK}.`,
          complaint: expect.stringContaining(`I cannot use ${MARK} here.`) as string,
        });
        const progress = progressOf(told, TOOL.blab);
        for (const shown of [`whole ${MARK}`, `split ${MARK}.`, `{"${MARK}":"${MARK}"}`])
          expect(progress).toContain(shown);
        const history = await scene.history(runId);
        expect(history).toContain(MARK);
        const kept = await keptFiles(scene);
        expect(kept).toContain(`I write ${MARK}.`);
        for (const text of [told.text, history, kept, scene.host.logs.join('\n')])
          expect(text).not.toContain(TEST_API_KEY);
      },
    );
  });
}

/** `desk`: a run that said the canaries. */
export function operatorJourneys(scene: Scene, desk: () => Told): void {
  describe('seed 004 §7 the operator sees what happened, and nothing of what was said', () => {
    itWithAll('sessions, calls and refusals are audited, each with its agent', async () => {
      const audit = await scene.audit();
      const kindsOf = (id: string) =>
        audit.filter(({ agentId }) => agentId === id).map(({ kind }) => kind);
      for (const id of [...IDS, RUDE, GUEST]) expect(kindsOf(id)).toContain('session.opened');
      expect(kindsOf(GUEST)).toEqual(
        expect.arrayContaining(['token.minted', 'token.refused', 'session.closed']),
      );
      const opened = audit.filter(
        ({ kind, agentId }) => kind === 'session.opened' && agentId !== GUEST,
      );
      expect(new Set(opened.map(({ sessionId }) => sessionId)).size).toBe(opened.length);
    });

    itWithAll(
      'arguments and results stand in the run, and in no audit, row, metric or log',
      async () => {
        const { stores, logs } = scene.host;
        const seen: Record<string, string> = {
          audit: JSON.stringify(await scene.audit()),
          agents: (await scene.operator('/agents')).text,
          metrics: (await scene.operator('/metrics')).text,
          rows: JSON.stringify(await stores.agents.instances('default')),
          captured: await capturedOutput(scene),
          logs: logs.join('\n'),
        };
        for (const id of IDS) seen[id] = (await scene.operator(`/agents/${id}`)).text;
        for (const canary of Object.values(CANARY)) {
          expect(desk().text).toContain(canary);
          for (const [where, text] of Object.entries(seen))
            expect([where, text.length > 0, text.includes(canary)]).toEqual([where, true, false]);
        }
      },
    );
  });
}
