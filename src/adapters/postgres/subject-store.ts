// Subjects, whose runs are whose, and their erasure. A key has three states, and goes forward alone:
//
// | state     | a run of it begins | a run of it ends | its erasure                                            |
// |-----------|--------------------|------------------|--------------------------------------------------------|
// | active    | yes                | yes              | none                                                   |
// | closing   | refused            | yes              | `closing`: waits for open runs to end, or ends them    |
// | destroyed | no: another key    | -                | `destroyed`, then `erased` with its receipt            |
import { randomBytes } from 'node:crypto';
import type { KeyRing } from '../../ports/keys.ts';
import { HostError, invalid } from '../../rules/errors.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type {
  AskedErasure,
  BegunErasure,
  ErasureRow,
  ErasureState,
  ErasureWait,
  SubjectStore,
} from '../../ports/subjects.ts';
import { Recent } from '../../system/recent.ts';
import { keyedDigest, newSecret } from '../../system/sealing.ts';
import { Deadline } from '../../system/time.ts';
import { eachByItself, type Db, type Transaction } from './db.ts';
import { erasedLogs, runsOfKey } from './erased-logs.ts';
import { hostSecrets } from './host-secrets.ts';
import { createKeyTable, XIDS_SO_FAR } from './key-table.ts';
import { refOf } from './run-ref.ts';
import { damagedAt, parsedAt, timeAt } from './seals.ts';
import { KEY_CHANNEL, KEY_HELD_MS, placeOfKey, wrapped } from './subject-keys.ts';

/** Runs that are named to who asks while they are open. */
const NAMED_RUNS = 20;
const ID_BYTES = 18;

interface ErasureRecord {
  readonly erasure_id: string;
  readonly tenant_id: string;
  readonly subject: string;
  readonly key_id: string;
  readonly state: string;
  readonly cancels_open: boolean;
  readonly asked: string;
  readonly asked_at_ms: number;
  readonly destroyed_at_ms: number | null;
  readonly is_forgotten: boolean;
  readonly receipt: string | null;
  readonly waits_for: string | null;
}
const ERASURE =
  'erasure_id, tenant_id, subject, key_id, state, cancels_open, asked, asked_at_ms, destroyed_at_ms, is_forgotten, receipt, waits_for';

/**
 * What it waited for is written again, and a receipt is no more than shown: where they are damaged the rest counts. Throws
 * HostError history_undecodable where it is not known who asked, and when: a receipt would have to say so.
 */
function erasureOf(record: ErasureRecord): ErasureRow {
  const place = `erasure ${record.erasure_id}`;
  const asked = parsedAt<AskedErasure>(place, record.asked, 'object');
  if (typeof asked.by !== 'string') throw damagedAt(place);
  return {
    erasureId: record.erasure_id,
    tenant: record.tenant_id,
    subject: record.subject,
    keyId: record.key_id,
    state: record.state as ErasureState,
    cancelsOpen: record.cancels_open,
    asked,
    askedAtMs: timeAt(place, record.asked_at_ms),
    ...(record.destroyed_at_ms === null
      ? {}
      : { destroyedAtMs: timeAt(place, record.destroyed_at_ms) }),
    isForgotten: record.is_forgotten,
    ...toldOr<Pick<ErasureRow, 'receipt'>>({}, () => receiptAt(place, record.receipt)),
    ...toldOr<Pick<ErasureRow, 'waitsFor'>>({}, () => waitAt(place, record.waits_for)),
  };
}

function receiptAt(place: string, receipt: string | null): Pick<ErasureRow, 'receipt'> {
  if (receipt === null) return {};
  parsedAt(place, receipt, 'object');
  return { receipt };
}

function waitAt(place: string, text: string | null): Pick<ErasureRow, 'waitsFor'> {
  if (text === null) return {};
  const waitsFor = parsedAt<ErasureWait>(place, text, 'object');
  if (typeof waitsFor.kind !== 'string' || typeof waitsFor.reason !== 'string')
    throw damagedAt(place);
  return { waitsFor };
}

/** For lists: nobody asked in 1970, in the place of what is not known. */
function listedErasure(record: ErasureRecord): ErasureRow {
  const instead = { asked: '{"by":""}', asked_at_ms: 0, destroyed_at_ms: null };
  return toldOr(erasureOf({ ...record, ...instead }), () => erasureOf(record));
}

