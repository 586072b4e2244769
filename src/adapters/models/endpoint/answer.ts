// One answer of a model endpoint, as far as it has come: the events of a stream, or one value in its place. Which of the two
// it is the body says: endpoints label streams as JSON, and JSON as a stream.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Response } from 'undici';
import { isJsonObject, parsedJson } from '../../../rules/json.ts';
import { readText } from './body.ts';
import { lostConnection } from './refusal.ts';

/** What an answer is after an event: `ending`: what follows may be left out; `whole`: nothing follows. */
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
  /** Something of it was given to its reader. */
  isBegun = false;

  readonly #take: (data: unknown) => Progress;

  constructor(take: (data: unknown) => Progress) {
    this.#take = take;
  }

  /** Throws Failure, HostError model_unavailable, model_output_too_large, and what the reader or the connection throws. */
  async read(response: Response, onBytes: () => void): Promise<void> {
    if (!response.body) return;
    const events: EventSourceMessage[] = [];
    const parser = createParser({ onEvent: (event) => void events.push(event) });
    let hasEvents = false;
    let text = '';
    const taken = (piece: string): 'more' | 'enough' => {
      parser.feed(piece);
      hasEvents ||= events.length > 0;
      text = hasEvents ? '' : text + piece;
      for (const event of events.splice(0)) {
        this.#takeEvent(event);
        if (this.progress === 'whole') return 'enough';
      }
      return 'more';
    };
    await readText(response.body, taken, onBytes);
    const whole = text;
    // The last event may lack the line that ends it.
    if (this.progress !== 'whole') taken('\n\n');
    if (!hasEvents) this.#takeWhole(whole, response.headers.get('content-type') ?? '');
  }

  #takeWhole(text: string, type: string): void {
    if (parsedJson(text) !== undefined) this.#takeData(text);
    else if (text.trim() !== '' || !/event-stream/i.test(type)) throw noStream(type);
  }

  #takeEvent({ event, data }: EventSourceMessage): void {
    if (data.trim() === '') return;
    if (data.trim() === DONE) this.progress = this.#take(undefined);
    else if (event !== 'ping' || parsedJson(data) !== undefined) this.#takeData(data, event);
  }

  #takeData(text: string, name?: string): void {
    const data = parsedJson(text);
    const error = errorIn(data) ?? (name === 'error' ? (data ?? text) : undefined);
    if (error !== undefined) throw new Failure(error);
    if (data === undefined) throw lostConnection(undefined, NO_JSON);
    this.isBegun = true;
    this.progress = this.#take(data);
  }
}

/**
 * What failed, of a success that is none: some gateways answer 200, or begin to answer, and then say that they failed. Where
 * `error` is no more than a name, or yes, what is beside it says more.
 */
export function errorIn(data: unknown): unknown {
  if (!isJsonObject(data)) return undefined;
  const { error, type } = data;
  if (isJsonObject(error) || (Array.isArray(error) && error.length > 0)) return error;
  const isNamed = error === true || (typeof error === 'string' && error !== '');
  return isNamed || type === 'error' ? data : undefined;
}

function noStream(type: string): Error {
  const what = type === '' ? 'without events' : `with ${type.slice(0, 100)} and no events`;
  return lostConnection(undefined, `The model provider answered ${what}.`);
}
