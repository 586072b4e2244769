// What a database says, by whose affair it is (architecture §4.1): the values of one statement, or an outage of the server, its
// schema or this host's rights there.
import { describe, expect, it } from 'vitest';
import {
  databaseError,
  eachByItself,
  isLockTimeout,
  type Queries,
} from '../../src/adapters/postgres/db.ts';

const said = (code: string, more: object = {}) =>
  databaseError(Object.assign(new Error(`secret value of ${code}`), { code, ...more }));

describe('[I98] an error of the database', () => {
  it.each([
    ['08006', 'the connection broke'],
    ['0A000', 'a cached plan is of another schema'],
    ['25006', 'a replica takes no writes'],
    ['40001', 'another transaction came first'],
    ['40P01', 'the statement is the victim of a deadlock'],
    ['42501', 'a permission was taken away'],
    ['42601', 'the server does not know the syntax'],
    ['42703', 'a column is missing'],
    ['42P01', 'a table is missing: it is being restored'],
    ['53100', 'the disk is full'],
    ['54000', 'no transaction ids are left'],
    ['55000', 'the database takes no connections'],
    ['57P03', 'it is starting'],
    ['58030', 'the disk fails'],
    ['XX000', 'a proxy has no room'],
    ['XX001', 'a page of a table is damaged'],
    ['XX002', 'a page of an index is damaged'],
  ])('%s (%s) is an outage, which names the code and no value', (code) => {
    const error = said(code);
    expect(error).toMatchObject({
      ...{ code: 'service_unavailable', details: { part: 'database', sqlState: code } },
      message: `The database answers with SQLSTATE ${code}.`,
    });
  });

  it.each([
    ['21000', 'a key comes twice in one statement'],
    ['22001', 'a text is too long'],
    ['22P02', 'a text is no number'],
    ['23502', 'a value is missing'],
    ['23505', 'a key is there already'],
    ['44000', 'a view does not take the row'],
    ['54001', 'an expression is too deep'],
    ['54011', 'there are too many columns'],
    ['54023', 'there are too many arguments'],
    ['OW001', 'a trigger of the schema refuses the row'],
  ])('%s (%s) is of the statement', (code) => {
    expect(said(code)).toMatchObject({ name: 'SqlError', sqlState: code });
  });

  it.each(['_bt_check_third_page', 'index_form_tuple_context'])(
    '54000 is of the statement where %s says that no index holds its key',
    (routine) => {
      expect(said('54000', { routine })).toMatchObject({ name: 'SqlError', sqlState: '54000' });
      expect(said('54000', { routine: 'GetNewTransactionId' })).toMatchObject({
        code: 'service_unavailable',
      });
    },
  );

  it('of a text that no column can hold is the caller’s', () => {
    for (const code of ['22021', '22P05'])
      expect(said(code)).toMatchObject({ code: 'validation_error' });
  });

  it('a connection that breaks while writing is no answer of the database', () => {
    const error = said('EPIPE');
    expect(error).toMatchObject({ code: 'service_unavailable' });
    expect((error as { details?: object }).details).toEqual({ part: 'database' });
  });

  it('a lock that was waited for in vain is known', () => {
    expect(isLockTimeout(said('55P03'))).toBe(true);
    expect(isLockTimeout(said('57014'))).toBe(false);
  });
});

describe('[I97] each has its turn by itself', () => {
  const [lost, away] = [new Error('lost'), new Error('away')];
  const withoutOdd = async (tried: number[], item: number): Promise<void> => {
    tried.push(item);
    if (item % 2 === 1) throw lost;
  };
  const answering = (query: () => Promise<never[]>) => ({ query }) as unknown as Queries;

  it('whatever becomes of the others, and those that failed are named', async () => {
    const tried: number[] = [];
    const database = answering(async () => []);
    const failed = await eachByItself(database, [1, 2, 3], (item) => withoutOdd(tried, item));
    expect(tried).toEqual([1, 2, 3]);
    expect(failed).toEqual([
      { item: 1, error: lost },
      { item: 3, error: lost },
    ]);
  });

  it('until the database answers nobody: that is thrown', async () => {
    const tried: number[] = [];
    const database = answering(() => Promise.reject(away));
    const each = eachByItself(database, [2, 1, 4], (item) => withoutOdd(tried, item));
    await expect(each).rejects.toBe(away);
    expect(tried).toEqual([2, 1]);
  });
});
