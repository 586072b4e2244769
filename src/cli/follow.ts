// `openwop runs follow`: the events of a run as `npm start` prints them, over breaks and restarts of the host, until the
// run ends, a human is asked, or the reader has enough. What is followed goes on without its reader.
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import type { RunStatus } from '../rules/status.ts';
import { BackOff, Deadline, rest } from '../system/time.ts';
import { choicesOf } from '../words/choices.ts';
import { printableJson } from '../words/printable.js';
import { createRunPrinter, turnOf, type RunPrinter } from '../words/run-printer.ts';
import { CALLED, type Cli, type JsonFlag } from './cli.ts';
import { eventBatches } from './event-stream.ts';
import { CliFault, EXIT, type ExitCode } from './faults.ts';
import { interrupted } from './host-client.ts';
import { getQuestions, getRun, namedRun, runPath } from './run-reads.ts';
import { questionText, statusText } from './run-tables.ts';

/** A host that is away for longer than this (ms) is not waited for. */
const OUTAGE_LIMIT_MS = 10 * 60_000;
const AGAIN_FIRST_MS = 250;
const AGAIN_LONGEST_MS = 5_000;
/** Refusals that pass while a host begins or ends, or has many readers. */
const PASSING: ReadonlySet<string> = new Set(['service_unavailable', 'rate_limited']);

export interface FollowFlags extends JsonFlag {
  readonly from?: number;
  readonly untilQuestion?: true;
}

const ENDS: Partial<Readonly<Record<string, ExitCode>>> = {
  completed: EXIT.done,
  failed: EXIT.refused,
  cancelled: EXIT.cancelled,
};

/** Resolves to the exit code that tells how the run ended. Throws CliFault. */
export async function followRun(cli: Cli, runId: string, flags: FollowFlags): Promise<ExitCode> {
  try {
    return await new Follower(cli, runId, flags).follow();
  } catch (error) {
    if (!cli.signal.aborted) throw error;
    // Wherever it struck: between two events a stream that breaks off looks like a host that is gone.
    const stopped = interrupted(error);
    if (flags.json) throw stopped;
    throw new CliFault(
      `The run goes on without you. \`${CALLED} runs follow ${runId}\` follows it again.`,
      stopped.facts,
    );
  }
}

class Follower {
  readonly #cli: Cli;
  readonly #runId: string;
  readonly #flags: FollowFlags;
  readonly #printer: RunPrinter;
  readonly #pauses = new BackOff(AGAIN_FIRST_MS, AGAIN_LONGEST_MS);
  /** Ids of questions that were asked in what was read; of what stood before, nothing is known. */
  readonly #asked = new Set<string>();
  readonly #shown = new Set<string>();
  readonly #from: number;
  /** Sequence of the last event that was read. */
  #after: number;
  /** Event ids: a log that is made again may have others at the same sequences. */
  readonly #seen = new Set<string>();
  #wasReached = false;
  #away: Deadline | undefined;

  constructor(cli: Cli, runId: string, flags: FollowFlags) {
    this.#cli = cli;
    this.#runId = runId;
    this.#flags = flags;
    this.#printer = createRunPrinter(cli.out);
    this.#from = (flags.from ?? 0) - 1;
    this.#after = this.#from;
  }

  async follow(): Promise<ExitCode> {
    for (;;) {
      try {
        const code = await this.#readOn();
        if (code !== undefined) return code;
      } catch (error) {
        this.#bear(error);
      }
      await rest(this.#pauses.next(), this.#cli.signal);
      if (this.#cli.signal.aborted) throw interrupted();
    }
  }

  /** One connection: undefined when it ended before the run did. */
  async #readOn(): Promise<ExitCode | undefined> {
    const { client } = this.#cli;
    const path = `${runPath(this.#runId)}/events?streamMode=debug`;
    const after = this.#after < 0 ? undefined : this.#after;
    const body = await client.events(path, after).catch(namedRun(this.#runId));
    try {
      this.#reached();
      if (this.#after >= 0 && (await this.#showQuestions())) return EXIT.waits;
      for await (const events of eventBatches(body)) {
        this.#pauses.reset();
        const code = await this.#take(events);
        if (code !== undefined) return code;
      }
    } finally {
      // A stream that nobody reads would keep the process alive. One that was read is ended already.
      await body.cancel().catch(() => undefined);
    }
    // Where nothing is left to send the host ends the stream at once.
    const { status, atSeq } = await getRun(client, this.#runId);
    const isAll = typeof atSeq !== 'number' || atSeq <= this.#after;
    return isAll ? this.#ended(status) : undefined;
  }

  async #take(events: readonly RunEventDoc[]): Promise<ExitCode | undefined> {
    let ended: RunStatus | undefined;
    let asks = false;
    // What stands between may not know where a reader was, and begin again; so does a log that was made again.
    const isNew = ({ sequence, eventId }: RunEventDoc) =>
      sequence > this.#from && !this.#seen.has(eventId);
    for (const event of events.filter(isNew)) {
      this.#seen.add(event.eventId);
      const payload = event.payload as JsonValue;
      if (this.#flags.json) this.#cli.out(`${printableJson(event)}\n`);
      else this.#printer.print([{ ...event, payload }]);
      this.#after = event.sequence;
      const turn = turnOf(event.type);
      asks ||= turn.asks;
      const { interruptId } = (payload ?? {}) as JsonObject;
      if (turn.asks && typeof interruptId === 'string') this.#asked.add(interruptId);
      ended ??= turn.ended;
    }
    if (ended !== undefined) return this.#ended(ended);
    return asks && (await this.#showQuestions()) ? EXIT.waits : undefined;
  }

  #ended(status: string): ExitCode | undefined {
    const code = ENDS[status];
    if (code === undefined || this.#flags.json) return code;
    this.#printer.endLine();
    this.#cli.out(`Run ${this.#runId}: ${statusText(status)}.\n`);
    return code;
  }

  /** What is open of what was asked. True where this ends the command. */
  async #showQuestions(): Promise<boolean> {
    const { screen, out, client } = this.#cli;
    const isKnown = (id: string) => this.#asked.has(id) || (this.#flags.from ?? 0) > 0;
    const { open } = await getQuestions(client, this.#runId);
    const fresh = open.filter(({ interruptId: id }) => isKnown(id) && !this.#shown.has(id));
    for (const question of fresh) {
      this.#shown.add(question.interruptId);
      if (this.#flags.json) continue;
      this.#printer.endLine();
      out(`\n${questionText(question, this.#runId, screen)}\n\n`);
    }
    const forHuman = fresh.some((question) => choicesOf(question).length > 0);
    return this.#flags.untilQuestion === true && forHuman;
  }

  #reached(): void {
    if (this.#away !== undefined && !this.#flags.json) this.#cli.note('The host is back.');
    this.#wasReached = true;
    this.#away = undefined;
  }

  /** A host that was there may come back; what it refuses for good is not asked again. */
  #bear(error: unknown): void {
    const passes = error instanceof CliFault && (error.facts.isLost || PASSING.has(error.code));
    if (this.#cli.signal.aborted || !passes || !this.#wasReached) throw error;
    if (this.#away?.isOver()) throw error;
    if (this.#away === undefined && !this.#flags.json) {
      this.#printer.endLine();
      this.#cli.note(
        `The host is away; waiting for it, for up to ${OUTAGE_LIMIT_MS / 60_000} minutes …`,
      );
    }
    this.#away ??= new Deadline(OUTAGE_LIMIT_MS);
  }
}