function newId(prefix: string): string {
  return `${prefix}-${randomBytes(ID_BYTES).toString('base64url')}`;
}

/** Runs of key $1 behind a run id ($2) whose log has not ended. A run with neither row nor head has none that could be ended. */
const OPEN_RUNS = `SELECT s.tenant_id, s.run_id FROM (${runsOfKey('$1', '$2')}) s
  LEFT JOIN run_heads h ON h.run_id = s.run_id
  WHERE h.closed IS NOT TRUE
    AND (h.run_id IS NOT NULL OR EXISTS (SELECT FROM runs r WHERE r.run_id = s.run_id)) ORDER BY s.run_id`;

interface Parts {
  readonly db: Db;
  readonly ring: KeyRing;
  readonly secrets: ReturnType<typeof hostSecrets>;
  /** How long in ms a process may use a key without asking the database. */
  readonly heldMs: number;
}

/** Only tests name `heldMs`, the same for all processes of a database. */
export function createSubjectStore(db: Db, ring: KeyRing, heldMs = KEY_HELD_MS): SubjectStore {
  const parts = { db, ring, secrets: hostSecrets(db, ring), heldMs };
  return {
    isAvailable: ring.keys.length > 0,
    keyFor: (tenant, asked) => keyFor(parts, tenant, asked),
    pseudonym: (tenant, subject) => pseudonymOf(parts, tenant, subject),
    ...requests(parts),
    ...ends(parts),
    ...erasedLogs(db),
    sign: (text) => parts.secrets.sign(text),
    rewrap: rewrapping(parts),
  };
}

async function pseudonymOf({ secrets }: Parts, tenant: string, subject: string): Promise<string> {
  const secret = await secrets.pseudonyms();
  return keyedDigest(secret, JSON.stringify([tenant, subject]));
}

async function keyFor(
  parts: Parts,
  tenant: string,
  { subject, sessionId }: Parameters<SubjectStore['keyFor']>[1],
): Promise<string | undefined> {
  const { db, ring } = parts;
  const ofSession =
    sessionId === undefined ? undefined : await subjectOfSession(db, tenant, sessionId);
  if (ring.keys.length === 0) {
    if (subject === undefined && ofSession === undefined) return undefined;
    const reason = 'Needs OPENWOP_ENCRYPTION_KEYS: they wrap the keys of subjects.';
    throw new HostError('capability_not_provided', { capability: 'subjects', reason });
  }
  const named = subject === undefined ? undefined : await pseudonymOf(parts, tenant, subject);
  if (named !== undefined && ofSession !== undefined && named !== ofSession)
    throw invalid('/dataSubject', 'is another one than that of the session');
  const pseudonym = named ?? ofSession;
  return pseudonym === undefined ? undefined : aliveKey(parts, tenant, pseudonym);
}

async function subjectOfSession(
  db: Db,
  tenant: string,
  sessionId: string,
): Promise<string | undefined> {
  const [row] = await db.query<{ subject: string | null }>(
    'SELECT subject FROM sessions WHERE tenant_id = $1 AND session_id = $2',
    [tenant, sessionId],
  );
  return row?.subject ?? undefined;
}

/** Of several that make the first key of a subject at once one does; who reads it sees the row of the other. */
async function aliveKey({ db, ring }: Parts, tenant: string, subject: string): Promise<string> {
  const find = () =>
    db.query<{ key_id: string; state: string }>(
      "SELECT key_id, state FROM subject_keys WHERE tenant_id = $1 AND subject = $2 AND state <> 'destroyed'",
      [tenant, subject],
    );
  let [key] = await find();
  if (!key) await ring.announced();
  const master = ring.current();
  if (!key && master) {
    const keyId = newId('sk');
    await db.query(
      `INSERT INTO subject_keys (key_id, tenant_id, subject, state, wrapped, created_at_ms)
       VALUES ($1, $2, $3, 'active', $4, openwop_now_ms())
       ON CONFLICT (tenant_id, subject) WHERE state <> 'destroyed' DO NOTHING`,
      [keyId, tenant, subject, wrapped(master, placeOfKey(keyId), newSecret())],
    );
    [key] = await find();
  }
  if (!key || key.state !== 'active') throw new HostError('subject_erasing');
  return key.key_id;
}

