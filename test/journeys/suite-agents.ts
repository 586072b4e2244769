// One agent for each behaviour of a live invocation: streaming, verbosity, tools, schemas, thresholds
// (RFC 0077 §B, RFC 0024, RFC 0002 §F; multi-agent-execution.md).
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { deltasOf, payloadOf, shapeOf, textOf } from './brackets.ts';
import { waiting, type Journey, type Told } from './journey.ts';
import * as agents from './journey-workflows.ts';

const decisionOf = ({ snapshot }: Told): unknown =>
  (snapshot.outputs as JsonObject | undefined)?.decision;
const payloads = ({ events }: Told, type: string): JsonObject[] =>
  events.filter((event) => event.type === type).map(payloadOf);
const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);

function streaming(journey: Journey): void {
  it('RFC 0024 debug shows every delta live, ids dense; updates shows none; both end with the bytes of the JSON read', async () => {
    const runId = await journey.run(agents.workflowOf(agents.SPEAKER));
    const whole = journey.stream(runId, '?streamMode=debug');
    const updates = journey.stream(runId, '?streamMode=updates');
    await journey.stream(
      runId,
      '?streamMode=debug',
      ({ event }) => event === 'agent.reasoning.delta',
    );
    const then = (await journey.events(runId)).events.map(({ type }) => type);
    expect(then).toContain('agent.reasoning.delta');
    expect(then, 'the model still speaks when its first words are shown').not.toContain(
      'agent.reasoned',
    );
    const { events } = await journey.told(runId);
    const { frames } = await whole;
    expect(frames.map(({ id }) => Number(id))).toEqual(frames.map((_, index) => index));
    const { text } = await journey.events(runId);
    expect(text).toContain(frames.map(({ data }) => data).join(','));
    expect(frames.length).toBe(events.length);
    const deltas = events.filter(({ type }) => type === 'agent.reasoning.delta');
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltasOf(events)).toBe(agents.SPEECH.join(''));
    const shown = (await updates).frames.map(({ event }) => event);
    expect(shown).not.toContain('agent.reasoning.delta');
    expect(shown.at(-1)).toBe('run.completed');
  });

  it('verbosity: a summary is bounded, full holds more, off shows no reasoning at all', async () => {
    const said = agents.LONG_SPEECH.join('');
    const [summary, full, off] = await Promise.all(
      [undefined, 'full', 'off'].map(async (reasoningVerbosity) =>
        journey.told(
          await journey.run(agents.workflowOf(agents.RAMBLER), {
            configurable: reasoningVerbosity ? { reasoningVerbosity } : {},
          }),
        ),
      ),
    );
    if (!summary || !full || !off) throw new Error('three runs');
    const [short] = payloads(summary, 'agent.reasoned');
    expect(short?.verbosity).toBe('summary');
    expect(Buffer.byteLength(textOf(short?.reasoning))).toBeLessThanOrEqual(512 * 4);
    expect(said.startsWith(textOf(short?.reasoning).slice(0, -1))).toBe(true);
    expect(payloads(full, 'agent.reasoned')).toMatchObject([
      { reasoning: said, verbosity: 'full' },
    ]);
    expect(shapes(off)).toEqual(['SPcuDC']);
  });
}

function tools(journey: Journey): void {
  it('RFC 0077 §B step 3 parallel calls: each in its order of asking, results by call, refused ones never called', async () => {
    const told = await journey.told(await journey.run(agents.workflowOf(agents.JUGGLER)));
    const called = payloads(told, 'agent.toolCalled');
    expect(called.map(({ toolName }) => toolName)).toEqual([
      agents.WAIT,
      agents.WAIT,
      agents.ECHO,
      agents.ECHO,
      agents.ECHO,
    ]);
    expect(called.every(({ toolId, toolName }) => toolId === toolName)).toBe(true);
    const returned = payloads(told, 'agent.toolReturned');
    expect(returned.length).toBe(7);
    const refused = returned.filter(({ status }) => status === 'forbidden');
    expect(refused.map(({ toolName }) => toolName).sort()).toEqual([
      'core:clock',
      'journey:nowhere',
    ]);
    // The quick call came back before the slow one that was asked first.
    const order = returned.map(({ callId }) => callId);
    expect(order.indexOf(called[1]?.callId ?? '')).toBeLessThan(
      order.indexOf(called[0]?.callId ?? ''),
    );
    expect(decisionOf(told)).toEqual({
      slow: 'slow',
      quick: 'quick',
      clock: 'forbidden',
      nowhere: 'forbidden',
      bad: 'tool_invalid_input',
      echo: [1, 1],
    });
    expect(payloads(told, 'agent.invocation.started')[0]).toMatchObject({ toolSurfaceCount: 2 });
  });
}

