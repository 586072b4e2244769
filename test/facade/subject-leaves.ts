// The leaves of subjects and their erasure (leaves.test.ts), on a host without keys: what is erased, and with which receipt,
// is acceptance/erasure's.
import { expect } from 'vitest';
import type { RunRow } from '../../src/ports/runs.ts';
import {
  ERASE_SUBJECT,
  GET_ERASURE,
  GET_INTEGRITY,
  LIST_ERASURES,
} from '../../src/facade/routes/subjects.ts';
import { leaf, type Leaf } from './leaf.ts';

const first = { parameters: { limit: 1 } };
const unasked = { parameters: { idempotencyKey: undefined } };

/** `aRun`: one that is there. */
export const subjectLeaves = (
  aRun: () => { run: RunRow; path: { runId: string } },
): readonly Leaf[] => [
  leaf(ERASE_SUBJECT, 'never', {
    given: () => ({ ...unasked, body: { dataSubject: 'anna' } }),
    told: 'capability_not_provided',
  }),
  leaf(
    LIST_ERASURES,
    { given: () => first, told: { body: { erasures: [] } } },
    { given: () => first, without: 'database', told: 'service_unavailable' },
  ),
  leaf(GET_ERASURE, 'never', {
    given: () => ({ path: { erasureId: 'erasure-none\0' } }),
    told: 'not_found',
  }),
  leaf(
    GET_INTEGRITY,
    {
      given: aRun,
      told: { body: { runId: 'run-waits', root: expect.any(String) as string } },
    },
    { given: aRun, without: 'database', told: 'service_unavailable' },
  ),
];
