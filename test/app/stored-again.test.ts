// What the catalog says again to a database that may have lost it (architecture §4.1).
import { expect, test } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { storeAgain } from '../../src/app/stored-again.ts';
import { quietLogger } from '../support/quiet-logger.ts';

// [I119]
test('manifests that a failover has lost are stored again, also where the first tries fail', async () => {
  let failures = 0;
  let stored = 0;
  const warnings: string[] = [];
  const store = async (): Promise<void> => {
    if (failures-- > 0) throw new HostError('service_unavailable');
    stored++;
  };
  let reconnected = (): void => undefined;
  const onReconnect = (listener: () => void) => {
    reconnected = listener;
    return () => void (reconnected = () => undefined);
  };
  const logger = { ...quietLogger, warn: (line: string) => void warnings.push(line) };
  const stop = storeAgain({ catalog: { store }, log: { onReconnect }, logger });
  expect(stored).toBe(0);
  for (const fails of [0, 2]) {
    [failures, stored] = [fails, 0];
    reconnected();
    await expect.poll(() => stored).toBe(1);
  }
  expect(warnings).toHaveLength(2);
  // One that comes while the manifests are stored: once more, after it.
  stored = 0;
  reconnected();
  reconnected();
  await expect.poll(() => stored).toBe(2);
  await stop();
  reconnected();
  expect(stored).toBe(2);
});
