// One answer of a model endpoint, as far as it has come: the events of a stream, or one value in its place. Which of the two
// it is the body says: endpoints label streams as JSON, and JSON as a stream.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Response } from 'undici';
import { isJsonObject, parsedJson } from '../../../rules/json.ts';
import { readText } from './body.ts';
import { lostConnection } from './refusal.ts';
import { isStatus } from './refusal-words.ts';

/**
 * What an answer is after an event. `ending`: its reason to end has arrived, and losing what follows is no failure; `whole`:
 * nothing follows.
 */
export type Progress = 'more' | 'ending' | 'whole';

/** What ends a stream of chat completions, in place of JSON. */
const DONE = '[DONE]';
const NO_JSON = 'The model provider sent an event that is no JSON.';

/** The answer says that it failed. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly said: unknown;

  constructor(said: unknown) {
    super('The answer says that it failed.');
    this.said = said;
  }
}

export class Answer {
  progress: Progress = 'more';
  /** Something of it has arrived, whatever it was. */
  hasBytes = false;
  /** What was thrown is its reader's. */
  isUnread = false;

  readonly #take: (data: unknown) => Progress;
  readonly #mostBytes: number | undefined;

  constructor(take: (data: unknown) => Progress, mostBytes?: number) {
    this.#take = take;
    this.#mostBytes = mostBytes;
  }

  /** Throws Failure, HostError model_unavailable, model_output_too_large, and what the reader or the connection throws. */
  async read(response: Response, onBytes: () => void): Promise<void> {
    if (!response.body) return;
    let body: Body | undefined;
    const feed = (piece: string): 'more' | 'enough' => {
      body ??= bodyOf(piece);
      body?.push(piece, (event) => this.#takeEvent(event));
      return this.progress === 'whole' ? 'enough' : 'more';
    };
    const noted = (): void => {
      this.hasBytes = true;
      onBytes();
    };
    await readText(response.body, feed, { onBytes: noted, mostBytes: this.#mostBytes });
    if (this.progress !== 'whole') body?.end((event) => this.#takeEvent(event));
    const type = response.headers.get('content-type') ?? '';
    if (!(body?.hasEvents ?? /event-stream/i.test(type))) throw noStream(type);
  }

  #takeEvent({ event, data }: Event): void {
    if (this.progress === 'whole' || data.trim() === '') return;
    if (data.trim() === DONE) this.#give(undefined);
    else if (event !== 'ping' || parsedJson(data) !== undefined) this.#takeData(data, event);
  }

  #takeData(text: string, name?: string): void {
    const data = parsedJson(text);
    const error = errorIn(data) ?? (name === 'error' ? (data ?? text) : undefined);
    if (error !== undefined) throw new Failure(error);
    if (data === undefined) throw lostConnection(undefined, NO_JSON);
    this.#give(data);
  }

  #give(data: unknown): void {
    try {
      this.progress = this.#take(data);
    } catch (error) {
      this.isUnread = true;
      throw error;
    }
  }
}

type Event = Pick<EventSourceMessage, 'event' | 'data'>;

/** A body as it arrives; `take` gets its events. */
interface Body {
  readonly hasEvents: boolean;
  push(piece: string, take: (event: Event) => void): void;
  /** The body has ended. */
  end(take: (event: Event) => void): void;
}

/** No line of a stream of events begins so. */
const BEGINNINGS_OF_VALUES = ['{', '[', '<'];
/** Lines between two events that mean nothing: above it, it is no stream of events. */
const MAX_UNKNOWN_LINES = 1_000;

/** Which body begins so; undefined where nothing has begun. */
function bodyOf(piece: string): Body | undefined {
  const first = /\S/.exec(piece)?.[0];
  if (first === undefined) return undefined;
  return BEGINNINGS_OF_VALUES.includes(first) ? valueBody() : streamBody();
}

/** One value in place of a stream. */
function valueBody(): Body {
  let text = '';
  let isValue = false;
  return {
    get hasEvents() {
      return isValue;
    },
    push: (piece) => void (text += piece),
    end: (take) => {
      isValue = parsedJson(text) !== undefined;
      if (isValue) take({ event: undefined, data: text });
    },
  };
}

function streamBody(): Body {
  const events: Event[] = [];
  let hasEvents = false;
  let unknownLines = 0;
  const parser = createParser({
    onEvent: (event) => {
      events.push(event);
      hasEvents = true;
      unknownLines = 0;
    },
    onError: () => {
      if (++unknownLines > MAX_UNKNOWN_LINES) throw noStream('text that means nothing');
    },
  });
  const push: Body['push'] = (piece, take) => {
    parser.feed(piece);
    events.splice(0).forEach(take);
  };
  return {
    get hasEvents() {
      return hasEvents;
    },
    push,
    // The last event may lack the line that ends it.
    end: (take) => push('\n\n', take),
  };
}

/**
 * What failed, of a success that is none: some gateways answer 200, or begin to answer, and then say that they failed. Where
 * `error` is no more than a name, or yes, what is beside it says more.
 */
export function errorIn(data: unknown): unknown {
  if (!isJsonObject(data)) return undefined;
  const { error, type, object } = data;
  if (isJsonObject(error) || (Array.isArray(error) && error.length > 0)) return error;
  const isNamed = error === true || isStatus(error) || (typeof error === 'string' && error !== '');
  return isNamed || type === 'error' || object === 'error' ? data : undefined;
}

function noStream(type: string): Error {
  const what = type === '' ? 'without events' : `with ${type.slice(0, 100)} and no events`;
  return lostConnection(undefined, `The model provider answered ${what}.`);
}
