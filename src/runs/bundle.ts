// A run in one file, to be looked into and replayed where neither its host nor its keys are (architecture §6): what it was
// started with, its log, and what it was given. What nobody may read stays out of it; the same stands in its place
// wherever it stood, so that a replay is equal all the same.
import { HostError } from '../rules/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import type { RecordedEntry, Recording } from '../rules/recording.ts';
import {
  createRedactor,
  MIN_SECRET_LENGTH,
  REDACTION,
  WITHHELD,
  type Redactor,
  type Secret,
} from '../rules/redaction.ts';
import type { RunInput } from '../rules/run-input.ts';
import { ENGINE_VERSION, eraOf, revisionOf } from '../rules/versions.ts';
import type { Head } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import type { Log } from '../log/log.ts';
import { BUNDLE_FORMAT, BUNDLE_FORMAT_VERSION, bundleText } from '../wire/run-bundle.ts';
import type { RunBundle } from '../../schemas/types.generated.ts';

export interface BundleDeps {
  readonly log: Pick<Log, 'fresh' | 'recording'>;
  readonly stores: Pick<Stores, 'content'>;
  readonly redactor: Pick<Redactor, 'json'>;
}

/** Who made it, and how the run is shown. */
export interface BundleFacts extends Pick<RunBundle, 'host'> {
  readonly temporalSdk: string;
  readonly shown: (head: Head) => object;
}

/**
 * Of the run as it is now. Throws capability_not_provided (of a fork), payload_too_large, service_unavailable,
 * history_undecodable, history_missing, content_missing.
 */
export async function runBundle(
  deps: BundleDeps,
  row: RunRow,
  { host, temporalSdk, shown }: BundleFacts,
): Promise<string> {
  const { input } = row;
  if (input.fork) throw new HostError('capability_not_provided', { capability: 'bundle: forks' });
  const { head, stale } = await deps.log.fresh(row);
  if (stale) throw new HostError('service_unavailable');
  const recording = await deps.log.recording(row, head.nextSequence);
  const { clean, withheld } = cleanerOf(deps.redactor, input);
  return bundleText({
    exportedAt: new Date().toISOString(),
    format: BUNDLE_FORMAT,
    formatVersion: BUNDLE_FORMAT_VERSION,
    host,
    versions: {
      ...{ engine: ENGINE_VERSION, eventLog: eraOf(input) },
      ...{ translate: input.translateVersion, revision: revisionOf(input) },
      ...{ temporalSdk, node: process.version },
    },
    redaction: { ...REDACTION, withheld },
    run: clean(shown(head)) as RunBundle['run'],
    input: cleanInput(input, withheld, clean) as unknown as RunBundle['input'],
    manifests: await manifestsOf(deps, row, clean),
    recording: cleanRecording(recording, clean) as unknown as RunBundle['recording'],
  });
}

type Clean = <Value>(value: Value) => Value;

/** What takes the place of secrets, and the names of the variables whose values are among them. */
function cleanerOf(
  redactor: Pick<Redactor, 'json'>,
  { definition, variables }: RunInput,
): { readonly clean: Clean; readonly withheld: string[] } {
  const withheld = definition.variables
    .filter(({ name, sensitive }) => sensitive && (variables[name] ?? null) !== null)
    .map(({ name }) => name);
  const secrets = withheld.flatMap((name) => secretsIn(name, variables[name] ?? null));
  const own = createRedactor(secrets);
  return { withheld, clean: (value) => own.json(redactor.json(value)) };
}

/** All texts of a sensitive value. One that a mask cannot stand for, since it is no text, goes as a whole. */
function secretsIn(name: string, value: JsonValue): Secret[] {
  if (typeof value === 'string')
    return [{ id: /^[\w.-]+$/.test(name) ? name : 'sensitive', value }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((member) => secretsIn(name, member));
}

/** A replay works with the mask, as it stands in the log; what is not masked there has one word in its place. */
function cleanInput(input: RunInput, withheld: readonly string[], clean: Clean): RunInput {
  const { definition, variables, configurable, message, tags, metadata } = input;
  const kept = Object.entries(clean(variables)).map(([name, value]): [string, JsonValue] => [
    name,
    withheld.includes(name) && !isMasked(variables[name]) ? WITHHELD : value,
  ]);
  return {
    ...input,
    definition: clean(definition),
    variables: Object.fromEntries(kept),
    configurable: clean(configurable),
    ...(message ? { message: clean(message) } : {}),
    ...(tags ? { tags: clean(tags) } : {}),
    ...(metadata ? { metadata: clean(metadata) } : {}),
  };
}

function isMasked(value: JsonValue | undefined): boolean {
  return typeof value === 'string' && value.length >= MIN_SECRET_LENGTH;
}

function cleanRecording({ batches, entries }: Recording, clean: Clean): Recording {
  return {
    batches: batches.map((batch) => ({
      ...batch,
      stimuli: batch.stimuli.map((stimulus) => {
        switch (stimulus.kind) {
          case 'step':
            return { ...stimulus, outcome: clean(stimulus.outcome) };
          case 'message':
            return { ...stimulus, message: clean(stimulus.message) };
          case 'timer':
          case 'child-ended':
          case 'cancel-requested':
            return stimulus;
        }
      }),
    })),
    entries: entries.map((entry): RecordedEntry => ({
      ...entry,
      payload: cleanText(entry, clean),
    })),
  };
}

/** As a value: in a text the same secret may stand behind the letters of an escape. */
function cleanText({ payload }: RecordedEntry, clean: Clean): string {
  return JSON.stringify(clean(JSON.parse(payload) as JsonValue));
}

/** Manifests with their prompts and schemas, as pinned when the run began. */
async function manifestsOf(
  { stores }: BundleDeps,
  { tenant, input }: RunRow,
  clean: Clean,
): Promise<RunBundle['manifests']> {
  const manifests: RunBundle['manifests'] = [];
  for (const { agentId, manifestHash } of Object.values(input.agents)) {
    const stored = await stores.content.get(tenant, manifestHash);
    const resolved: unknown = JSON.parse(new TextDecoder().decode(stored));
    if (!isJsonObject(resolved)) throw new HostError('content_missing');
    manifests.push({ agentId, manifestHash, resolved: clean<JsonObject>(resolved) });
  }
  return manifests;
}