function requests(
  parts: Parts,
): Pick<SubjectStore, 'beginErasure' | 'erasure' | 'erasures' | 'unfinished' | 'openRuns'> {
  const { db } = parts;
  return {
    async beginErasure(tenant, subject, request) {
      const pseudonym = await pseudonymOf(parts, tenant, subject);
      return db.transaction((tx) => begin(tx, { tenant, subject: pseudonym }, request));
    },
    async erasure(tenant, erasureId) {
      const [record] = await db.query<ErasureRecord>(
        `SELECT ${ERASURE} FROM subject_erasures WHERE tenant_id = $1 AND erasure_id = $2`,
        [tenant, erasureId],
      );
      return record && erasureOf(record);
    },
    async erasures(tenant, limit) {
      const records = await db.query<ErasureRecord>(
        `SELECT ${ERASURE} FROM subject_erasures WHERE tenant_id = $1
         ORDER BY asked_at_ms DESC, erasure_id DESC LIMIT $2`,
        [tenant, limit],
      );
      return records.map(listedErasure);
    },
    async unfinished({ after, limit }) {
      const records = await db.query<
        Pick<ErasureRecord, 'tenant_id' | 'erasure_id' | 'asked_at_ms'>
      >(
        `SELECT tenant_id, erasure_id, asked_at_ms FROM subject_erasures WHERE state <> 'erased' AND (asked_at_ms, erasure_id) > ($1, $2)
         ORDER BY asked_at_ms, erasure_id LIMIT $3`,
        [after?.askedAtMs ?? 0, after?.erasureId ?? '', limit],
      );
      return records.map((record) => ({
        tenant: record.tenant_id,
        erasureId: record.erasure_id,
        askedAtMs: record.asked_at_ms,
      }));
    },
    async openRuns(keyId, { after, limit }) {
      const rows = await db.query<{ tenant_id: string; run_id: string }>(`${OPEN_RUNS} LIMIT $3`, [
        ...[keyId, after, limit],
      ]);
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
  };
}

/** The lock on the key is what makes runs of it wait. */
async function begin(
  tx: Transaction,
  { tenant, subject }: { readonly tenant: string; readonly subject: string },
  { asked, cancelsOpen }: { readonly asked: AskedErasure; readonly cancelsOpen: boolean },
): Promise<BegunErasure> {
  const [key] = await tx.query<{ key_id: string; state: string }>(
    `SELECT key_id, state FROM subject_keys WHERE tenant_id = $1 AND subject = $2 AND state <> 'destroyed' FOR UPDATE`,
    [tenant, subject],
  );
  if (key?.state !== 'active') return knownErasure(tx, tenant, subject);
  const keyId = key.key_id;
  if (!cancelsOpen) {
    const open = await tx.query<{ run_id: string }>(`${OPEN_RUNS} LIMIT ${NAMED_RUNS}`, [
      ...[keyId, ''],
    ]);
    if (open.length > 0) return { kind: 'open', runIds: open.map(({ run_id }) => run_id) };
  }
  await tx.query("UPDATE subject_keys SET state = 'closing' WHERE key_id = $1", [keyId]);
  const [record] = await tx.query<ErasureRecord>(
    `INSERT INTO subject_erasures (erasure_id, tenant_id, subject, key_id, state, cancels_open, asked, asked_at_ms)
     VALUES ($1, $2, $3, $4, 'closing', $5, $6, openwop_now_ms()) RETURNING ${ERASURE}`,
    [newId('erasure'), tenant, subject, keyId, cancelsOpen, JSON.stringify(asked)],
  );
  if (!record) throw new HostError('internal_error');
  return { kind: 'begun', erasure: erasureOf(record) };
}

/** The last that was asked for: under way, or done with nothing since. */
async function knownErasure(
  tx: Transaction,
  tenant: string,
  subject: string,
): Promise<BegunErasure> {
  const [record] = await tx.query<ErasureRecord>(
    `SELECT ${ERASURE} FROM subject_erasures WHERE tenant_id = $1 AND subject = $2
     ORDER BY asked_at_ms DESC, erasure_id DESC LIMIT 1`,
    [tenant, subject],
  );
  return record ? { kind: 'known', erasure: erasureOf(record) } : { kind: 'unknown' };
}

function ends({
  db,
  heldMs,
}: Parts): Pick<SubjectStore, 'destroy' | 'forgottenInMs' | 'overwrite' | 'noteWait' | 'finish'> {
  const table = createKeyTable(db);
  const forgetting = new Recent<string, Deadline>(FORGOTTEN_AT_ONCE);
  return {
    destroy: ({ erasureId, keyId }) => db.transaction((tx) => destroy(tx, { erasureId, keyId })),
    overwrite: ({ erasureId }) => table.overwrite(erasureId),
    async noteWait(erasure, wait) {
      const [record] = await db.query<ErasureRecord>(
        `UPDATE subject_erasures SET waits_for = CASE state WHEN $3 THEN $2 ELSE waits_for END
         WHERE erasure_id = $1 RETURNING ${ERASURE}`,
        [erasure.erasureId, JSON.stringify(wait), erasure.state],
      );
      return record ? erasureOf(record) : erasure;
    },
    async forgottenInMs({ erasureId, isForgotten }) {
      if (isForgotten) return 0;
      const deadline = forgetting.get(erasureId) ?? new Deadline(heldMs * FORGETTING_SHARE);
      forgetting.set(erasureId, deadline);
      if (!deadline.isOver()) return deadline.leftMs();
      await db.query('UPDATE subject_erasures SET is_forgotten = true WHERE erasure_id = $1', [
        erasureId,
      ]);
      forgetting.delete(erasureId);
      return 0;
    },
    async finish({ erasureId }, receipt) {
      const [record] = await db.query<ErasureRecord>(
        `UPDATE subject_erasures SET state = 'erased', waits_for = NULL, receipt = coalesce(receipt, $2)
         WHERE erasure_id = $1 AND state <> 'closing' RETURNING ${ERASURE}`,
        [erasureId, receipt],
      );
      if (!record) throw new HostError('internal_error', { reason: 'The key is not destroyed.' });
      return erasureOf(record);
    },
  };
}

/** A key that was read just before it was destroyed is used while it is held, and a fifth longer by what had begun to open. */
const FORGETTING_SHARE = 1.2;
/** Erasures whose keys are being forgotten at one time. */
const FORGOTTEN_AT_ONCE = 100_000;

async function destroy(
  tx: Transaction,
  { erasureId, keyId }: Pick<ErasureRow, 'erasureId' | 'keyId'>,
): Promise<boolean> {
  const [key] = await tx.query<{ state: string }>(
    'SELECT state FROM subject_keys WHERE key_id = $1 FOR UPDATE',
    [keyId],
  );
  if (key?.state === 'destroyed') return true;
  const open = await tx.query(`${OPEN_RUNS} LIMIT 1`, [keyId, '']);
  if (open.length > 0) return false;
  await tx.query(
    `WITH gone AS (
       UPDATE subject_keys SET state = 'destroyed', wrapped = NULL, destroyed_at_ms = openwop_now_ms()
       WHERE key_id = $1 RETURNING destroyed_at_ms
     )
     UPDATE subject_erasures SET state = 'destroyed', destroyed_at_ms = gone.destroyed_at_ms, waits_for = NULL,
       xids_so_far = ${XIDS_SO_FAR}
     FROM gone WHERE erasure_id = $2`,
    [keyId, erasureId],
  );
  await tx.query(`SELECT pg_notify('${KEY_CHANNEL}', $1)`, [keyId]);
  return true;
}

/** Each call goes on after the keys of the last one, so that one that does not open keeps no other from its turn. */
function rewrapping({ db, ring, secrets }: Parts): SubjectStore['rewrap'] {
  let after = '';
  return async (limit) => {
    const master = ring.current();
    // Whoever encrypts with another key may not know this one, or would wrap by the other again.
    if (!master || !ring.isShared()) return { count: 0, failed: [] };
    const rows = await db.query<{ key_id: string; wrapped: string }>(
      `SELECT key_id, wrapped FROM subject_keys WHERE key_id > $1 AND wrapped IS NOT NULL AND NOT starts_with(wrapped, $2)
       ORDER BY key_id LIMIT $3`,
      [after, `${master.id}:`, limit],
    );
    after = rows.length < limit ? '' : (rows.at(-1)?.key_id ?? '');
    let count = 0;
    const failed = await eachByItself(db, rows, async ({ key_id: id, wrapped: before }) => {
      const row = { table: 'subject_keys', column: 'key_id', id, before } as const;
      count += await secrets.wrapAgain(placeOfKey(id), row);
    });
    const ofHost = await secrets.rewrap();
    const ofSubjects = failed.map(({ item, error }) => ({ keyId: item.key_id, error }));
    return { count: count + ofHost.count, failed: [...ofSubjects, ...ofHost.failed] };
  };
}
