// A run in one file, to be looked into and replayed where neither its host nor its keys are (architecture §6): what it was
// started with, its log, and what it was given. What nobody may read stays out of it; the same stands in its place
// wherever it stood, so that a replay is equal all the same.
import { HostError } from '../rules/errors.ts';
import { livedBy } from '../rules/divergence.ts';
import { deltaPayload, readDelta } from '../rules/deltas.ts';
import { eventRow } from '../rules/events.ts';
import { blockOfKey } from '../rules/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { RUN_BUNDLE_BYTES } from '../rules/limits.ts';
import type { RecordedEntry, Recording } from '../rules/recording.ts';
import {
  createRedactor,
  MIN_SECRET_LENGTH,
  REDACTION,
  WITHHELD,
  type Redactor,
  type Secret,
} from '../rules/redaction.ts';
import type { ForkOf, RunInput } from '../rules/run-input.ts';
import { sensitiveLiterals, withDefaultsShown } from '../rules/variables.ts';
import { ENGINE_VERSION } from '../rules/versions.ts';
import type { Head } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import type { Log } from '../log/log.ts';
import { BUNDLE_FORMAT, BUNDLE_FORMAT_VERSION, bundleText } from '../wire/run-bundle.ts';
import type { RunBundle } from '../../schemas/types.generated.ts';
import { digestHider } from './bundle-digests.ts';
import { WENT_ON, wentOn } from './fork.ts';

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
 * Of the run as it is now. Throws capability_not_provided (of too many sensitive texts, of one that the run is made of),
 * payload_too_large, service_unavailable, history_undecodable, key_unavailable, history_missing,
 * content_missing, subject_erased.
 */
export async function runBundle(
  deps: BundleDeps,
  row: RunRow,
  { host, temporalSdk, shown }: BundleFacts,
): Promise<string> {
  if (row.erasedAtMs !== undefined) throw new HostError('subject_erased', { runId: row.runId });
  // Of what a fork goes by its record tells, where it left its source; of which run it is one the snapshot.
  const { fork, ...input } = row.input;
  const { head, stale } = await deps.log.fresh(row);
  if (stale) throw new HostError('service_unavailable');
  const { clean, withheld } = cleanerOf(deps.redactor, row.input);
  const recording = await deps.log.recording(row, head.nextSequence, RUN_BUNDLE_BYTES);
  if (wentOn(row.input, recording.entries))
    throw new HostError('capability_not_provided', { capability: `bundle: ${WENT_ON}` });
  const content: Omit<RunBundle, 'checksum'> = {
    exportedAt: new Date().toISOString(),
    format: BUNDLE_FORMAT,
    formatVersion: BUNDLE_FORMAT_VERSION,
    host,
    versions: {
      ...{ engine: ENGINE_VERSION, eventLog: input.era },
      ...{ translate: input.translateVersion, revision: input.revision },
      ...{ temporalSdk, node: process.version },
    },
    redaction: { ...REDACTION, withheld },
    run: clean(shown(head)) as RunBundle['run'],
    input: cleanInput(input, withheld, clean) as unknown as RunBundle['input'],
    manifests: await manifestsOf(deps, { ...row, input: fork ? livedBy(row.input) : input }, clean),
    recording: cleanRecording(recording, clean) as unknown as RunBundle['recording'],
  };
  if (madeOf(content) !== madeOf({ run: shown(head), input, recording })) throw notMasked();
  return bundleText(content);
}

/** Names that a replay goes by. A sensitive text that is one of them cannot be masked without breaking the run. */
function madeOf(whole: {
  readonly run: object;
  readonly input: object;
  readonly recording: object;
}): string {
  const { run, input, recording } = whole as unknown as {
    run: { status: string };
    input: Pick<RunInput, 'definition' | 'agents'>;
    recording: Recording;
  };
  const { nodes, edges, variables, channels = {} } = input.definition;
  return JSON.stringify([
    ...[run.status, Object.keys(input), Object.keys(channels)],
    nodes.map(({ id, typeId, inputs }) => [id, typeId, Object.keys(inputs)]),
    edges.map(({ sourceNodeId, targetNodeId, triggerRule }) => [
      sourceNodeId,
      targetNodeId,
      triggerRule,
    ]),
    variables.map(({ name, type }) => [name, type]),
    recording.batches.map(({ stimuli }) =>
      stimuli.map((stimulus) =>
        stimulus.kind === 'step'
          ? [stimulus.outcome.kind, Object.keys(stimulus.outcome)]
          : stimulus.kind,
      ),
    ),
  ]);
}

