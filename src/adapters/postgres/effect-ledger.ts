// The effect ledger (architecture §5): who may perform an effect now. A claim is written before the effect, its end
// behind it; the epoch fences whoever lost the claim.
//
// What a claim finds           | idempotent tool **       | other tool                | other tool, force
// -----------------------------|--------------------------|---------------------------|------------------
// no row                       | claimed, perform *       | claimed, perform *        | claimed, perform
// claimed, lease running       | busy                     | busy                      | busy
// claimed, lease over          | claimed, perform again   | in-doubt                  | claimed, perform again
// in-doubt                     | claimed, perform again   | in-doubt                  | claimed, perform again
// failed-before-send           | claimed, perform again * | claimed, perform again *  | claimed, perform again
// done                         | done                     | done                      | done
// done-without-result          | failed                   | failed                    | failed
// failed-final                 | failed                   | failed                    | failed
//
// *  `differs` or `busy`, and nothing is written, where another row of the tool stands in the way (STANDING_SQL). Nothing
//    does where a repeat changes nothing (`isHarmless`).
// ** It is, and it was when it was called: what it says after a doubt does not settle that.
//
//   Every claim of a closed run is refused. Each new claim and the step to in-doubt raise the epoch. `settle` ends a claim,
//   or a doubt (the reconcile hook's answer), under its epoch. What a fork inherits (epoch 0) was performed under another
//   key: in doubt, it is no idempotent tool's to repeat. `recall` returns what the column "other tool" says, and claims
//   nothing. `force` is a human's answer to a doubt: one about another epoch than the row's forces nothing. It permits one
//   more sending and says nothing of the former one, which stays in doubt until a sending is known to have happened.
//   The doubts that the human was shown (`shown`) are asked about at no other node or visit from then on (`is_told`).
//   What stands in the way and was not shown is asked about before the call is performed.
import { HostError } from '../../rules/errors.ts';
import { canonicalJson } from '../../rules/json.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { INHERITED_EPOCH } from '../../rules/run-input.ts';
import type {
  ClaimOptions,
  EffectClaim,
  EffectIdentity,
  EarlierCall,
  EffectLedger,
  EffectRecall,
  EffectRow,
  EffectState,
  FormerEffect,
  HumanWord,
  ShownCall,
  StandingReason,
} from '../../ports/effects.ts';
import type { SealedDb, Transaction } from './db.ts';

interface EffectRecord {
  readonly effect_id: string;
  readonly tenant_id: string;
  readonly run_id: string;
  readonly root_run_id: string;
  readonly series: string;
  readonly node_id: string;
  readonly visit: number;
  readonly tool_id: string;
  readonly args_hash: string;
  readonly occurrence: number;
  readonly attempt: number;
  readonly state: EffectState;
  readonly idempotent: boolean;
  readonly is_asked: boolean;
  readonly is_foreign: boolean;
  readonly epoch: number;
  readonly lease_until_ms: number;
  readonly outcome_hash: string | null;
}
const COLUMNS = `effect_id, tenant_id, run_id, root_run_id, series, node_id, visit, tool_id, args_hash, occurrence, attempt,
  state, idempotent, is_asked, is_foreign, epoch, lease_until_ms, outcome_hash`;

export function effectIdOf(identity: EffectIdentity): string {
  const { tenant, series, nodeId, visit, toolId, argsHash, occurrence } = identity;
  return `eff-${sha256Hex(canonicalJson([tenant, series, nodeId, visit, toolId, argsHash, occurrence]))}`;
}

/** What was asked for is kept as a keyed digest where it is somebody's: nobody can try what it is of. */
async function keyed({ seals }: SealedDb, identity: EffectIdentity): Promise<EffectIdentity> {
  const seal = await seals.ofRun(identity.runId);
  return seal ? { ...identity, argsHash: seal.digest(identity.argsHash) } : identity;
}

