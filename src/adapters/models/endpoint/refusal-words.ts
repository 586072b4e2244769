// What an endpoint says when it refuses a request, in whatever shape it says it: one sentence, and the names that it has
// for the fault. All of it is untrusted text for one line of a log, a page or a terminal.
import { isJsonObject, parsedJson, type JsonObject } from '../../../rules/json.ts';
import { MODEL_REFUSAL_CHARS } from '../limits.ts';

export interface Words {
  /** One line of at most MODEL_REFUSAL_CHARS; empty where nothing was said. Secrets are still in it. */
  readonly text: string;
  /** The provider's own names of the fault and of what it is about, each without blanks. */
  readonly code?: string;
  readonly type?: string;
  readonly param?: string;
  /** Its own name of the request: for its support. */
  readonly requestId?: string;
}

/** A name and no sentence. */
const NAME = /^(?!\d+$)[A-Za-z0-9_.:/[\]-]{1,128}$/;
/** Members that may hold what is said, in the order in which they are believed. */
const SAID = [
  ...['error', 'errors', 'message', 'Message', 'msg', 'detail', 'details', 'error_message'],
  ...['error_description', 'description', 'reason', 'title'],
] as const;
/** Where `error` is a text it may be no more than a name. */
const SAID_BESIDE_A_NAME = [
  ...['message', 'Message', 'detail', 'error_message', 'error_description', 'error'],
  ...['errors', 'details', 'description', 'reason', 'title'],
] as const;
/** Levels that are looked into; deeper there is no sentence for a person. */
const MAX_DEPTH = 6;
/** Faults of a list that are repeated. */
const MAX_FAULTS = 3;
const REQUEST_IDS = ['x-request-id', 'request-id', 'apim-request-id', 'x-amzn-requestid'] as const;

/** Headers, or what stands for them. */
export interface Head {
  get(name: string): string | null;
}

/** Of a body and its headers. */
export function wordsIn(body: string, headers: Head): Words {
  const parsed = parsedJson(body);
  const words = parsed === undefined ? { text: oneLine(textOfPage(body)) } : wordsOf(parsed);
  // Amazon names the fault in a header alone: `ValidationException:http://…`.
  const named = nameOf(headers.get('x-amzn-errortype')?.split(':')[0]);
  return {
    ...(named === undefined ? {} : { type: named }),
    ...words,
    ...requestIdIn(headers),
  };
}

export function requestIdIn(headers: Head): Pick<Words, 'requestId'> {
  const requestId = REQUEST_IDS.map((name) => nameOf(headers.get(name))).find(Boolean);
  return requestId === undefined ? {} : { requestId };
}

/** Of a value that stands for a fault. */
export function wordsOf(value: unknown): Words {
  const found = find(value, 0);
  const text = oneLine(found.text);
  const { code, ...names } = namesIn(found.named);
  return { text, ...(code === undefined || code === text ? {} : { code }), ...names };
}

interface Found {
  readonly text: string;
  /** What has the names of the fault: that with the sentence above what is around it. */
  readonly named: JsonObject;
}

const NOTHING: Found = { text: '', named: {} };

function find(value: unknown, depth: number): Found {
  if (depth > MAX_DEPTH) return NOTHING;
  if (typeof value === 'string') return findInText(value, depth);
  if (Array.isArray(value)) return findInList(value, depth);
  if (!isJsonObject(value)) return NOTHING;
  let named = value;
  for (const name of typeof value['error'] === 'string' ? SAID_BESIDE_A_NAME : SAID) {
    const found = find(value[name], depth + 1);
    named = { ...named, ...found.named };
    if (found.text === '') continue;
    return { text: withPlace(value, found.text) + upstream(value, depth), named };
  }
  return { text: '', named };
}