function notMasked(): HostError {
  const capability = 'bundle: a sensitive value that is a name of the run';
  return new HostError('capability_not_provided', { capability });
}

type Clean = <Value>(value: Value) => Value;
type Delta = ReturnType<typeof readDelta>;

/** Texts of sensitive values that are masked in one file. */
const MAX_SECRETS = 200;

/** What takes the place of secrets, and the names of the variables whose values are among them. */
function cleanerOf(
  redactor: Pick<Redactor, 'json'>,
  input: RunInput,
): { readonly clean: Clean; readonly withheld: string[] } {
  const { definition, variables } = input;
  const withheld = definition.variables
    .filter(({ name, sensitive }) => sensitive && (variables[name] ?? null) !== null)
    .map(({ name }) => name);
  const secrets = withheld.flatMap((name) => secretsIn(name, variables[name] ?? null));
  withDefaultsShown(definition, (value) => {
    secrets.push(...secretsIn('default', value));
    return value;
  });
  for (const value of sensitiveLiterals(definition)) secrets.push(...secretsIn('literal', value));
  const byText = new Map(secrets.reverse().map((secret) => [secret.value, secret]));
  // Each text of the record is searched for each of them, on the thread that serves everybody.
  const capability = `bundle: more than ${MAX_SECRETS} sensitive texts`;
  if (byText.size > MAX_SECRETS) throw new HostError('capability_not_provided', { capability });
  const own = createRedactor([...byText.values()]);
  const hide = secrets.length > 0 || withheld.length > 0 ? digestHider(input) : undefined;
  const masked: Clean = (value) => own.json(redactor.json(value));
  return { withheld, clean: (value) => (hide ? hide(masked(value)) : masked(value)) };
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
    definition: clean(
      withDefaultsShown(definition, (value) => (isMasked(value) ? value : WITHHELD)),
    ),
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
      ...(batch.leaves ? { leaves: cleanLeaving(batch.leaves, clean) } : {}),
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
    entries: cleanStreams(entries, clean).map((entry): RecordedEntry => ({
      ...entry,
      payload: cleanText(entry, clean),
    })),
  };
}

/** What was asked of it is what it goes by. */
function cleanLeaving({ asked: _, overlay, inherited, ...of }: ForkOf, clean: Clean): ForkOf {
  return {
    ...of,
    ...(overlay ? { overlay: clean(overlay) } : {}),
    ...(inherited ? { inherited: clean(inherited) } : {}),
  };
}

/** A secret that came in pieces stands in none of them: the masked whole takes the place of the first one. */
function cleanStreams(entries: readonly RecordedEntry[], clean: Clean): RecordedEntry[] {
  const streams = new Map<string, { readonly at: number; readonly delta: Delta }[]>();
  entries.forEach(({ key, type, payload }, at) => {
    const block = blockOfKey(key);
    if (block === undefined || eventRow(type).piece === null) return;
    const delta = readDelta(type, payload);
    const stream = `${block} ${type} ${delta.piece.channel ?? ''}`;
    streams.set(stream, [...(streams.get(stream) ?? []), { at, delta }]);
  });
  const cleaned = [...entries];
  for (const pieces of streams.values()) {
    const whole = pieces.map(({ delta }) => delta.piece.text).join('');
    const shown = clean(whole);
    if (shown === whole) continue;
    pieces.forEach(({ at, delta: { form, piece } }, index) => {
      const text = index === 0 ? shown : '';
      const entry = entries[at] as RecordedEntry;
      cleaned[at] = { ...entry, payload: deltaPayload(form, { ...piece, text }, index) };
    });
  }
  return cleaned;
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
