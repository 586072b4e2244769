// HTTP suite: answering what a run waits for (interrupt.md).
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import {
  ended,
  expectLawful,
  nextQuestion,
  types,
  waiting,
  type Envelope,
  type Suite,
} from './suite-parts.ts';

export function interruptTests({ host, log, resolve }: Suite): void {
  const started = async (workflowId: string): Promise<string> => {
    const runId = await host().startRun({ workflowId });
    await host().waitFor(runId, waiting);
    return runId;
  };
  describe('interrupt.md: answering a run', () => {
    it('approval: waits at the node, takes accept, completes; a second answer is 409', async () => {
      const runId = await started('approval');
      const { body } = await host().api<RunSnapshot>(`/v1/runs/${runId}`);
      expect(body).toMatchObject({
        status: 'waiting-approval',
        currentNodeId: 'gate',
        interrupt: { kind: 'approval', nodeId: 'gate' },
      });
      // Nobody said how long: a week.
      const { requestedAt, expiresAt } = body.interrupt as Record<string, string>;
      expect(Date.parse(expiresAt ?? '') - Date.parse(requestedAt ?? '')).toBe(7 * 24 * 3_600_000);
      const answer = await resolve(runId, 'gate', { action: 'accept' });
      expect([answer.status, answer.body]).toEqual([
        200,
        { runId, nodeId: 'gate', status: 'resolved' },
      ]);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      expectLawful(await log(runId));
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([409, 'interrupt_already_resolved']);
    });

    it('a wrong answer is 400 and the run still waits; an unknown node is 404', async () => {
      const runId = await started('approval');
      for (const value of [{ action: 'maybe' }, { action: 'refine' }, {}, 'accept', null, 7]) {
        const { status, body } = await resolve(runId, 'gate', value);
        expect([status, body.error]).toEqual([400, 'validation_error']);
      }
      const closed = await host().api<Envelope>(`/v1/runs/${runId}/interrupts/gate`, {
        body: { resumeValue: { action: 'accept' }, more: 1 },
      });
      expect([closed.status, closed.body.error]).toEqual([400, 'validation_error']);
      expect((await host().api(`/v1/runs/${runId}/interrupts/gate`, { body: {} })).status).toBe(
        400,
      );
      const large = await resolve(runId, 'gate', {
        action: 'accept',
        editedArtifactData: 'x'.repeat(40_000),
      });
      expect([large.status, large.body.error]).toEqual([413, 'payload_too_large']);
      const unknown = await resolve(runId, 'nowhere', { action: 'accept' });
      expect([unknown.status, unknown.body.error]).toEqual([404, 'interrupt_not_found']);
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-approval',
      );
      expect((await resolve(runId, 'gate', { action: 'reject' })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('failed');
    });

    it('an answer of another name does what it declares, and no other one is taken', async () => {
      for (const [action, led] of [
        ['approve', 'pay'],
        ['deny', 'tell'],
      ] as const) {
        const runId = await started('payment');
        for (const other of ['accept', 'reject', 'Approve', 'approve '])
          expect((await resolve(runId, 'gate', { action: other })).status).toBe(400);
        expect((await resolve(runId, 'gate', { action })).status).toBe(200);
        expect((await host().waitFor(runId, ended)).status).toBe('completed');
        const begun = (await log(runId)).filter(({ type }) => type === 'node.started');
        expect(begun.map(({ nodeId }) => nodeId)).toEqual(['gate', led]);
      }
    });

    it('clarification: waiting-input, answers as an object', async () => {
      const runId = await started('clarify');
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-input',
      );
      expect((await resolve(runId, 'ask', { answers: { q1: 'blue' } })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
      expect(types(await log(runId))).toContain('clarification.resolved');
    });

    it('an answer that names its interrupt reaches that one: resolved 409, never asked 404', async () => {
      const runId = await started('asking-again');
      const send = (interruptId: unknown) =>
        host().api<Envelope>(`/v1/runs/${runId}/interrupts/gate`, {
          body: { resumeValue: { action: 'accept' }, interruptId },
        });
      const first = await nextQuestion(host(), runId);
      expect((await send(first)).status).toBe(200);
      const second = await nextQuestion(host(), runId, first);
      const late = await send(first);
      expect([late.status, late.body.error]).toEqual([409, 'interrupt_already_resolved']);
      const unknown = await send('int-of-no-run');
      expect([unknown.status, unknown.body.error]).toEqual([404, 'interrupt_not_found']);
      expect((await send(7)).status).toBe(400);
      expect(await nextQuestion(host(), runId)).toBe(second);
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
      const closed = await send(second);
      expect([closed.status, closed.body.error]).toEqual([422, 'interrupt_cancelled']);
      const answered = await send(first);
      expect([answered.status, answered.body.error]).toEqual([409, 'interrupt_already_resolved']);
    });

    it('two clients at once: one is taken, the other gets 409', async () => {
      const runId = await started('approval');
      const answers = await Promise.all([
        resolve(runId, 'gate', { action: 'accept' }),
        resolve(runId, 'gate', { action: 'reject' }),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      await host().waitFor(runId, ended);
      expect(types(await log(runId)).filter((type) => type === 'interrupt.resolved').length).toBe(
        1,
      );
    });

    it('the same key gives the same answer, another body 409', async () => {
      const runId = await started('approval');
      const key = `r-${runId}`;
      const first = await resolve(runId, 'gate', { action: 'accept' }, key);
      await host().waitFor(runId, ended);
      const again = await resolve(runId, 'gate', { action: 'accept' }, key);
      expect([again.status, again.text]).toEqual([200, first.text]);
      expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
      const other = await resolve(runId, 'gate', { action: 'reject' }, key);
      expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
    });

    /** An answer whose 503 the test is about. */
    const refusedOnce = (runId: string, nodeId: string, resumeValue: unknown, key: string) =>
      host().api(`/v1/runs/${runId}/interrupts/${nodeId}`, {
        body: { resumeValue },
        headers: { 'idempotency-key': key },
        isPatient: false,
      });

    /** From now on the answers of the host are lost once each: what they tell is decided, and the client gets 503. */
    const losingOneAnswer = (): void => {
      const { idempotency } = host().stores;
      const complete = idempotency.complete.bind(idempotency);
      idempotency.complete = async () => {
        idempotency.complete = complete;
        throw new HostError('service_unavailable');
      };
    };

    it('a retry with its key never answers the next question, also when the first try decided nothing', async () => {
      const runId = await started('asking-again');
      const key = `stale-${runId}`;
      const first = await nextQuestion(host(), runId);
      const { log: hostLog } = host();
      const fresh = hostLog.fresh.bind(hostLog);
      // Temporal is away while the log is read.
      hostLog.fresh = async (asked) => {
        hostLog.fresh = fresh;
        return { ...(await fresh(asked)), stale: true };
      };
      expect((await refusedOnce(runId, 'gate', { action: 'accept' }, key)).status).toBe(503);
      expect((await resolve(runId, 'gate', { action: 'accept' })).status).toBe(200);
      const second = await nextQuestion(host(), runId, first);
      const retry = await resolve(runId, 'gate', { action: 'accept' }, key);
      expect([retry.status, retry.body.error]).toEqual([409, 'interrupt_already_resolved']);
      expect(await nextQuestion(host(), runId)).toBe(second);
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
    });

    it('a retry whose first answer was lost gets it, whatever the node asks now', async () => {
      const runId = await started('asking-twice');
      const key = `lost-${runId}`;
      const first = await nextQuestion(host(), runId);
      losingOneAnswer();
      expect((await refusedOnce(runId, 'desk', { answers: { q1: 'A-1' } }, key)).status).toBe(503);
      const second = await nextQuestion(host(), runId, first);
      const retry = await resolve(runId, 'desk', { answers: { q1: 'A-1' } }, key);
      expect([retry.status, retry.body.status]).toEqual([200, 'resolved']);
      expect(await nextQuestion(host(), runId)).toBe(second);
      expect((await resolve(runId, 'desk', { answers: { q2: 'B-2' } })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
    });

    it('a retry of a vote that was counted gets that answer, also when the run is cancelled since', async () => {
      const runId = await started('quorum');
      const key = `vote-${runId}`;
      losingOneAnswer();
      const vote = { action: 'accept', voter: 'a' };
      expect((await refusedOnce(runId, 'gate', vote, key)).status).toBe(503);
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
      const retry = await resolve(runId, 'gate', vote, key);
      expect([retry.status, retry.body.status]).toEqual([200, 'open']);
    });

    it('a vote that does not decide leaves the run waiting; the next one ends the wait', async () => {
      const runId = await started('quorum');
      expect((await resolve(runId, 'gate', { action: 'accept', voter: 'a' })).body.status).toBe(
        'open',
      );
      expect((await host().api<RunSnapshot>(`/v1/runs/${runId}`)).body.status).toBe(
        'waiting-approval',
      );
      expect((await resolve(runId, 'gate', { action: 'accept', voter: 'b' })).body.status).toBe(
        'resolved',
      );
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
    });

    it('after its deadline an interrupt is 410 interrupt_expired, and nothing was granted', async () => {
      const runId = await host().startRun({ workflowId: 'expiring' });
      const snapshot = await host().waitFor(runId, ended);
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'interrupt_timeout' } });
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([410, 'interrupt_expired']);
    });

    it('of a cancelled run it is 422 interrupt_cancelled', async () => {
      const runId = await started('approval');
      await host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' });
      await host().waitFor(runId, ended);
      const late = await resolve(runId, 'gate', { action: 'accept' });
      expect([late.status, late.body.error]).toEqual([422, 'interrupt_cancelled']);
    });

    it('cancel against answer: at least one wins, and the run ends', async () => {
      const runId = await started('approval');
      const [cancel, answer] = await Promise.all([
        host().api(`/v1/runs/${runId}/cancel`, { method: 'POST' }),
        resolve(runId, 'gate', { action: 'accept' }),
      ]);
      expect(cancel.status).toBe(200);
      expect([200, 409, 410, 422]).toContain(answer.status);
      await host().waitFor(runId, ended);
      expectLawful(await log(runId));
    });

    it('two gates at once are answered by their nodes', async () => {
      const runId = await started('two-gates');
      await host().waitFor(runId, ({ nodeStates }) => Object.keys(nodeStates ?? {}).length === 3);
      expect((await resolve(runId, 'right', { action: 'accept' })).status).toBe(200);
      const between = await host().api<RunSnapshot>(`/v1/runs/${runId}`);
      expect(between.body).toMatchObject({ status: 'waiting-approval', currentNodeId: 'left' });
      expect((await resolve(runId, 'left', { action: 'accept' })).status).toBe(200);
      expect((await host().waitFor(runId, ended)).status).toBe('completed');
    });
  });
}