export function createEffectLedger(db: SealedDb): EffectLedger {
  return {
    async inherit(effects) {
      for (const { identity: asked, ...former } of effects) {
        const identity = await keyed(db, asked);
        await db.transaction((tx) => inherit(tx, { ...former, identity }));
      }
    },
    async claim(asked, attempt, options) {
      const identity = await keyed(db, asked);
      return db.transaction((tx) => claim(tx, { identity, attempt, options }));
    },
    async recall(asked) {
      const identity = await keyed(db, asked);
      return db.transaction((tx) => recall(tx, identity));
    },
    async renew(effectId, epoch, leaseMs) {
      const held = await db.query(
        `UPDATE effects SET lease_until_ms = openwop_now_ms() + $3::bigint
         WHERE effect_id = $1 AND epoch = $2 AND state = 'claimed' RETURNING 1`,
        [effectId, epoch, leaseMs],
      );
      return held.length > 0;
    },
    async settle(effectId, epoch, state, outcomeHash) {
      // The same word said twice is true twice: the first answer may have been lost on its way.
      const settled = await db.query(
        `UPDATE effects SET state = $3, outcome_hash = $4 WHERE effect_id = $1 AND epoch = $2
           AND (state IN ('claimed', 'in-doubt') OR (state = $3 AND outcome_hash IS NOT DISTINCT FROM $4::text))
         RETURNING 1`,
        [effectId, epoch, state, outcomeHash ?? null],
      );
      return settled.length > 0;
    },
    async putBack(lost) {
      const identity = await keyed(db, lost.identity);
      const effect = { leaseMs: 0, ...lost, identity };
      return db.transaction(
        async (tx) => (await stateOf(tx, identity)) === 'open' && insert(tx, effect),
      );
    },
    async ofRun({ tenant, runId }) {
      const records = await db.query<EffectRecord>(
        `SELECT ${COLUMNS} FROM effects WHERE tenant_id = $1 AND run_id = $2 ORDER BY created_at_ms, effect_id`,
        [tenant, runId],
      );
      return records.map(effectOf);
    },
  };
}

interface Ask {
  readonly identity: EffectIdentity;
  readonly attempt: number;
  readonly options: ClaimOptions;
}

async function claim(tx: Transaction, ask: Ask): Promise<EffectClaim> {
  const { identity, attempt, options } = ask;
  const run = await stateOf(tx, identity);
  if (run === 'none') throw new HostError('run_not_found', { runId: identity.runId });
  if (run === 'closed') return { kind: 'run-closed' };
  const effectId = effectIdOf(identity);
  const found = await find(tx, effectId);
  const isNew = !found || found.state === 'failed-before-send';
  // A word on a doubt whose row is not here, but in the ledger of a fork's source: of a sending under another key.
  const isForeign = !found && isOnDoubt(options);
  const stands = isNew && !isForeign ? await standsInTheWay(tx, ask) : undefined;
  if (stands) return stands;
  if (isNew && typeof options.force === 'object') await noteTold(tx, identity, options.force);
  if (found) return claimFound(tx, ask, found);
  const epoch = wordEpoch(options) + 1;
  const { idempotent, leaseMs } = options;
  const isAsked = isForeign || options.isHarmless !== true;
  const claimed = { identity, attempt, state: 'claimed', epoch, idempotent, leaseMs } as const;
  if (await insert(tx, { ...claimed, isAsked, isForeign }))
    return { kind: 'perform', effectId, epoch, isAsked, isForeign, inDoubt: isForeign };
  // Another claimer inserted it meanwhile; rows are never deleted, so now it is found.
  return claim(tx, ask);
}

/**
 * Shared: claims go side by side, but the append that closes the run waits for them, and they for it. Throws service_unavailable
 * where the run is there and its log is not: it is made again.
 */
async function stateOf(
  tx: Transaction,
  { runId, tenant }: EffectIdentity,
): Promise<'open' | 'closed' | 'none'> {
  const [head] = await tx.query<{ closed: boolean }>(
    'SELECT closed FROM run_heads WHERE run_id = $1 AND tenant_id = $2 FOR SHARE',
    [runId, tenant],
  );
  if (head) return head.closed ? 'closed' : 'open';
  const known = 'SELECT 1 FROM runs WHERE run_id = $1 AND tenant_id = $2';
  if ((await tx.query(known, [runId, tenant])).length === 0) return 'none';
  throw new HostError('service_unavailable', {
    reason: 'The log of the run is being made again; try again later.',
  });
}

async function inherit(tx: Transaction, former: FormerEffect): Promise<void> {
  // Also of a run that has ended meanwhile: its series goes on in its family.
  if ((await stateOf(tx, former.identity)) === 'none') return;
  const inherited = { idempotent: false, isAsked: true, isForeign: true, epoch: INHERITED_EPOCH };
  if (await insert(tx, { ...former, ...inherited, leaseMs: 0 })) return;
  const { state, outcomeHash = null } = former;
  const { tenant, runId } = former.identity;
  const own = [effectIdOf(former.identity), runId, INHERITED_EPOCH, tenant];
  await tx.query(OWN_SQL, [...own, state, outcomeHash]);
}

