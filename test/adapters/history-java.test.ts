// The history port on the in-memory Java test server, which the host uses where no other server can be had
// (architecture §7): it neither waits at a history's tail nor lists executions.
import { describe } from 'vitest';
import { IN_MEMORY_SERVER } from '../../src/adapters/temporal/server-traits.ts';
import { historyContract } from '../contract/history.contract.ts';
import { findTimeSkippingServer, startInMemoryTemporal } from '../support/time-skipping.ts';

const server = await findTimeSkippingServer();

describe.skipIf(!server.available)('architecture §7: the in-memory server (Java)', () => {
  historyContract({
    traits: IN_MEMORY_SERVER,
    start: () => {
      if (!server.available) throw new Error(server.reason);
      return startInMemoryTemporal(server);
    },
  });
});