/** A gateway may repeat as text what was JSON. */
function findInText(text: string, depth: number): Found {
  const inner = /^\s*[[{]/.test(text) ? parsedJson(text) : undefined;
  const found = inner === undefined ? NOTHING : find(inner, depth + 1);
  return found.text === '' ? { text, named: {} } : found;
}

function findInList(values: readonly unknown[], depth: number): Found {
  const found = values.slice(0, MAX_FAULTS).map((each) => find(each, depth + 1));
  const said = found.filter(({ text }) => text !== '');
  return { text: said.map(({ text }) => text).join('; '), named: said[0]?.named ?? {} };
}

/** FastAPI's `loc`: where in the request a fault is. What was sent there (`input`) is not repeated. */
function withPlace({ loc }: JsonObject, text: string): string {
  const place = pathOf(loc);
  return place === undefined ? text : `${place}: ${text}`;
}

function pathOf(loc: unknown): string | undefined {
  if (!Array.isArray(loc)) return undefined;
  const steps: readonly unknown[] = loc;
  return steps.filter((it) => typeof it === 'string' || typeof it === 'number').join('.');
}

/** What stands behind a gateway, in its own words (`metadata.raw` of OpenRouter). */
function upstream({ metadata }: JsonObject, depth: number): string {
  if (!isJsonObject(metadata)) return '';
  const { text } = find(metadata['raw'], depth + 1);
  const who = typeof metadata['provider_name'] === 'string' ? `${metadata['provider_name']}: ` : '';
  return text === '' ? '' : `: ${who}${text}`;
}

function namesIn(named: JsonObject): Omit<Words, 'text'> {
  const { code, error_code, error, type, status, param, loc } = named;
  const names = {
    code: nameOf(code) ?? nameOf(error_code) ?? nameOf(error),
    type: nameOf(type) ?? nameOf(status),
    param: nameOf(param) ?? nameOf(pathOf(loc)),
  };
  return Object.fromEntries(Object.entries(names).filter(([, name]) => name !== undefined));
}

function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && NAME.test(value) ? value : undefined;
}

/** Of a page its title, else its text; in one pass, because a page may be any text. */
function textOfPage(body: string): string {
  if (!/^\s*</.test(body)) return body;
  const elements = body.slice(0, MODEL_REFUSAL_CHARS).split('<').map(textAfter);
  const title = elements.find(({ name }) => name === 'title')?.text.trim();
  return title ? title : elements.map(({ name, text }) => (isShown(name) ? text : '')).join(' ');
}

/** What follows a tag, given without its `<`, up to the next one. */
function textAfter(tag: string): { readonly name: string; readonly text: string } {
  const end = tag.indexOf('>');
  const name = /^[a-z]+/i.exec(tag)?.[0].toLowerCase() ?? '';
  return { name, text: end < 0 ? '' : tag.slice(end + 1) };
}

function isShown(name: string): boolean {
  return name !== 'script' && name !== 'style';
}

/** What would be hidden or be obeyed by a terminal is a blank. */
function oneLine(text: string): string {
  return text
    .slice(0, MODEL_REFUSAL_CHARS)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu, ' ')
    .trim();
}

/** Words in the names of a fault, and the status that such a fault has; the first that fits. */
const STATUS_OF_NAMES: readonly (readonly [RegExp, number])[] = [
  [/rate_?limit|too_?many_?requests|throttl|quota|resource_?exhausted/i, 429],
  [/invalid_api_key|authentication|unauthenticated|unauthorized|unrecognizedclient/i, 401],
  [/billing|insufficient_balance|insufficient_credits|payment/i, 402],
  [/permission|forbidden|access_?denied/i, 403],
  [/not_?found/i, 404],
  [/conflict/i, 409],
  [/request_?too_?large/i, 413],
  [/overloaded/i, 529],
  [/deadline|timeout/i, 504],
  [/unavailable|not_?ready/i, 503],
  [/invalid|context_length|content_|validation|bad_?request|failed_?precondition/i, 400],
];

/**
 * The HTTP status of an error that came without one (an event of a stream, a body with 200): its own number, else what its
 * names stand for. What is not known may pass, and is tried again: 503.
 */
export function statusOfError(error: unknown): number {
  const { code, status, type, error: inner } = isJsonObject(error) ? error : {};
  for (const candidate of [status, code, inner]) {
    const number = typeof candidate === 'string' ? Number(candidate) : candidate;
    if (isStatus(number)) return number;
  }
  // A sentence is no name: its words stand for nothing.
  const names = [code, type, status, inner].flatMap((name) => nameOf(name) ?? []).join(' ');
  const ofNames = STATUS_OF_NAMES.find(([pattern]) => pattern.test(names))?.[1];
  const within = typeof inner === 'string' ? parsedJson(inner) : inner;
  return ofNames ?? (isJsonObject(within) ? statusOfError(within) : 503);
}

/** Of a failure. */
export function isStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 400 && value < 600;
}