/**
 * What was noted with a run above ($2's parent and those above that) while this one was not there is this one's own. What a run
 * below, or one beside it, has is left to that: whoever notes it again, in whatever order, changes nothing. What was in doubt
 * when it was noted above may be known by now.
 */
const OWN_SQL = `
  WITH RECURSIVE above AS (
    SELECT parent_run_id FROM session_runs WHERE tenant_id = $4 AND run_id = $2
    UNION
    SELECT s.parent_run_id FROM above JOIN session_runs s ON s.tenant_id = $4 AND s.run_id = above.parent_run_id
  )
  UPDATE effects SET run_id = $2,
    state = CASE WHEN state = 'in-doubt' THEN $5 ELSE state END,
    outcome_hash = CASE WHEN state = 'in-doubt' THEN $6 ELSE outcome_hash END
  WHERE effect_id = $1 AND epoch = $3 AND run_id IN (SELECT parent_run_id FROM above)`;

interface NewEffect {
  readonly identity: EffectIdentity;
  readonly attempt: number;
  readonly state: EffectState;
  readonly idempotent: boolean;
  readonly isAsked: boolean;
  readonly isForeign: boolean;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly outcomeHash?: string;
}

/** False: there is one by this identity. */
async function insert(tx: Transaction, effect: NewEffect): Promise<boolean> {
  const { identity, attempt, state, idempotent, isAsked, isForeign } = effect;
  const { epoch, leaseMs, outcomeHash = null } = effect;
  const { tenant, runId, rootRunId, series, nodeId, visit, toolId, argsHash, occurrence } =
    identity;
  const named = [tenant, runId, rootRunId, series, nodeId, visit, toolId, argsHash, occurrence];
  const inserted = await tx.query(
    `INSERT INTO effects (effect_id, tenant_id, run_id, root_run_id, series, node_id, visit, tool_id, args_hash, occurrence,
       attempt, state, idempotent, is_asked, is_foreign, epoch, outcome_hash, lease_until_ms, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, openwop_now_ms() + $18::bigint,
       openwop_now_ms())
     ON CONFLICT DO NOTHING RETURNING 1`,
    [
      ...[effectIdOf(identity), ...named, attempt, state, idempotent, isAsked, isForeign],
      ...[epoch, outcomeHash, leaseMs],
    ],
  );
  return inserted.length > 0;
}

type Found = EffectRecord & { readonly now_ms: number };

async function find(tx: Transaction, effectId: string): Promise<Found | undefined> {
  const [found] = await tx.query<Found>(
    `SELECT ${COLUMNS}, openwop_now_ms() AS now_ms FROM effects WHERE effect_id = $1 FOR UPDATE`,
    [effectId],
  );
  return found;
}

async function recall(
  tx: Transaction,
  identity: EffectIdentity,
): Promise<EffectRecall | undefined> {
  const found = await find(tx, effectIdOf(identity));
  return found && recallFound(tx, found);
}

/** What is known of it, for who may not perform it again. Undefined: it did not leave the host. */
async function recallFound(tx: Transaction, found: Found): Promise<EffectRecall | undefined> {
  const { effect_id: effectId, epoch, outcome_hash: outcomeHash } = found;
  const { is_asked: isAsked, is_foreign: isForeign } = found;
  switch (found.state) {
    case 'done':
      return { kind: 'done', effectId, outcomeHash: outcomeHash ?? '' };
    case 'done-without-result':
    case 'failed-final':
      return { kind: 'failed', effectId, outcomeHash: outcomeHash ?? '' };
    case 'claimed':
      if (found.lease_until_ms > found.now_ms)
        return { kind: 'busy', effectId, leaseUntilMs: found.lease_until_ms };
      await tx.query(
        "UPDATE effects SET state = 'in-doubt', epoch = epoch + 1 WHERE effect_id = $1",
        [effectId],
      );
      return { kind: 'in-doubt', effectId, epoch: epoch + 1, isAsked, isForeign };
    case 'in-doubt':
      return { kind: 'in-doubt', effectId, epoch, isAsked, isForeign };
    case 'failed-before-send':
      return undefined;
  }
}

