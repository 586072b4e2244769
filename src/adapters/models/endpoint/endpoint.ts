// One model endpoint over HTTP: a request, and its answer as a stream of events. Which limits there are, when an answer is
// whole and what is a refusal is decided here, for every provider alike; what events mean is the provider's to read.
// Retries belong to Temporal: none are made here. A cancelled request closes its socket, and where an endpoint points to
// is not asked: key and conversation go to the endpoint that was named.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Agent, fetch as undiciFetch, RequestInit, Response } from 'undici';
import { HostError } from '../../../rules/errors.ts';
import { isJsonObject, parsedJson } from '../../../rules/json.ts';
import { withoutCredentials, withoutParts } from '../../../rules/redaction.ts';
import { boundText } from '../../../rules/tokens.ts';
import {
  MODEL_CONNECT_TIMEOUT_MS,
  MODEL_END_TIMEOUT_MS,
  MODEL_REFUSAL_WORDS_BYTES,
  MODEL_START_TIMEOUT_MS,
  MODEL_STALL_TIMEOUT_MS,
} from '../limits.ts';
import { beginningOf, readText } from './body.ts';
import { lostConnection, Refusal } from './refusal.ts';
import { statusOfError, wordsIn, wordsOf, type Words } from './refusal-words.ts';
import { SilenceTimer } from './silence-timer.ts';

export interface EndpointLimits {
  /** ms to the first byte of an answer; MODEL_START_TIMEOUT_MS when absent. */
  readonly startTimeoutMs?: number;
  /** ms of silence within an answer; MODEL_STALL_TIMEOUT_MS when absent. */
  readonly stallTimeoutMs?: number;
  /** ms of silence after the reason why an answer ended; MODEL_END_TIMEOUT_MS when absent. */
  readonly endTimeoutMs?: number;
}

export interface EndpointConfig extends EndpointLimits {
  readonly baseUrl: string;
  /** Of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** No part of it is in what is thrown. */
  readonly apiKey?: string;
}

export interface Question {
  /** Added to the base URL. */
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** What an answer is after an event: `ending`: what follows may be left out; `whole`: nothing follows. */
export type Progress = 'more' | 'ending' | 'whole';

/** What ends a stream of chat completions, in place of JSON. */
const DONE = '[DONE]';

export class Endpoint {
  readonly #config: EndpointConfig;

  constructor(config: EndpointConfig) {
    this.#config = config;
  }

  /**
   * Gives `take` the data of each event of the answer, in order; an answer that is no stream is one event. Returns when the
   * answer is whole or its body ends: whether it has all that it needs is the caller's to say. Throws Refusal; HostError
   * model_unavailable, model_output_too_large, and what `take` throws; the reason of `signal`.
   */
  async ask(question: Question, take: (data: unknown) => Progress): Promise<void> {
    const { signal } = question;
    const silence = new SilenceTimer();
    const answer = new Answer(take, (error) => this.#refusal(error));
    const { startTimeoutMs = MODEL_START_TIMEOUT_MS } = this.#config;
    const { stallTimeoutMs = MODEL_STALL_TIMEOUT_MS, endTimeoutMs = MODEL_END_TIMEOUT_MS } =
      this.#config;
    try {
      silence.restart(startTimeoutMs);
      const response = await this.#send(question, AbortSignal.any([signal, silence.signal]));
      // Comments and pings are signs of life: gateways send them while a model thinks.
      await answer.read(response, () =>
        silence.restart(answer.progress === 'ending' ? endTimeoutMs : stallTimeoutMs),
      );
      // An aborted stream may end like a finished one.
      if (signal.aborted || silence.signal.aborted) throw lostConnection();
    } catch (error) {
      signal.throwIfAborted();
      if (!silence.signal.aborted) throw thrown(error);
      if (answer.progress !== 'ending') throw silent(silence.limitMs, answer.isBegun);
    } finally {
      silence.stop();
    }
  }

  /** The body of a GET, as JSON; undefined where it is none. Throws as `ask`, in what time `signal` leaves. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await this.#fetch(path, { method: 'GET', signal });
      let text = '';
      const body = response.ok ? response.body : null;
      if (!response.ok) throw await this.#refused(response);
      if (body) await readText(body, (piece) => ((text += piece), 'more'), noteNothing);
      return parsedJson(text);
    } catch (error) {
      throw thrown(error);
    }
  }

  async #send({ path, body, headers }: Question, signal: AbortSignal): Promise<Response> {
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...headers },
      body: JSON.stringify(body),
      signal,
    };
    const response = await this.#fetch(path, init);
    if (!response.ok) throw await this.#refused(response);
    return response;
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const { fetch, dispatcher } = await client();
    const { baseUrl, headers } = this.#config;
    return await fetch(addressOf(baseUrl, path), {
      ...init,
      headers: { 'User-Agent': 'openwop-temporal', ...headers, ...init.headers },
      redirect: 'manual',
      dispatcher,
    });
  }

  async #refused(response: Response): Promise<Refusal> {
    const { status, headers } = response;
    const text = await beginningOf(response.body);
    const words = this.#masked(pointsTo(response) ?? wordsIn(text, headers));
    return new Refusal({ status, words, headers });
  }

  /** A failure that came with the status of a success. */
  #refusal(error: unknown): Refusal {
    return new Refusal({ status: statusOfError(error), words: this.#masked(wordsOf(error)) });
  }

  #masked(words: Words): Words {
    const { apiKey = '' } = this.#config;
    const masked = (text: string): string => withoutCredentials(withoutParts(text, apiKey));
    const entries = Object.entries(words).map(([name, said]: [string, string]) => [
      name,
      masked(said),
    ]);
    return { ...Object.fromEntries(entries), text: bounded(masked(words.text)) } as Words;
  }
}

/** One answer, as far as it has come. */
class Answer {
  progress: Progress = 'more';
  isBegun = false;

