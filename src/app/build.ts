// Which build this process is (docs/upgrades.md): as it was told, or made of release and workflow code.
import { workflowDigest } from '../adapters/temporal/bundle.ts';
import type { Promotion, Versioning } from '../adapters/temporal/versioning.ts';
import { HostError } from '../rules/errors.ts';
import type { Config } from './config.ts';
import { VERSION } from './versions.ts';

/** Of the digest of the workflow code, in a build id that is made. */
const DIGEST_CHARS = 12;

export interface ProcessBuild {
  /** Absent: it names none. */
  readonly versioning?: Versioning;
  readonly promotion: Promotion;
  /** The worker's connection tells whether the server takes the id. */
  note(isTaken: boolean): void;
  /** The build's id while runs that it performs stay with it, else undefined. */
  pinned(): string | undefined;
}

/** Throws HostError config_invalid. */
export async function buildOf(config: Config): Promise<ProcessBuild> {
  const known = await settingsOf(config);
  const { versioning } = known;
  let isTaken = false;
  return {
    ...known,
    note: (taken) => void (isTaken = taken),
    pinned: () => (isTaken && versioning?.runs === 'pinned' ? versioning.buildId : undefined),
  };
}

async function settingsOf({
  build,
  temporal,
}: Config): Promise<Pick<ProcessBuild, 'versioning' | 'promotion'>> {
  // The data folder has one owner, and its server one worker: whatever is open there can go on with no other.
  const isAlone = temporal.kind === 'dev';
  const promotion = isAlone ? 'always' : 'where-none-is';
  if (!build) return { promotion };
  if (isAlone && build.runs === 'pinned') {
    const fault =
      'OPENWOP_RUN_VERSIONING must not be pinned where Temporal belongs to this one process: runs of an older build would have no worker.';
    throw new HostError('config_invalid', { reason: fault, faults: [fault] });
  }
  const buildId = build.id === 'auto' ? await madeId() : build.id;
  return {
    promotion,
    versioning: { buildId, runs: isAlone ? 'auto-upgrade' : (build.runs ?? 'pinned') },
  };
}

async function madeId(): Promise<string> {
  return `${VERSION}-${(await workflowDigest()).slice(0, DIGEST_CHARS)}`;
}