async function claimFound(
  tx: Transaction,
  { identity, attempt, options }: Ask,
  found: Found,
): Promise<EffectClaim> {
  const isSameKey = found.epoch > INHERITED_EPOCH;
  const isForced = isWordOn(found, options.force);
  const isRepeatable = options.idempotent && found.idempotent && isSameKey;
  const mayRepeat = isRepeatable || isForced;
  // Neither a human's word nor that the tool is idempotent says what became of it.
  const inDoubt =
    found.state === 'in-doubt' ||
    (found.state === 'claimed' && found.lease_until_ms <= found.now_ms);
  const known = inDoubt && mayRepeat ? undefined : await recallFound(tx, found);
  if (known) return known;
  const epoch = Math.max(found.epoch, wordEpoch(options)) + 1;
  const { idempotent, leaseMs } = options;
  const isAsked = options.isHarmless !== true || (inDoubt && found.is_asked);
  const isForeign = inDoubt && found.is_foreign;
  const { runId } = identity;
  const claimed = { runId, attempt, idempotent, isAsked, isForeign, leaseMs, inDoubt, epoch };
  return claimAgain(tx, found, claimed);
}

/** A word that a fork's source was given is none on what the fork has of it: that has an epoch of its own. */
function isWordOn({ epoch }: Found, word: ClaimOptions['force']): boolean {
  return word === 'settles' || (word !== undefined && word.epoch === epoch);
}

/** A claim by a word has a later epoch than the doubt that it is about, whatever the row's was: the word is used up. */
function wordEpoch({ force }: ClaimOptions): number {
  return typeof force === 'object' ? (force.epoch ?? 0) : 0;
}

/** Of the very call that is claimed: it may have been made. */
function isOnDoubt({ force }: ClaimOptions): boolean {
  return typeof force === 'object' && force.epoch !== undefined;
}

async function claimAgain(
  tx: Transaction,
  { effect_id: effectId }: EffectRecord,
  claimed: Omit<NewEffect, 'identity' | 'state' | 'outcomeHash'> & {
    readonly runId: string;
    readonly inDoubt: boolean;
  },
): Promise<EffectClaim> {
  const { runId, attempt, idempotent, isAsked, isForeign, leaseMs, epoch, inDoubt } = claimed;
  await tx.query(
    `UPDATE effects SET state = 'claimed', epoch = $4, attempt = $2, outcome_hash = NULL, idempotent = $5,
       run_id = $6, is_told = false, is_asked = $7, is_foreign = $8,
       lease_until_ms = openwop_now_ms() + $3::bigint
     WHERE effect_id = $1`,
    [effectId, attempt, leaseMs, epoch, idempotent, runId, isAsked, isForeign],
  );
  return { kind: 'perform', effectId, epoch, isAsked, isForeign, inDoubt };
}

/** It may have happened. */
const IS_DOUBT =
  "(state = 'in-doubt' OR (state = 'claimed' AND lease_until_ms <= openwop_now_ms()))";

/** Which doubt it is: a claim whose lease is over becomes one of the next epoch, whoever notes it first. */
const EPOCH =
  "(epoch + CASE WHEN state = 'claimed' AND lease_until_ms <= openwop_now_ms() THEN 1 ELSE 0 END)";

/** ms after which a call looks again whether the one that it waits for, at another node or visit, has ended. */
const WAIT_MS = 1_000;
/** Earlier calls that a human is shown at once; the others are asked about after these. */
const MAX_SHOWN = 5;
// $1 tenant, $2 root, $3 tool, $4 series, $5 node, $6 visit, $7 run, $8 attempt, $9 arguments, $10 the new row, which another
// claimer may have inserted meanwhile, $11 calls were left, $12 what a human was shown. In its own place each doubt counts, and what an earlier attempt did,
// or may have done. Elsewhere a doubt counts that nobody may be asked about: after a call was left, of any run of the family; else of
// one that has ended. A claim with a running lease in this run, or in one that has ended, may be what was left: its end is
// waited for.
const STANDING_SQL = `
  SELECT why, effect_id, epoch, run_id, node_id, LEAST(lease_until_ms, openwop_now_ms() + ${WAIT_MS}) AS wait_until_ms FROM (
    SELECT effect_id, ${EPOCH} AS epoch, run_id, node_id, is_told, created_at_ms, lease_until_ms, CASE
        WHEN series = $4 AND node_id = $5 AND visit = $6 THEN CASE
          WHEN ${IS_DOUBT} THEN 'doubt'
          WHEN state = 'done-without-result' AND args_hash = $9 THEN 'result'
          WHEN state IN ('done', 'done-without-result', 'claimed') AND (run_id <> $7 OR attempt < $8)
            THEN 'attempt' END
        WHEN is_told OR state NOT IN ('in-doubt', 'claimed') THEN NULL
        WHEN NOT $11::boolean AND (run_id = $7 OR is_open) THEN NULL
        WHEN ${IS_DOUBT} THEN 'doubt'
        WHEN run_id = $7 OR NOT is_open THEN 'busy'
      END AS why
    FROM effects CROSS JOIN LATERAL (
      SELECT EXISTS (SELECT 1 FROM run_heads h WHERE h.run_id = effects.run_id AND NOT h.closed) AS is_open
    ) AS run
    WHERE tenant_id = $1 AND tool_id = $3 AND effect_id <> $10 AND (
        (series = $4 AND node_id = $5 AND visit = $6)
        OR (root_run_id = $2 AND state IN ('in-doubt', 'claimed')))
  ) AS standing
  WHERE why IS NOT NULL AND why || ' ' || epoch || ' ' || effect_id <> ALL($12::text[])
  ORDER BY array_position(ARRAY['result', 'doubt', 'attempt', 'busy'], why), is_told, created_at_ms, effect_id
  LIMIT ${MAX_SHOWN + 1}`;

