// debug-bundle.md of a log that is larger than a bundle may be. On a real run: test/acceptance/debug-bundle.test.ts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DebugBundle } from '../../schemas/types.generated.ts';
import { DEBUG_BUNDLE_BYTES } from '../../src/facade/routes/debug-bundle.ts';
import { validate } from '../../src/wire/validators.ts';
import { batchAfter, entry, headOf } from '../contract/given.ts';
import { registerRun } from '../support/log-parts.ts';
import { startFaultHost, type FaultHost } from './fault-host.ts';

const LETTERS = 30_000;
const BATCHES = 3;
const BATCH_ROWS = 100;

let host: FaultHost;
const runId = 'run-large';

beforeAll(async () => {
  host = await startFaultHost();
  await registerRun(host.stores, runId);
  for (let batch = 0; batch < BATCHES; batch++) {
    const rows = Array.from({ length: BATCH_ROWS }, (_, index) =>
      entry(runId, `${batch}-${index}`, {
        payload: JSON.stringify({ name: 'text', value: 'a'.repeat(LETTERS) }),
      }),
    );
    await host.stores.log.append(batchAfter(await headOf(host.stores, runId), rows));
  }
});
afterAll(() => host?.stop());

describe('debug-bundle.md §The bundle', () => {
  it('is cut to 8 MB, to the first events', async () => {
    const { text, body } = await host.api<DebugBundle>(`/v1/runs/${runId}/debug-bundle`);
    expect(validate.debugBundle(body)).toMatchObject({ ok: true });
    expect(body).toMatchObject({
      truncated: true,
      truncatedReason: 'events_truncated_to_size_cap',
    });
    const bytes = Buffer.byteLength(text);
    expect(bytes).toBeLessThanOrEqual(DEBUG_BUNDLE_BYTES);
    expect(bytes).toBeGreaterThan(DEBUG_BUNDLE_BYTES - 2 * LETTERS);
    expect(body.metrics.eventCount).toBe(body.events.length);
    expect(body.events.map((event) => (event as { sequence: number }).sequence)).toEqual(
      body.events.map((_, index) => index),
    );
  });
});