  readonly #take: (data: unknown) => Progress;
  readonly #refusal: (error: unknown) => Refusal;

  constructor(take: (data: unknown) => Progress, refusal: (error: unknown) => Refusal) {
    this.#take = take;
    this.#refusal = refusal;
  }

  async read(response: Response, onBytes: () => void): Promise<void> {
    if (!response.body) return;
    const type = response.headers.get('content-type') ?? '';
    if (/[/+]json\b/i.test(type)) return await this.#readWhole(response.body, onBytes);
    const events: EventSourceMessage[] = [];
    const parser = createParser({ onEvent: (event) => void events.push(event) });
    const taken = (text: string): 'more' | 'enough' => {
      parser.feed(text);
      for (const event of events.splice(0)) {
        this.#takeEvent(event);
        if (this.progress === 'whole') return 'enough';
      }
      return 'more';
    };
    await readText(response.body, taken, onBytes);
    // The last event may lack the line that ends it.
    if (this.progress !== 'whole') taken('\n\n');
    if (!this.isBegun && !/event-stream/i.test(type)) throw noStream(type);
  }

  async #readWhole(body: NonNullable<Response['body']>, onBytes: () => void): Promise<void> {
    let text = '';
    await readText(body, (piece) => ((text += piece), 'more'), onBytes);
    this.#takeData(text);
  }

  #takeEvent({ event, data }: EventSourceMessage): void {
    if (data.trim() === '') return;
    if (data.trim() === DONE) this.progress = 'whole';
    else this.#takeData(data, event);
  }

  #takeData(text: string, name?: string): void {
    const data = parsedJson(text);
    const error = errorIn(data ?? text, name);
    if (error !== undefined) throw this.#refusal(error);
    if (data === undefined) throw lostConnection(undefined, NO_JSON);
    this.isBegun = true;
    this.progress = this.#take(data);
  }
}

const NO_JSON = 'The model provider sent an event that is no JSON.';

function bounded(text: string): string {
  return boundText(text, MODEL_REFUSAL_WORDS_BYTES);
}

function noteNothing(): void {
  // A whole body is waited for as its caller says.
}

/** What failed, of a success that is none: some gateways answer 200, or begin to answer, and then say that they failed. */
function errorIn(data: unknown, name?: string): unknown {
  const { error, type } = isJsonObject(data) ? data : {};
  if (error !== undefined && error !== null && error !== false && error !== '') return error;
  return name === 'error' || type === 'error' ? data : undefined;
}

/** The path is added to that of the base URL; a query of the base URL stays. */
function addressOf(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  const [pathname = '', query = ''] = path.split('?');
  url.pathname = url.pathname.replace(/\/$/, '') + pathname;
  for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
  return url;
}

/** What is said for an endpoint that points elsewhere, without what may be a secret. */
function pointsTo({ status, headers, url }: Response): Words | undefined {
  const location = status >= 300 && status < 400 ? headers.get('location') : null;
  if (location === null || !URL.canParse(location, url)) return undefined;
  const { origin, pathname } = new URL(location, url);
  return { text: `It points to ${origin}${pathname}, which is not asked.` };
}

function thrown(error: unknown): unknown {
  return error instanceof HostError || error instanceof Refusal ? error : lostConnection(error);
}

function silent(limitMs: number, isBegun: boolean): HostError {
  const what = isBegun ? 'said nothing more' : 'did not begin to answer';
  return lostConnection(undefined, `The model provider ${what} within ${limitMs / 1000} s.`);
}

function noStream(type: string): HostError {
  const what = type === '' ? 'without events' : `with ${type.slice(0, 100)} and no events`;
  return lostConnection(undefined, `The model provider answered ${what}.`);
}

interface Client {
  readonly fetch: typeof undiciFetch;
  readonly dispatcher: Agent;
}

let loaded: Promise<Client> | undefined;

/** Loaded when a model is first asked. Its own limits are off where ours are: it would end a wait for a model that loads. */
function client(): Promise<Client> {
  loaded ??= import('undici').then(({ fetch, Agent }) => ({
    fetch,
    dispatcher: new Agent({
      connect: { timeout: MODEL_CONNECT_TIMEOUT_MS },
      headersTimeout: 0,
      bodyTimeout: 0,
    }),
  }));
  return loaded;
}
