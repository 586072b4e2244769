// A process of its own that lets what is due expire and deletes what is left of it, until it is done or, before its n-th
// step, is killed. Arguments: URL, n (0: not at all).
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { steppedDb, stepsOf } from '../support/fault-point.ts';
import { expireInRounds } from './expiring-rounds.ts';

const [url = '', nth = '0'] = process.argv.slice(2);
const database = { kind: 'postgres', url } as const;
const kill = (): void => void process.kill(process.pid, 'SIGKILL');
let steps = stepsOf(undefined, kill);
const opened = await openDatabase(database, quietLogger);
const db = steppedDb(opened.db, () => steps);
const stores = await storesOn({ db, close: opened.close }, { database, logger: quietLogger });
steps = stepsOf(Number(nth), kill);
await expireInRounds({ stores, step: () => steps.step() });
await stores.close();