interface Standing {
  readonly why: StandingReason | 'busy';
  readonly effect_id: string;
  readonly epoch: number;
  readonly run_id: string;
  readonly node_id: string;
  readonly wait_until_ms: number;
}

/** What keeps a new call of a tool with effects from being performed: a human must know of it, or it is about to end. */
async function standsInTheWay(
  tx: Transaction,
  { identity, attempt, options }: Ask,
): Promise<Extract<EffectClaim, { kind: 'differs' | 'busy' }> | undefined> {
  const { force } = options;
  if (options.isHarmless || force === 'settles') return undefined;
  const { tenant, runId, rootRunId, series, toolId, nodeId, visit, argsHash } = identity;
  const effectId = effectIdOf(identity);
  const standing = await tx.query<Standing>(STANDING_SQL, [
    ...[tenant, rootRunId, toolId, series, nodeId, visit],
    ...[runId, attempt, argsHash, effectId, options.hasLeftCalls === true],
    force?.shown?.map(shownKey) ?? [],
  ]);
  const [first] = standing;
  if (!first) return undefined;
  if (first.why === 'busy') return { kind: 'busy', effectId, leaseUntilMs: first.wait_until_ms };
  const all = standing.flatMap(earlierCall);
  const earlier = all.slice(0, MAX_SHOWN);
  return { kind: 'differs', effectId, earlier, isMore: all.length > MAX_SHOWN };
}

/** None of what is waited for: it comes last. */
function earlierCall({ why, effect_id, epoch, run_id, node_id }: Standing): EarlierCall[] {
  if (why === 'busy') return [];
  return [{ effectId: effect_id, epoch, why, runId: run_id, nodeId: node_id }];
}

/** As STANDING_SQL writes it. */
function shownKey({ why, epoch, effectId }: ShownCall): string {
  return `${why} ${epoch} ${effectId}`;
}

/**
 * A human who was shown these doubts has this call performed: no later one is asked about for their sake elsewhere. Those
 * that the human was not shown keep their question.
 */
async function noteTold(
  tx: Transaction,
  { tenant, rootRunId }: EffectIdentity,
  { shown = [] }: Exclude<HumanWord, 'settles'>,
): Promise<void> {
  const doubts = shown.filter(({ why }) => why === 'doubt').map(shownKey);
  if (doubts.length === 0) return;
  await tx.query(
    `UPDATE effects SET is_told = true
     WHERE tenant_id = $1 AND root_run_id = $2 AND ${IS_DOUBT} AND NOT is_told
       AND 'doubt ' || ${EPOCH} || ' ' || effect_id = ANY($3::text[])`,
    [tenant, rootRunId, doubts],
  );
}

function effectOf(record: EffectRecord): EffectRow {
  return {
    effectId: record.effect_id,
    identity: {
      tenant: record.tenant_id,
      runId: record.run_id,
      rootRunId: record.root_run_id,
      series: record.series,
      nodeId: record.node_id,
      visit: record.visit,
      toolId: record.tool_id,
      argsHash: record.args_hash,
      occurrence: record.occurrence,
    },
    attempt: record.attempt,
    state: record.state,
    epoch: record.epoch,
    leaseUntilMs: record.lease_until_ms,
    ...(record.outcome_hash === null ? {} : { outcomeHash: record.outcome_hash }),
  };
}
