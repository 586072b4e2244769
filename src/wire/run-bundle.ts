// A run in one file (run-bundle.schema.json): its text with a checksum, and the reading of a text that anybody may have
// made. Nothing in it is a path, an address or a program: it is read, and played as a record.
import { createHash } from 'node:crypto';
import { HostError } from '../rules/errors.ts';
import { canonicalJson, isJsonObject, type JsonObject } from '../rules/json.ts';
import { faultText, readJson } from '../rules/json-text.ts';
import { RUN_BUNDLE_BYTES } from '../rules/limits.ts';
import { TRANSLATE_VERSION } from '../rules/run-input.ts';
import { ERA, REVISION } from '../rules/versions.ts';
import type { RunBundle } from '../../schemas/types.generated.ts';
import { validate } from './validators.ts';

export const BUNDLE_FORMAT = 'openwop-temporal.run-bundle';
export const BUNDLE_FORMAT_VERSION = 1;
/** Deepest nesting of objects and arrays: what reads a text, and what walks a value, needs memory for it. */
const MAX_LEVELS = 512;

/** The file. Throws payload_too_large. */
export function bundleText(content: Omit<RunBundle, 'checksum'>): string {
  const body = canonicalJson(content);
  // Before all other members: the text is canonical, too.
  const text = `{"checksum":"${digestOf(body)}",${body.slice(1)}`;
  const bytes = Buffer.byteLength(text);
  if (bytes > RUN_BUNDLE_BYTES) throw tooLarge(bytes);
  return text;
}

/** For whoever knows the size of a file before its content. */
export function tooLarge(bytes: number): HostError {
  return new HostError('payload_too_large', {
    reason: `A bundle of a run has at most ${RUN_BUNDLE_BYTES} bytes; this one has ${bytes}.`,
    limit: RUN_BUNDLE_BYTES,
  });
}

/**
 * What the file holds, as it was made. Throws payload_too_large, bundle_invalid, bundle_unsupported (of another version)
 * and bundle_changed, in this order.
 */
export function readRunBundle(file: Uint8Array): RunBundle {
  if (file.byteLength > RUN_BUNDLE_BYTES) throw tooLarge(file.byteLength);
  const { checksum, ...content } = objectIn(file);
  if (content.format !== BUNDLE_FORMAT)
    throw new HostError('bundle_invalid', { reason: `The file is no ${BUNDLE_FORMAT}.` });
  if (content.formatVersion !== BUNDLE_FORMAT_VERSION)
    throw unsupported('formatVersion', content.formatVersion, BUNDLE_FORMAT_VERSION);
  if (checksum !== digestOf(canonicalJson(content))) throw new HostError('bundle_changed');
  const checked = validate.runBundle({ checksum, ...content });
  if (!checked.ok) {
    const [{ pointer, message }] = checked.errors;
    const reason = `The bundle is not valid: ${pointer || '/'} ${message}.`;
    throw new HostError('bundle_invalid', { reason, pointer });
  }
  checkTogether(checked.value);
  return checked.value;
}

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function objectIn(file: Uint8Array): JsonObject {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(file);
  } catch (cause) {
    throw new HostError('bundle_invalid', { reason: 'The file is no JSON text.' }, cause);
  }
  const read = readJson(text, MAX_LEVELS);
  if (!read.ok) {
    const reason = read.isJson
      ? `${faultText('The bundle', read.fault)}.`
      : 'The file is no JSON text.';
    throw new HostError('bundle_invalid', { reason, pointer: read.fault.pointer });
  }
  if (!isJsonObject(read.value))
    throw new HostError('bundle_invalid', { reason: 'The file is no bundle of a run.' });
  return read.value;
}

function unsupported(what: string, found: unknown, known: number): HostError {
  return new HostError('bundle_unsupported', {
    reason: `The bundle's ${what} is ${JSON.stringify(found)}; this release reads ${known}.`,
  });
}

/** What a schema cannot say: parts that belong together, and versions of runs that this release can go on with. */
function checkTogether({ run, input, recording }: RunBundle): void {
  if (run.runId !== input.runId)
    throw new HostError('bundle_invalid', { reason: 'The bundle holds parts of two runs.' });
  const { translateVersion, era, revision } = input;
  if (translateVersion > TRANSLATE_VERSION)
    throw unsupported('translateVersion', translateVersion, TRANSLATE_VERSION);
  if (era !== ERA) throw unsupported('era', era, ERA);
  if (revision > REVISION) throw unsupported('revision', revision, REVISION);
  for (const [sequence, { payload }] of recording.entries.entries())
    if (!isJsonText(payload))
      throw new HostError('bundle_invalid', {
        reason: `The bundle is not valid: /recording/entries/${sequence}/payload is no JSON object.`,
      });
}

function isJsonText(text: string): boolean {
  const read = readJson(text, MAX_LEVELS);
  return read.ok && isJsonObject(read.value);
}
