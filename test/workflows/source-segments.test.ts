// Where a fork enters the frames of its source's segment again: which value is the child that was asked for.
import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { carriedAs } from '../../workflows/source-segments.ts';

it('a child is what stands in its place, and no text that is equal to it', () => {
  const child = { runId: 'run-1', callId: 'call-1', phase: 'asked', step: 'child' };
  const before: JsonObject = { said: { ...child }, calls: [{ child }], later: { ...child } };
  const after = JSON.parse(JSON.stringify(before)) as { calls: { child: object }[] };
  const found = carriedAs(child, before, after as unknown as JsonObject);
  expect(found).toBe(after.calls[0]?.child);
  expect(carriedAs({ ...child }, before, after as unknown as JsonObject)).toBeUndefined();
});
