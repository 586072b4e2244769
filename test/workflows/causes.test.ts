// What each fact follows from (seed 003 §1.2), without a run: within a node the newest fact that leads on, between nodes
// what this breath of code was woken by.
import { afterEach, expect, it } from 'vitest';
import {
  beginCauses,
  causeOf,
  endCauses,
  inTheWakeOf,
  noteFact,
  traceCauses,
  tracedCauses,
} from '../../workflows/causes.ts';

afterEach(() => traceCauses([]));

it('a node begins by what woke it, and goes on by the newest of its facts that leads', () => {
  traceCauses([['', 'first']]);
  inTheWakeOf('done', () => beginCauses('n'));
  expect(causeOf('n')).toBe('done');
  noteFact({ type: 'node.started', key: 'started', nodeId: 'n' });
  noteFact({ type: 'agent.reasoned', key: 'reasoned', nodeId: 'n' });
  noteFact({ type: 'agent.toolCalled', key: 'called', nodeId: 'n' });
  noteFact({ type: 'agent.reasoned', key: 'elsewhere', nodeId: 'm' });
  expect(causeOf('n')).toBe('reasoned');
  inTheWakeOf('other', () => expect([causeOf('n'), causeOf()]).toEqual(['reasoned', 'other']));
  expect([causeOf(), causeOf('m')]).toEqual(['first', 'first']);
  expect(tracedCauses()).toEqual([
    ['', 'first'],
    ['n', 'reasoned'],
  ]);
  endCauses('n');
  expect(causeOf('n')).toBe('first');
});
