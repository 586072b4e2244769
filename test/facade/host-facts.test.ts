// What discovery says of retention (storage-adapters.md §Retention): as long as the host was told, and that a test may make
// runs expire only where one may.
import { expect, it } from 'vitest';
import { hostFacts } from '../../src/facade/host-facts.ts';

const known = {
  agents: true,
  models: { isLive: () => false, providers: () => [] },
  tools: { list: () => [] },
};

it.each([
  [true, true, true],
  [true, false, false],
  [false, true, false],
  [false, undefined, false],
])('test mode %j, seams %j: a test makes runs expire: %j', (testMode, testSeams, forcesExpiry) => {
  const config = {
    ...{ testMode, escalation: true, retentionDays: 9 },
    ...(testSeams === undefined ? {} : { testSeams }),
  };
  expect(hostFacts({ ...known, config })).toMatchObject({ forcesExpiry, retentionDays: 9 });
});
