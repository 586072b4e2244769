// A process of its own that fills the feed in small batches until it is killed. It prints a line behind each. Argument:
// the database's options as JSON.
import { openDatabase, type DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { backfillBatch } from '../../src/adapters/postgres/feed-backfill.ts';
import { quietLogger } from '../support/quiet-logger.ts';

const options = JSON.parse(process.argv[2] ?? '') as DatabaseOptions;
const { db } = await openDatabase(options, quietLogger);
while (await backfillBatch(db, 2)) process.stdout.write('filled\n');
