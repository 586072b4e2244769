// A process of its own that appends to one run until it is killed. It prints a line for every append that the store
// confirmed: those must be there afterwards. Arguments: data folder, runId.
import { openStores } from '../../src/adapters/postgres/index.ts';
import { appendRows, headOf, newRun } from '../contract/given.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const [dir = '', runId = ''] = process.argv.slice(2);
const stores = await openStores({ database: { kind: 'pglite', dir }, logger: quietLogger });
if (!(await stores.runs.find('default', runId))) await stores.runs.accept(newRun({ runId }));
for (;;) {
  const { nextSequence } = await headOf(stores, runId);
  await appendRows(stores, runId, [
    `k${nextSequence}`,
    `k${nextSequence + 1}`,
    `k${nextSequence + 2}`,
  ]);
  process.stdout.write(`${nextSequence + 3}\n`);
}
