// One model endpoint over HTTP: a request, and its answer as a stream of events. Which limits there are, when an answer is
// whole and what is a refusal is decided here, for every provider alike; what events mean is the provider's to read.
// Retries belong to Temporal: none are made here. A cancelled request closes its socket. Redirects are not
// followed: key and conversation go to the endpoint that was named.
import type { Headers, RequestInit, Response } from 'undici';
import { HostError } from '../../../rules/errors.ts';
import { parsedJson } from '../../../rules/json.ts';
import { MODEL_END_TIMEOUT_MS, MODEL_START_TIMEOUT_MS, MODEL_STALL_TIMEOUT_MS } from '../limits.ts';
import { Answer, errorIn, Failure, type Progress } from './answer.ts';
import { beginningOf, readText } from './body.ts';
import { addressOf, client } from './client.ts';
import { maskOf } from './masking.ts';
import { lostConnection, Refusal } from './refusal.ts';
import { requestIdIn, statusOfError, wordsIn, wordsOf, type Words } from './refusal-words.ts';
import { SilenceTimer } from './silence-timer.ts';

export interface EndpointLimits {
  /** ms to the first byte of an answer; MODEL_START_TIMEOUT_MS when absent. */
  readonly startTimeoutMs?: number;
  /** ms of silence within an answer; MODEL_STALL_TIMEOUT_MS when absent. */
  readonly stallTimeoutMs?: number;
  /** ms of silence after the reason why an answer ended; MODEL_END_TIMEOUT_MS when absent. */
  readonly endTimeoutMs?: number;
  /** Most bytes of an answer's body; MODEL_RESPONSE_BYTES when absent. */
  readonly mostBytes?: number;
}

export interface EndpointConfig extends EndpointLimits {
  readonly baseUrl: string;
  /** Of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** No part of it is in what is thrown. */
  readonly apiKey?: string | undefined;
}

export interface Question {
  /** Added to the base URL. */
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export class Endpoint {
  readonly #config: EndpointConfig;
  readonly #mask: (words: Words) => Words;

  constructor(config: EndpointConfig) {
    this.#config = config;
    this.#mask = maskOf(config.baseUrl, config.apiKey);
  }

  /**
   * Gives `take` the data of each event of the answer, in order, and undefined for `[DONE]`; an answer that is no stream is
   * one event. Returns when the answer is whole or its body ends: whether it has all that it needs is the caller's to say.
   * Throws Refusal; HostError model_unavailable, model_output_too_large, and what `take` throws; the reason of `signal`.
   */
  async ask(question: Question, take: (data: unknown) => Progress): Promise<void> {
    const { signal } = question;
    const silence = new SilenceTimer();
    const answer = new Answer(take, this.#config.mostBytes);
    // That it is loaded takes none of the endpoint's time.
    await client();
    try {
      silence.restart(this.#config.startTimeoutMs ?? MODEL_START_TIMEOUT_MS);
      const response = await this.#send(question, AbortSignal.any([signal, silence.signal]));
      if (!response.ok) {
        // Its words have a limit of their own.
        silence.stop();
        throw await this.#refused(response);
      }
      await this.#read(answer, response, silence);
      // An aborted stream may end like a finished one.
      if (signal.aborted || silence.signal.aborted) throw lostConnection();
    } catch (error) {
      signal.throwIfAborted();
      // It had its reason to end: nothing that counts was to follow.
      if (answer.progress === 'ending' && !answer.isUnread && isLost(error)) return;
      if (silence.signal.aborted) throw silent(silence.limitMs, answer.hasBytes);
      throw thrown(error);
    } finally {
      silence.stop();
    }
  }

  async #read(answer: Answer, response: Response, silence: SilenceTimer): Promise<void> {
    const { stallTimeoutMs = MODEL_STALL_TIMEOUT_MS, endTimeoutMs = MODEL_END_TIMEOUT_MS } =
      this.#config;
    let isEnding = false;
    await answer
      .read(response, () => {
        // Comments and pings are signs of life: gateways send them while a model thinks. Afterwards they say nothing.
        if (answer.progress !== 'ending') silence.restart(stallTimeoutMs);
        else if (!isEnding) silence.restart(endTimeoutMs);
        isEnding = answer.progress === 'ending';
      })
      .catch((error: unknown) => {
        throw error instanceof Failure ? this.#failed(error.said, response.headers) : error;
      });
  }

  /** The body of a GET, as JSON. Throws as `ask`, in what time `signal` leaves. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const response = await this.#fetch(path, { method: 'GET', signal });
      if (!response.ok) throw await this.#refused(response);
      let text = '';
      if (response.body) await readText(response.body, (piece) => ((text += piece), 'more'));
      const data = parsedJson(text);
      const error = errorIn(data);
      if (error !== undefined) throw this.#failed(error, response.headers);
      // A page to sign in, where there should be a list.
      if (data === undefined) throw this.#refusal(response, wordsIn(text, response.headers));
      return data;
    } catch (error) {
      throw thrown(error);
    }
  }

  #send({ path, body, headers }: Question, signal: AbortSignal): Promise<Response> {
    return this.#fetch(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: ACCEPTED, ...headers },
      body: JSON.stringify(body),
      signal,
    });
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
    const text = await beginningOf(response.body);
    return this.#refusal(response, pointsTo(response) ?? wordsIn(text, response.headers));
  }

  /** A failure that came with the status of a success. */
  #failed(error: unknown, headers: Headers): Refusal {
    const words = { ...requestIdIn(headers), ...wordsOf(error) };
    return this.#refusal({ status: statusOfError(error), headers }, words);
  }

  #refusal({ status, headers }: Pick<Response, 'status' | 'headers'>, words: Words): Refusal {
    return new Refusal({ status, headers, words: this.#mask(words) });
  }
}

/** A gateway may write a refusal by what is accepted. */
const ACCEPTED = 'text/event-stream, application/json';

/** What is said for an endpoint that points elsewhere, without what may be a secret. */
function pointsTo({ status, headers, url }: Response): Words | undefined {
  const location = status >= 300 && status < 400 ? headers.get('location') : null;
  if (location === null || !URL.canParse(location, url)) return undefined;
  const { origin, pathname, protocol } = new URL(location, url);
  if (!/^https?:$/.test(protocol)) return undefined;
  return { text: `It points to ${origin}${pathname}, which is not asked.` };
}

/** The connection broke, or what came last is cut. */
function isLost(error: unknown): boolean {
  return error instanceof HostError
    ? error.code === 'model_unavailable'
    : !(error instanceof Refusal);
}

function thrown(error: unknown): unknown {
  return error instanceof HostError || error instanceof Refusal ? error : lostConnection(error);
}

function silent(limitMs: number, hasBegun: boolean): HostError {
  const what = hasBegun ? 'said nothing more' : 'did not begin to answer';
  return lostConnection(undefined, `The model provider ${what} within ${limitMs / 1000} s.`);
}