function schemas(journey: Journey): void {
  it('RFC 0003 §D: an output against returnSchemaRef or of no form is repaired, in the same bracket', async () => {
    const told = await journey.told(
      await journey.run(`agent:${agents.STRICT}`, { inputs: { amount: 5 } }),
    );
    expect(shapes(told)).toEqual(['SPcdRuRuRuDC']);
    expect(decisionOf(told)).toEqual({ amount: 5 });
    expect(payloads(told, 'agent.invocation.completed')).toMatchObject([
      { outcome: 'completed', schemaValidated: true },
    ]);
  });

  it('one that stays wrong fails: handoff_return_schema_violation, the value is nowhere in the outputs', async () => {
    const told = await journey.told(
      await journey.run(`agent:${agents.STUBBORN}`, { inputs: { amount: 5 } }),
    );
    expect(shapes(told)).toEqual(['SPcRuRuRuC']);
    expect(told.snapshot.error?.code).toBe('handoff_return_schema_violation');
    expect(payloads(told, 'cap.breached')).toMatchObject([
      { kind: 'schema', limit: 2, observed: 3 },
    ]);
    const [completed] = payloads(told, 'agent.invocation.completed');
    expect(completed).toMatchObject({ outcome: 'failed' });
    expect(completed).not.toHaveProperty('schemaValidated', true);
    expect(decisionOf(told)).toBeUndefined();
  });

  it('RFC 0003 §D: a task against taskSchemaRef: bracket opened and failed, no model call', async () => {
    const told = await journey.told(
      await journey.run(`agent:${agents.STRICT}`, { inputs: { amount: 'five' } }),
    );
    expect(shapes(told)).toEqual(['SC']);
    expect(told.snapshot.error?.code).toBe('handoff_task_schema_violation');
    expect(payloads(told, 'provider.usage')).toEqual([]);
  });
}

function thresholds(journey: Journey): void {
  it("RFC 0002 §F the run's threshold beats 0.7; equal is not below", async () => {
    const configurable = { escalationThreshold: 0.6 };
    const told = await journey.told(
      await journey.run(agents.workflowOf(agents.UNSURE), { configurable }),
    );
    expect(told.snapshot.status).toBe('completed');
    const strict = { escalationThreshold: 0.61 };
    const runId = await journey.run(agents.workflowOf(agents.UNSURE), { configurable: strict });
    const open = await journey.told(runId, waiting);
    expect(payloads(open, 'node.suspended')[0]).toMatchObject({ threshold: 0.61, observed: 0.6 });
    expect((await journey.host.api(`/v1/runs/${runId}/cancel`, { body: {} })).status).toBe(200);
    expect((await journey.told(runId)).snapshot.status).toBe('cancelled');
  });

  it('RFC 0077: agentId on POST /v1/runs gives the same family, source run-api', async () => {
    const runId = await journey.run(`agent:${agents.LEARNER}`, { inputs: { question: 'Which?' } });
    const asked = await journey.told(runId, waiting);
    expect(payloads(asked, 'agent.invocation.started')).toMatchObject([{ source: 'run-api' }]);
    await journey.answer(runId, 'agent', { answers: { colour: 'green' } });
    const told = await journey.told(runId);
    expect(shapes(told)).toEqual(['SPcRuDC', 'SPcdRuDC']);
    expect(decisionOf(told)).toBe('green');
    const ids = told.brackets.map(({ invocationId }) => invocationId);
    expect(new Set(ids).size).toBe(2);
  });
}

export function agentJourneys(journey: Journey): void {
  describe("an agent's reasoning", () => streaming(journey));
  describe("an agent's tools", () => tools(journey));
  describe("an agent's schemas", () => schemas(journey));
  describe("an agent's confidence", () => thresholds(journey));
}
