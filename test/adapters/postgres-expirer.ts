// A process of its own that lets what is due expire and deletes what is left of it, until it is done or, before its n-th
// step, is killed: a step is a statement, or a word to Temporal. Arguments: URL, n (0: not at all).
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import type { Db, Queries } from '../../src/adapters/postgres/db.ts';
import { createExpirer } from '../../src/log/expirer.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const [url = '', nth = '0'] = process.argv.slice(2);
const database = { kind: 'postgres', url } as const;
let steps = 0;
let isCounted = false;

function step(): void {
  if (isCounted && ++steps === Number(nth)) process.kill(process.pid, 'SIGKILL');
}

const counted = (queries: Queries): Queries['query'] => {
  return (text, values) => {
    step();
    return queries.query(text, values);
  };
};

const opened = await openDatabase(database, quietLogger);
const db: Db = {
  ...opened.db,
  listen: (channel, callback) => opened.db.listen(channel, callback),
  onReconnect: (callback) => opened.db.onReconnect(callback),
  query: counted(opened.db),
  transaction: (work, limitMs) =>
    opened.db.transaction(
      (tx) => work({ script: (text) => tx.script(text), query: counted(tx) }),
      limitMs,
    ),
  close: () => opened.close(),
};
const stores = await storesOn({ db, close: opened.close }, { database, logger: quietLogger });
const expirer = createExpirer({
  ...{ stores, logger: quietLogger, keptMs: 0, restMs: 0 },
  histories: { remove: async () => step() },
});
isCounted = true;
// What a killed process had claimed is claimed again when that is over: at once, by who makes it so.
await expirer.round();
await expirer.round();
process.stdout.write(`${steps}\n`);
await stores.close();
